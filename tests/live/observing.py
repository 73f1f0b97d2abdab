"""The agent in a process of SGLang, and what its log says afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from specmap.codemap.event import Pass, PhaseStats, RankRun, Run
from specmap.codemap.graph import CodeMap
from specmap.codemap.outcome import Outcome
from specmap.launched import Launch, ready
from specmap.trace import launch
from specmap.trace.plan import WrapPlan, to_json
from specmap.trace.read import load_plan, passes_of
from specmap.trace.spool import Kind, ranks_in
from specmap.traced import plan_for, read_run, trace_names
from specmap.verdicts.outcome import judge
from tests.live.jobs import Job
from tests.releases.launches import library_of, vocabulary
from tests.trace.spools import records_of

ONLY_HERE = ("device", "dtype", "model_path", "speculative_draft_model_path")
"""Arguments that a CPU needs, or whose place is a folder of the tests."""


@dataclass(frozen=True, slots=True)
class Observed:
    """What the log of a run says, rank by rank; there is one rank."""

    run: Run
    passes: tuple[Pass, ...]
    captures: int

    @property
    def rank(self) -> RankRun:
        """The one rank."""
        [rank] = self.run.ranks
        return rank

    def phases(self, names: Sequence[str]) -> list[PhaseStats]:
        """Return the statistics of these phases; each of them ran."""
        found = {phase.phase: phase for phase in self.rank.phases}
        return [found[name] for name in names]


@cache
def mapped(release: str) -> tuple[CodeMap, WrapPlan]:
    """Return the map of the release that the environment has installed, and its wrap plan."""
    return plan_for(f"sglang=={release}")


def agent_in(folder: Path, release: str, place: str = "") -> dict[str, str]:
    """Make the folder of a run and return the variables that bring the agent in, armed."""
    folder.mkdir()
    plan = folder.parent / "plan.json" if place else folder / "plan.json"
    plan.write_text(to_json(mapped(release)[1]), "utf-8")
    told = launch.environment_of(
        {}, directory=plan / "run" if place == "no-folder" else folder, options=launch.Options()
    )
    return {**told, "SPECMAP_PLAN": str(plan)}


@cache
def observed(folder: Path) -> Observed:
    """Read the folder of a run to its end."""
    run = read_run(folder)
    plan, names, ranks = load_plan(folder), trace_names(), ranks_in(folder)
    passes = [one for rank in ranks for one in passes_of(folder, rank, plan, names)]
    kinds = [record[2] for rank in ranks for record in records_of(folder, rank)]
    return Observed(run, tuple(passes), kinds.count(Kind.CAPTURE_BEGIN))


@cache
def judged(job: Job, checkpoints: Path) -> Outcome:
    """Return what the source makes of the launch of a job on a GPU."""
    text = ["python -m sglang.launch_server --model-path target"]
    if job.algorithm:
        text.append("--speculative-draft-model-path draft")
    for name, value in job.arguments(checkpoints).items():
        if name not in ONLY_HERE and value is not False:
            values = value if isinstance(value, list) else [value]
            shown = [] if value is True else map(str, values)
            text.append(" ".join([f"--{name.replace('_', '-')}", *shown]))
    asked = Launch(
        " ".join(text),
        env={"SGLANG_ENABLE_SPEC_V2": "1" if job.overlap else "0"},
        model_config=checkpoints / "target",
        draft_config=checkpoints / "draft",
        gpu_memory=141,
        sm=90,
    )
    ready_made = ready(mapped(job.release)[0], library_of(job.release), vocabulary(), asked)
    return judge(ready_made.codemap, ready_made.evaluator, ready_made.words, ready_made.question)
