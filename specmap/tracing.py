"""The live traces that ``specmap trace`` offers, from the first check to the exit code."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from specmap.atomic import replacing
from specmap.codemap.event import Run
from specmap.errors import SpecmapError
from specmap.live import Ask, Follower, Prepared, Show, armed, disarm, planned, prepared, wait_for
from specmap.pipeline import Progress, default_cache_dir
from specmap.trace import inject, rundir
from specmap.trace.attach import Agent, listening, ranks_of, runs
from specmap.trace.interpreter import Installed, check_flags, installed_in, program_of
from specmap.trace.launch import Server, become, check_untraced, environment_of
from specmap.trace.plan import to_json
from specmap.trace.ringbuild import built_ring
from specmap.trace.stopping import Signals
from specmap.traced import trace_names

_FOUND, _FAILED = 1, 2


@dataclass(frozen=True, slots=True)
class Watcher:
    """Whom a trace talks to: a progress bar, the table, lines for stderr, the report.

    ``report`` shows the run of a folder and returns the exit code for it; ``log`` writes the
    folder's event logs, which takes longer.
    """

    progress: Callable[[], AbstractContextManager[Progress | None]]
    table: Callable[[], AbstractContextManager[Show | None]]
    note: Callable[[str], None]
    report: Callable[[Path, Run], int]
    log: Callable[[Path], None]


def launch(command: Sequence[str], ask: Ask, watcher: Watcher) -> int:
    """Start a command with the agent in it, follow it, and report; return the exit code.

    The command's own code comes first where it failed and nobody had asked it to end.

    Raises:
        SpecmapError: the command cannot be traced: nothing was started.
    """
    check_untraced(os.environ)
    server_in = _server_in(command, ask)
    run = _prepared_launch(command, server_in, ask, watcher)
    environment = environment_of(os.environ, directory=run.folder, options=ask.options)
    _add_ring(environment, server_in)
    with Signals() as signals:
        try:
            server = Server(command, environment, ask.log)
        except SpecmapError:
            rundir.discard(run.folder)
            raise
        follower = Follower(run, signals)
        limit = _followed(follower, server, watcher)
        stopped = limit and ask.stop_after
        if stopped and not server.terminate():
            watcher.note("the command did not heed SIGTERM and was killed")
        code = None
        if limit and not stopped:
            code = _reported(follower, watcher)
            watcher.note("tracing ended; the command goes on")
        server_code = wait_for(server, signals)
        if code is None:
            code = _reported(follower, watcher)
    watcher.log(run.folder)
    if server_code and not stopped and not signals.came:
        watcher.note(f"the command ended with exit code {server_code}")
        return server_code
    return code


def _followed(follower: Follower, server: Server, watcher: Watcher) -> bool:
    """Follow a server until the trace ends, and disarm its ranks; return whether by its limit.

    Whatever goes wrong here is told and costs the trace, never the server.
    """
    limit = False
    try:
        with watcher.table() as show:
            limit = follower.follow(lambda: server.ended() is not None, show)
        # A rank that is slow to start may record by now and have written nothing yet.
        for line in disarm({*follower.pids(), *listening(server.pid)}):
            watcher.note(line)
    except Exception as error:
        watcher.note(f"the trace ended early: {_words(error)}")
    return limit


def _reported(follower: Follower, watcher: Watcher) -> int:
    try:
        return watcher.report(follower.folder, follower.finish())
    except Exception as error:  # a server may run on, and must not lose who waits for it
        watcher.note(f"no report: {_words(error)}; see 'specmap trace read {follower.folder}'")
        return _FAILED


def _words(error: Exception) -> str:
    return str(error) if isinstance(error, SpecmapError) else f"{type(error).__name__}: {error}"


def _server_in(command: Sequence[str], ask: Ask) -> Installed | None:
    """Ask the command's own Python which SGLang it would import.

    Raises:
        SpecmapError: the agent cannot get in, or there is no such package.
    """
    program = program_of(command, os.environ)
    if program is None:
        if ask.target is None:
            raise SpecmapError(
                f"cannot tell which Python {command[0]!r} starts; put the Python command itself "
                "after --, or name the tree with --target"
            )
        return None
    check_flags(program)
    try:
        return installed_in(program, trace_names().package, os.environ, Path.cwd())
    except SpecmapError:
        if ask.target is None:
            raise
        return None


def _prepared_launch(
    command: Sequence[str], server_in: Installed | None, ask: Ask, watcher: Watcher
) -> Prepared:
    with watcher.progress() as progress:
        tree = None if server_in is None else str(server_in.package)
        plan = planned(tree, ask, progress)
    return prepared(plan, ask, {"command": rundir.without_secrets(command), "tree": tree})


def _add_ring(environment: dict[str, str], server_in: Installed | None) -> None:
    if server_in is not None:
        folder = built_ring(server_in, default_cache_dir() / "ring")
        if folder is not None:
            environment["SPECMAP_EXTENSION"] = str(folder)


def sleep_in(command: Sequence[str], ask: Ask, watcher: Watcher) -> None:
    """Start a command with a sleeping agent, in the place of specmap; does not return.

    Raises:
        SpecmapError: the command cannot be traced: nothing was started.
    """
    check_untraced(os.environ)
    server_in = _server_in(command, ask)
    with watcher.progress() as progress:
        plan = planned(None if server_in is None else str(server_in.package), ask, progress)
    kept = _kept(to_json(plan).encode())
    environment = environment_of(os.environ, directory=None, options=ask.options, dormant=True)
    environment["SPECMAP_PLAN"] = str(kept)
    _add_ring(environment, server_in)
    become(command, environment)


def _kept(plan: bytes) -> Path:
    """Keep a plan in the cache for the agents that sleep, and return its place.

    Raises:
        OutputError: it cannot be written.
    """
    place = default_cache_dir() / "trace" / f"plan-{sha256(plan).hexdigest()[:16]}.json"
    with replacing([place], make_folders=True) as (fresh,):
        fresh.write_bytes(plan)
    return place


def attach(pid: int, ask: Ask, watcher: Watcher) -> int:
    """Arm the sleeping agents of a running server, follow them, and report.

    Raises:
        SpecmapError: no agent listens, or one refuses: then none stays armed.
    """
    names = trace_names()
    ranks = ranks_of(pid, names.rank_title)
    with contextlib.closing(Agent(ranks[0])) as agent:
        package = agent.ask("status", package=names.package).get("package")
    tree = package if isinstance(package, str) else None
    return _attached(pid, ranks, tree, ask, watcher)


def _attached(pid: int, ranks: Sequence[int], tree: str | None, ask: Ask, watcher: Watcher) -> int:
    if tree is None and ask.target is None:
        raise SpecmapError(f"process {pid} does not say which tree it runs; name it with --target")
    with watcher.progress() as progress:
        plan = planned(tree, ask, progress)
    facts: Mapping[str, object] = {"command": [], "tree": tree, "attached": pid}
    run = prepared(plan, ask, facts)
    return _followed_ranks(run, ranks, watcher)


def _followed_ranks(run: Prepared, ranks: Sequence[int], watcher: Watcher) -> int:
    with Signals() as signals:
        follower = Follower(run, signals, began=time.monotonic())
        with armed(run, ranks), watcher.table() as show:
            limit = follower.follow(lambda: not any(map(runs, ranks)), show)
        code = _reported(follower, watcher)
        if not limit and not signals.came and code != _FAILED:
            for line in follower.killed():
                watcher.note(line)
                code = _FOUND
    watcher.log(run.folder)
    return code


def inject_into(pid: int, ask: Ask, watcher: Watcher) -> int:
    """Wake an agent in one rank that was started without one, follow it, and report.

    Raises:
        SpecmapError: the process lets nobody in, or ``--target`` is missing.
    """
    if ask.target is None:
        raise SpecmapError("--inject needs --target: the tree that the process runs")
    run_in = inject.way_into(pid)
    with watcher.progress() as progress:
        plan = planned(None, ask, progress)
    run = prepared(plan, ask, {"command": [], "tree": ask.target, "injected": pid})
    environment = {
        "SPECMAP_TRACE": "dormant",
        "SPECMAP_PLAN": str(run.folder / rundir.PLAN_FILE),
    }
    script = inject.script_of(inject.wake_file(), environment, run.folder)
    run_in(script)
    inject.wait_for_agent(pid)
    return _followed_ranks(run, (pid,), watcher)
