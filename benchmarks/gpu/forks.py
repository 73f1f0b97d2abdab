"""Engines of one SGLang release with different patches, all up at once, measured in turns.

    python forks.py pack PLAN.json PACKED SITE WORK          # where specmap is installed
    python forks.py run PLAN.json PACKED AGENT OUT SECONDS   # on the GPU machine
    python forks.py dry OUT                                  # stand-ins, on any machine
    python forks.py table OUT RUNS                           # again, from OUT/waves.jsonl

PLAN.json: ``{"layers", "hidden", "warm_up": 8, "checked": [[requests, tokens], ...],
"measured": [[requests, tokens], ...], "rounds", "traced": [requests, tokens], "start_s",
"turn_s", "variants": [...]}``. A variant is a case of ``engine.py`` with ``name``, ``patches``
(files in PACKED, applied in turn to a copy of the installed SGLang), ``base`` (the variant that
it is compared with), ``wrap_plan`` (a file in PACKED; NAME.plan.json), ``rounds`` (fewer than
all), ``share`` (the part of the tokens that a slow one generates) and ``agent`` (a folder in PACKED
with another specmap's trace/agent). What the tracer costs:
``"windows": {KIND: cycles, "wave": [requests, tokens], "waves"}`` for variants whose ``windows``
lists the kind (``plain``, ``spans``, ``each``: spans of every cycle, ``launches``),
``"profiled": [requests, tokens]``, under SGLang's own profiler, for those that say ``profiled``;
``after_s``: what both take, after the rounds.

An engine works only in its turn: all others are stopped (SIGSTOP), so that idle schedulers,
which poll, take no core from the one that is measured. The order turns with the rounds. Every
answer goes to OUT/waves.jsonl at once, and the table is written after every round. Standard
library only, but for ``pack``: the machine has SGLang's runtime and no specmap.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent))

from benchmarks.gpu.forks_table import table  # noqa: E402
from benchmarks.gpu.matrix import environment  # noqa: E402
from benchmarks.gpu.trees import copy_tree  # noqa: E402

WORK = Path("/tmp/specmap-forks")
SITE = Path("/tmp/site")
TRACE_TURN_S, PACKING_S, LAST_WORDS_S = 4.0, 15.0, 5.0
DISARM = {"do": "disarm"}
WINDOWS: dict[str, dict[str, Any]] = {
    "plain": {}, "spans": {"spans": 8}, "each": {"spans": 1}, "launches": {"launches": True},
}  # fmt: skip
ERROR = re.compile(r"^\w*(Error|Exception)\b")


class Fork:
    """One engine in a process group of its own; it sleeps but for its turns."""

    def __init__(self, case: dict[str, Any], folder: Path, told: dict[str, str]) -> None:
        """Start it; it is up once :meth:`answer` has returned its first line."""
        self.case, self.name, self.fate = case, str(case["name"]), ""
        self.log, self._held = folder.parent / f"{self.name}.log", b""
        self.start_s = self.turn_s = 0.0
        folder.mkdir(parents=True, exist_ok=True)
        place = folder / "case.json"
        place.write_text(json.dumps(case), "utf-8")
        self.answers, theirs = os.pipe()
        command = [sys.executable, str(HERE / "forks_engine.py"), str(place), str(theirs)]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command, env=told, stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT,
                start_new_session=True, pass_fds=[theirs],
            )  # fmt: skip
        os.close(theirs)

    def signal(self, number: int) -> None:
        """Send a signal to every process of the engine."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def stop(self) -> None:
        """Stop it, and wait until it has stopped."""
        self.signal(signal.SIGSTOP)
        os.waitpid(self.process.pid, os.WUNTRACED)

    def answer(self, limit_s: float) -> dict[str, Any] | None:
        """Return the next answer; None, and a fate, where none comes in time."""
        until = time.monotonic() + limit_s
        while b"\n" not in self._held:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.answers], [], [], left)[0]:
                self.lose(f"no answer in {limit_s:.0f} s")
                return None
            if not (read := os.read(self.answers, 1 << 16)):
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(LAST_WORDS_S)
                self.lose("died")
                return None
            self._held += read
        line, _, self._held = self._held.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        return found

    def take_turn(self, turn: dict[str, Any], limit_s: float) -> dict[str, Any] | None:
        """Wake it for one turn; return what its last wave gave."""
        assert self.process.stdin is not None
        self.signal(signal.SIGCONT)
        try:
            self.process.stdin.write(json.dumps(turn).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            self.lose("died")
            return None
        if (found := self.answer(limit_s)) is not None:
            self.stop()
        return found

    def lose(self, why: str) -> None:
        """Give it up: kill it and keep its last error, else its last line."""
        self._kill()
        lines = self.log.read_text("utf-8", "replace").strip().splitlines()
        errors = [line for line in lines if ERROR.search(line)]
        last = (errors or lines or ["it printed nothing"])[-1]
        self.fate = f"{why}: {last.strip()[:160]}"

    def end(self) -> None:
        """Kill it; a stopped process does not end by itself."""
        if not self.fate:
            self._kill()
        os.close(self.answers)

    def _kill(self) -> None:
        self.signal(signal.SIGKILL)
        self.process.wait()
        if self.process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.close()


class Turns:
    """All engines of a plan, and what they answered so far."""

    def __init__(self, plan: dict[str, Any], forks: Sequence[Fork], out: Path, runs: Path) -> None:
        """Take engines that were started."""
        self.plan, self.forks, self.out, self.runs = plan, forks, out, runs
        self.waves: list[dict[str, Any]] = []
        self.fates: dict[str, str] = {}

    @property
    def alive(self) -> list[Fork]:
        """The engines that were not lost."""
        return [fork for fork in self.forks if not fork.fate]

    def wait_for_all(self, limit_s: float) -> None:
        """Stop each engine as soon as it is up; give up what is not up in time."""
        until = time.monotonic() + limit_s
        waiting = {fork.answers: fork for fork in self.forks}
        while waiting and (left := until - time.monotonic()) > 0:
            for ready in select.select(list(waiting), [], [], left)[0]:
                fork = waiting.pop(ready)
                if (first := fork.answer(5.0)) is not None:
                    fork.start_s = first["start_s"]
                    fork.stop()
                print(f"{fork.name}: {fork.fate or f'up in {fork.start_s:.0f} s'}", flush=True)
        for fork in waiting.values():
            fork.lose(f"not up in {limit_s:.0f} s")
            print(f"{fork.name}: {fork.fate}", flush=True)

    def wave(
        self, fork: Fork, kind: str, size: int, tokens: int, number: int = 0, **tell: Any
    ) -> None:
        """Let one engine serve one wave, after a short one that wakes everything up."""
        short = {"requests": size, "tokens": self.plan["warm_up"]}
        count = max(1, round(tokens * fork.case.get("share", 1)))
        long = {"requests": size, "tokens": count, "profile": kind == "profiled"}
        waves = [short] if kind == "warm-up" else [short, long]
        found = fork.take_turn(tell | {"waves": waves}, self.plan["turn_s"])
        if found is None:
            print(f"{fork.name}: {fork.fate}", flush=True)
            return
        label = f"{kind} wave" if kind != "measured" else f"round {number}"
        found |= {"variant": fork.name, "kind": kind, "round": number, "label": label}
        self.waves.append(found | {"requests": size})
        with (self.out / "waves.jsonl").open("a", encoding="utf-8") as lines:
            print(json.dumps(self.waves[-1]), file=lines)

    def measure(self, number: int) -> None:
        """Let every engine take its turn in one round; each round begins with another."""
        for size, tokens in self.plan["measured"]:
            alive = self.alive
            first = number % len(alive) if alive else 0
            for fork in alive[first:] + alive[:first]:
                if self.takes_part(fork, number):
                    start = time.monotonic()
                    self.wave(fork, "measured", size, tokens, number)
                    fork.turn_s = max(fork.turn_s, time.monotonic() - start)

    def takes_part(self, fork: Fork, number: int) -> bool:
        """Tell whether an engine is measured in a round."""
        return number < int(fork.case.get("rounds", self.plan["rounds"]))

    def needed_s(self, number: int) -> float:
        """Return what a round will take, from the longest turns so far."""
        turns = [fork.turn_s for fork in self.alive if self.takes_part(fork, number)]
        return sum(turns) * len(self.plan["measured"])

    def trace(self) -> None:
        """Arm the tracer of each engine for one wave."""
        size, tokens = self.plan["traced"]
        for fork in self.alive:
            wrap, folder = self.runs / fork.name / "plan.json", self.runs / f"{fork.name}.trace"
            if wrap.exists():
                folder.mkdir()
                shutil.copy(wrap, folder)
                arm = {"do": "arm", "dir": str(folder)}
                self.wave(fork, "traced", size, tokens, tell=[arm], tell_after=[DISARM])

    def windows(self) -> None:
        """Let the tracer measure its own cost, in windows, for each way to trace."""
        how = self.plan.get("windows", {})
        for kind in [one for one in WINDOWS if one in how]:
            for fork in [one for one in self.alive if kind in one.case.get("windows", ())]:
                folder = self.runs / f"{fork.name}.{kind}"
                folder.mkdir()
                shutil.copy(self.runs / fork.name / "plan.json", folder)
                arm = {"do": "arm", "dir": str(folder), "windows": how[kind], **WINDOWS[kind]}
                told = [{"tell": [arm]}, *[{}] * (how["waves"] - 2), {"tell_after": [DISARM]}]
                for number, tell in enumerate(told):
                    size, tokens = how["wave"]
                    self.wave(fork, kind, size, tokens, number, **tell)

    def profile(self) -> None:
        """Let engines serve a wave under SGLang's profiler, and one like it before and after."""
        for fork in [one for one in self.alive if one.case.get("profiled")]:
            for number, kind in enumerate(("bare", "profiled", "bare")):
                size, tokens = self.plan["profiled"]
                self.wave(fork, kind, size, tokens, number)

    def write(self) -> str:
        """Write and return the table as it is now."""
        fates = {fork.name: fork.fate for fork in self.forks if fork.fate}
        cases = [fork.case for fork in self.forks]
        text = table(cases, self.waves, fates, self.runs)
        (self.out / "table.txt").write_text(text + "\n", "utf-8")
        (self.out / "variants.json").write_text(json.dumps([cases, fates]), "utf-8")
        return text


def started(plan: dict[str, Any], packed: Path, agent: Path, work: Path) -> Iterator[Fork]:
    """Make the trees and yield their engines, started."""
    for number, variant in enumerate(plan["variants"]):
        case = {"port": 31000 + 50 * number, "tracer": "dormant"} | variant
        folder = work / "runs" / case["name"]
        folder.mkdir(parents=True, exist_ok=True)
        wrap = packed / case.get("wrap_plan", f"{case['name']}.plan.json")
        if wrap.exists():
            shutil.copy(wrap, folder / "plan.json")
        else:
            case["tracer"] = "off"
        if "stand_in" not in case:
            case["path"] = str(tree_of(case, packed, SITE, work))
        mine = packed / case["agent"] if "agent" in case else agent
        yield Fork(case, folder, environment(case, folder, folder / "plan.json", mine))


def tree_of(variant: dict[str, Any], packed: Path, site: Path, work: Path) -> Path:
    """Make the tree of a variant; return the folder that it is imported from."""
    patches = [packed / name for name in variant.get("patches", [])]
    return copy_tree(site, work / "trees" / variant["name"], patches)


def prepare(plan: dict[str, Any]) -> None:
    """Set the size of the models, and write the weights that engines would write at once."""
    os.environ |= {"LAYERS": str(plan["layers"]), "HIDDEN": str(plan["hidden"])}
    os.environ["MODELS"] = str(WORK / "models")
    if any(variant.get("algorithm") == "STANDALONE" for variant in plan["variants"]):
        write = "from benchmarks.gpu.engine import write_checkpoints as w; w()"
        subprocess.run([sys.executable, "-c", write], cwd=HERE.parent.parent, check=True)


def run(
    plan: dict[str, Any], packed: Path, agent: Path, out: Path, work: Path, seconds: float
) -> str:
    """Start all engines, let them take turns while there is time, and return the table."""
    until = time.monotonic() + seconds
    out.mkdir(parents=True, exist_ok=True)
    forks: list[Fork] = []
    turns = Turns(plan, forks, out, work / "runs")
    try:
        forks.extend(started(plan, packed, agent, work))
        turns.wait_for_all(plan["start_s"])
        for kind in ("warm-up", "checked"):
            for size, tokens in plan["checked"]:
                for fork in turns.alive:
                    turns.wave(fork, kind, size, tokens)
        turns.write()
        for number in range(plan["rounds"]):
            reserve_s = TRACE_TURN_S * len(turns.alive) + PACKING_S + plan.get("after_s", 0)
            if until - time.monotonic() < turns.needed_s(number) + reserve_s:
                print(f"no time for round {number} of {plan['rounds']}", flush=True)
                break
            turns.measure(number)
            turns.write()
        turns.windows()
        turns.profile()
        turns.trace()
    finally:
        for fork in forks:
            fork.end()
        text = turns.write()
        with tarfile.open(out / "runs.tar.xz", "w:xz", preset=1) as tar:
            tar.add(work / "runs", arcname="runs")
    return text


def pack(plan: dict[str, Any], packed: Path, site: Path, work: Path) -> None:
    """Write the wrap plan of every variant; a patch that does not fit ends it here."""
    from specmap.trace.plan import to_json
    from specmap.traced import plan_for

    for variant in plan["variants"]:
        place = packed / variant.get("wrap_plan", f"{variant['name']}.plan.json")
        tree = tree_of(variant, packed, site, work)
        if not place.exists():
            place.write_text(to_json(plan_for(tree / "sglang")[1]), "utf-8")
        print(f"{variant['name']}: {place}", flush=True)


def dry_plan() -> dict[str, Any]:
    """Return a plan of stand-ins: two that agree, a slow one, and four that go wrong."""
    kinds: dict[str, dict[str, Any]] = {
        "unmodified": {},
        "fixed": {},
        "broken": {"rate": 500},
        "other-tokens": {"differs_at": 12},
        "dies": {"dies_in": 7},
        "hangs": {"hangs_in": 7},
        "never-up": {"never_starts": True},
    }
    variants: list[dict[str, Any]] = [
        {"name": name, "base": "unmodified", "stand_in": {"rate": 2000} | how}
        for name, how in kinds.items()
    ]
    variants[2] |= {"share": 0.5, "rounds": 2}
    return {
        "warm_up": 2, "checked": [[1, 40], [4, 40]], "measured": [[4, 40]], "rounds": 3,
        "traced": [1, 4], "start_s": 3, "turn_s": 1.5, "variants": variants,
    }  # fmt: skip


def main(verb: str, *words: str) -> None:
    """Do what the first word says."""
    if verb == "dry":
        out = Path(words[0])
        print(run(dry_plan(), out, out, out, out / "work", 60))
        return
    if verb == "table":
        out = Path(words[0])
        cases, fates = json.loads((out / "variants.json").read_bytes())
        lines = (out / "waves.jsonl").read_text("utf-8").splitlines()
        print(table(cases, [json.loads(line) for line in lines], fates, Path(words[1])))
        return
    plan, packed = json.loads(Path(words[0]).read_bytes()), Path(words[1])
    if verb == "pack":
        pack(plan, packed, Path(words[2]), Path(words[3]))
        return
    shutil.rmtree(WORK, ignore_errors=True)
    prepare(plan)
    print(run(plan, packed, Path(words[2]), Path(words[3]), WORK, float(words[4])))


if __name__ == "__main__":
    main(*sys.argv[1:])
