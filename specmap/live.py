"""Composes a live trace: start or attach, follow, end. The folder of the run is whole after it."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from specmap import __version__
from specmap.codemap.event import RankRun, Run
from specmap.errors import SpecmapError
from specmap.pipeline import Progress, resolved
from specmap.trace import rundir
from specmap.trace.attach import Agent, runs
from specmap.trace.divergence import titles
from specmap.trace.launch import Options, Server
from specmap.trace.names import TraceNames
from specmap.trace.plan import WrapPlan
from specmap.trace.read import LiveRun
from specmap.trace.spool import ranks_in, salvage
from specmap.trace.stopping import Signals
from specmap.traced import plan_for, trace_names

_POLL_SECONDS = 0.25
_LONGEST_SECONDS = 1.0
_AT_ONCE = 16

Show = Callable[[tuple[RankRun, ...], str], None]
"""Told the ranks so far, and a line that says what goes on."""


@dataclass(frozen=True, slots=True)
class Ask:
    """What a live trace is to do.

    ``target`` names the tree, None for the one that the server imports. ``log`` takes the
    server's output.
    """

    target: str | None = None
    directory: Path | None = None
    cycles: int | None = None
    seconds: float | None = None
    stop_after: bool = False
    log: Path | None = None
    options: Options = field(default_factory=Options)
    platform: str = "cuda"
    use_cache: bool = True


@dataclass(frozen=True, slots=True)
class Prepared:
    """A folder with its plan, and what is needed to follow the ranks that write into it."""

    folder: Path
    plan: WrapPlan
    names: TraceNames
    ask: Ask


def planned(target: str | None, ask: Ask, progress: Progress | None) -> WrapPlan:
    """Return the plan of the tree that a server imports.

    Raises:
        SpecmapError: see :func:`specmap.traced.plan_for`.
    """
    plan = plan_for(
        ask.target or target, platform=ask.platform, use_cache=ask.use_cache, progress=progress
    )[1]
    if not plan.workers:
        raise SpecmapError(f"{ask.target or target}: no speculative worker that could be traced")
    if ask.target is not None and target is not None:
        _check_release(ask.target, plan, target)
    return plan


def _check_release(named: str, plan: WrapPlan, tree: str) -> None:
    """Refuse a plan of another release than the one that the server imports.

    Raises:
        SpecmapError: naming both.
    """
    with resolved(tree) as found:
        runs_release = found.checkout.release
    if plan.release and runs_release and plan.release != runs_release:
        raise SpecmapError(
            f"--target {named} is release {plan.release}, and the server imports {runs_release} "
            f"({tree}); leave --target away"
        )


def prepared(plan: WrapPlan, ask: Ask, facts: Mapping[str, object]) -> Prepared:
    """Make the folder of the run, with its plan and what it is of.

    Raises:
        OutputError: it already holds a run, or cannot be written.
    """
    from specmap.trace.plan import to_json

    folder = rundir.make(ask.directory)
    target = ask.target or facts.get("tree")
    if isinstance(target, str) and Path(target).is_dir():
        target = str(Path(target).resolve())
    common = {"release": plan.release, "specmap": __version__, "platform": ask.platform}
    rundir.describe(folder, {**common, **facts, "tree": target}, to_json(plan))
    return Prepared(folder, plan, trace_names(), ask)


class Follower:
    """Reads along until somebody or something ends the trace."""

    def __init__(self, run: Prepared, signals: Signals, began: float | None = None) -> None:
        """Follow ``run``; its seconds count from ``began``, or else from the first cycle."""
        self.folder = run.folder
        self._live = LiveRun(run.folder, run.plan, run.names)
        self._ask, self._signals = run.ask, signals
        self._began = began

    def follow(self, ended: Callable[[], bool], show: Show | None) -> bool:
        """Return True at the limit, False where the ranks ended or a signal came.

        The limit is reached, too, where no rank writes any more: nothing more will come.

        Raises:
            TraceError: a file cannot be read.
        """
        while not self._signals.came:
            over = ended()
            started = time.monotonic()
            if self._reached(self._live.advance(), show):
                return True
            if over:
                return False
            if self._live.cut_short():
                return True
            # Little of one core where little is written, and no growing delay where much is.
            took = time.monotonic() - started
            time.sleep(min(max(_POLL_SECONDS, 4 * took), _LONGEST_SECONDS))
        return False

    def finish(self) -> Run:
        """Read to the end; what dead ranks left in memory is saved first.

        Raises:
            TraceError: a file cannot be read or completed.
        """
        for name in ranks_in(self.folder):
            salvage(self.folder, name)
        return self._live.poll()

    def pids(self) -> tuple[int, ...]:
        """Return the processes of the ranks that left something.

        Raises:
            TraceError: a file cannot be read.
        """
        return tuple(rank.pid for rank in self._live.advance() if rank.pid > 0)

    def killed(self) -> tuple[str, ...]:
        """Return a line for each rank that ended and did not close its log.

        Raises:
            TraceError: a file cannot be read.
        """
        return tuple(
            f"{titles([rank])} (process {rank.pid}) ended after {rank.cycles} cycles and did not "
            "close its log: it was killed, and the run ends there"
            for rank in self._live.advance()
            if not rank.finished and not rank.cut_short and not runs(rank.pid)
        )

    def _reached(self, ranks: tuple[RankRun, ...], show: Show | None) -> bool:
        cycles = min((rank.cycles for rank in ranks), default=0)
        now = time.monotonic()
        if self._began is None and cycles:
            self._began = now
        elapsed = 0.0 if self._began is None else now - self._began
        if show is not None:
            show(ranks, self._state(cycles, elapsed))
        if self._ask.cycles is not None and cycles >= self._ask.cycles:
            return True
        return self._ask.seconds is not None and elapsed >= self._ask.seconds

    def _state(self, cycles: int, elapsed: float) -> str:
        if not cycles:
            return "waiting for the first cycle"
        return f"{cycles} cycles in {elapsed:.0f} s"


def disarm(pids: Iterable[int]) -> tuple[str, ...]:
    """Stop the tracing of these ranks; return a line for each answer of those that live on.

    What several answer alike is one line, with the processes.
    """

    def one(pid: int) -> str:
        try:
            with contextlib.closing(Agent(pid)) as agent:
                agent.ask("disarm")
        except SpecmapError as error:
            return str(error) if runs(pid) else ""
        return ""

    asked = tuple(pids)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = dict(zip(asked, pool.map(one, asked), strict=True))
    alike: dict[str, list[int]] = {}
    for pid, line in answers.items():
        if line:
            alike.setdefault(line.replace(f"process {pid} ", "process {} "), []).append(pid)
    return tuple(_of_all(line, those) for line, those in alike.items())


def _of_all(line: str, pids: Sequence[int]) -> str:
    """Name the processes that a line is about."""
    more = f"; so it is with {', '.join(map(str, pids[1:]))}" if pids[1:] else ""
    return f"{line.replace('{}', str(pids[0]), 1)}{more}"


def wait_for(server: Server, signals: Signals) -> int:
    """Wait for the server's end; return its exit code. Every signal that comes is passed on.

    From the third on it is SIGKILL: the user means it, and the server does not heed.
    """
    passed = 0
    while True:
        while passed < len(signals.came):
            number = signals.came[passed] if passed < 2 else signal.SIGKILL
            server.pass_on(number)
            passed += 1
        code = server.ended()
        if code is not None:
            return code
        time.sleep(_POLL_SECONDS)


@contextlib.contextmanager
def armed(run: Prepared, pids: Sequence[int]) -> Iterator[None]:
    """Arm the sleeping agents of these ranks; they are disarmed at the end, whatever happens.

    Raises:
        SpecmapError: an agent refuses: then none stays armed.
    """
    options = run.ask.options
    asked = {
        "dir": str(run.folder),
        "plan": str(run.folder / rundir.PLAN_FILE),
        "spans": options.spans,
        "syncs": options.syncs,
        "launches": options.launches,
        "windows": options.windows,
    }
    with contextlib.ExitStack() as agents:
        for pid in pids:
            agent = agents.enter_context(contextlib.closing(Agent(pid)))
            agent.ask("arm", **asked)
            agents.callback(_let_go, agent)
        yield


def _let_go(agent: Agent) -> None:
    with contextlib.suppress(SpecmapError):  # a rank that is gone needs no disarming
        agent.ask("disarm")
