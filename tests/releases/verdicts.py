"""Verdicts of real releases, for the tests: a launch of Llama, judged."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from specmap.codemap.outcome import Outcome, PhaseOutcome
from specmap.launched import Launch, ready
from specmap.scan.launch.evaluator import Evaluator
from specmap.scan.launch.tables import Inputs
from specmap.verdicts.assuming import marked, with_plain_models
from specmap.verdicts.outcome import Question, judge
from specmap.verdicts.truths import read_batch
from specmap.verdicts.words import VerdictWords, load_words
from tests.releases.launches import DRAFT, LLAMA, MIB, evaluate, library_of, vocabulary
from tests.releases.trees import map_of

CHAIN: dict[str, object] = {
    "speculative_algorithm": "EAGLE3",
    "speculative_num_steps": 3,
    "speculative_eagle_topk": 1,
    "speculative_num_draft_tokens": 4,
}
TREE: dict[str, object] = {**CHAIN, "speculative_eagle_topk": 4, "speculative_num_draft_tokens": 8}
NGRAM: dict[str, object] = {"speculative_algorithm": "NGRAM"}
STANDALONE: dict[str, object] = {"speculative_algorithm": "STANDALONE"}


@cache
def words() -> VerdictWords:
    """Return the table as it ships."""
    return load_words()


def inputs(
    values: Mapping[str, object],
    *,
    gigabytes: int | None = 141,
    sm: int | None = 90,
    env: Mapping[str, str] | None = None,
    platform: str = "cuda",
) -> Inputs:
    """Return a launch of Llama with the given settings on a Hopper card."""
    filled = {"model_path": "meta-llama/Llama-3.1-8B-Instruct", **values}
    if filled.get("speculative_algorithm") in ("EAGLE", "EAGLE3", "STANDALONE"):
        filled.setdefault("speculative_draft_model_path", "someone/draft")
    return Inputs(
        platform=platform,
        values=filled,
        environment=dict(env or {}),
        gpu_memory_mib=None if gigabytes is None else MIB.get(gigabytes, gigabytes * 960),
        sm=sm,
        model_config=LLAMA,
        draft_config=DRAFT,
    )


def judged(
    release: str,
    evaluator: Evaluator,
    *,
    batch: str = "",
    concurrency: int | None = None,
    platform: str = "cuda",
) -> Outcome:
    """Return the outcome of an evaluated launch."""
    question = Question(batch=read_batch(batch, words()), concurrency=concurrency)
    return judge(map_of(release, platform), evaluator, words(), question)


def outcome(
    release: str,
    values: Mapping[str, object],
    *,
    batch: str = "",
    concurrency: int | None = None,
    gigabytes: int | None = 141,
    sm: int | None = 90,
    env: Mapping[str, str] | None = None,
    platform: str = "cuda",
) -> Outcome:
    """Return the outcome of a launch of Llama."""
    given = inputs(values, gigabytes=gigabytes, sm=sm, env=env, platform=platform)
    evaluator = evaluate(release, given)
    return judged(release, evaluator, batch=batch, concurrency=concurrency, platform=platform)


def posted(release: str, text: str) -> Outcome:
    """Return the outcome of a launch command as it was posted, with nothing else known.

    Raises:
        SpecmapError: the release refuses the command line.
    """
    asked = ready(map_of(release), library_of(release), vocabulary(), Launch(text))
    return asked.judged()


def alone(release: str, text: str, **known: object) -> Outcome:
    """Return the outcome of a command alone, with what its caller states besides.

    Raises:
        SpecmapError: the release refuses the command line.
    """
    asked = ready(
        map_of(release),
        library_of(release),
        vocabulary(),
        Launch(text, **known),  # type: ignore[arg-type]
    )
    return asked.judged()


def with_plain(release: str, given: Inputs) -> Outcome:
    """Return the outcome of a launch, with a plain model for what is not given."""
    taken = with_plain_models(given, words(), draft=True)
    sure = judged(release, evaluate(release, given))
    return marked(sure, judged(release, evaluate(release, taken)), ())


def phase(found: Outcome, name: str) -> PhaseOutcome:
    """Return a phase of the worker that runs."""
    assert found.worker is not None, found.workers
    [one] = [p for p in found.worker.phases if p.name == name]
    return one


def verdicts(found: Outcome) -> tuple[str, str, str]:
    """Return the verdicts of draft, verify and draft_extend."""
    draft, verify, extend = (
        phase(found, name).verdict.value for name in ("draft", "verify", "draft_extend")
    )
    return draft, verify, extend
