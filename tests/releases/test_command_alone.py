"""Launches judged from their command alone: no machine and no model is stated.

What only an assumed model settles is marked; the words are those that were measured or read
in the source (see ``test_verdicts``).
"""

from __future__ import annotations

import pytest

from tests.releases.test_verdicts import ALL_EAGER, ALL_GRAPH, ONLY_VERIFY, TRITON
from tests.releases.verdicts import alone, outcome, phase, verdicts

pytestmark = pytest.mark.releases

HEAD = "--model-path some/model --speculative-draft-model-path some/draft "
CHAIN_TEXT = (
    HEAD + "--speculative-algorithm EAGLE3 --speculative-num-steps 3 --speculative-eagle-topk 1 "
    "--speculative-num-draft-tokens 4 "
)
TRITON_TEXT = CHAIN_TEXT + "--attention-backend triton "
V1_TEXT = TRITON_TEXT + "--disable-overlap-schedule "
TREE_TEXT = CHAIN_TEXT.replace("topk 1", "topk 4").replace("tokens 4", "tokens 8")


@pytest.mark.parametrize(
    ("release", "text", "batch", "worker", "expected"),
    [
        ("0.5.12", TRITON_TEXT, "", "EAGLEWorkerV2", ALL_GRAPH),
        ("0.5.12", V1_TEXT, "", "EAGLEWorker", ALL_GRAPH),
        ("0.5.12", V1_TEXT + "--disable-cuda-graph", "", "EAGLEWorker", ALL_EAGER),
        ("0.5.12", V1_TEXT + "--cuda-graph-max-bs 2", "bs=4", "EAGLEWorker", ALL_EAGER),
        ("0.5.12", V1_TEXT + "--cuda-graph-max-bs 2", "bs=2", "EAGLEWorker", ALL_GRAPH),
        ("0.5.12", "--model-path m --speculative-algorithm NGRAM", "", "NGRAMWorker", ONLY_VERIFY),
        ("0.5.17", TRITON_TEXT, "", "EAGLEWorkerV2", ALL_GRAPH),
        ("0.5.17", TRITON_TEXT + "--disable-cuda-graph", "", "EAGLEWorkerV2", ALL_EAGER),
        (
            "0.5.12",
            CHAIN_TEXT + "--attention-backend flashinfer",
            "",
            "EAGLEWorkerV2",
            ("GRAPH", "GRAPH", "EAGER"),
        ),
        ("0.5.23", CHAIN_TEXT + "--attention-backend flashinfer", "", "EAGLEWorkerV2", ALL_GRAPH),
        ("0.5.12", TREE_TEXT, "", "EAGLEWorker", ALL_GRAPH),
        ("0.5.9", CHAIN_TEXT, "", "EAGLEWorker", ALL_GRAPH),
    ],
)
def test_from_the_command_alone(
    release: str, text: str, batch: str, worker: str, expected: tuple[str, str, str]
) -> None:
    """No machine and no model is stated: a plain model is assumed, and said so."""
    found = alone(release, text, batch=batch)
    assert found.worker is not None
    assert found.worker.name == worker
    assert verdicts(found) == expected
    assert [a.option for a in found.assumptions if a.option][:1] == ["--model-config"]
    if batch == "bs=4":
        notes = [term.note for term in phase(found, "verify").deciding]
        assert "bs 4 > largest captured 2" in notes


def test_what_needs_the_model_is_marked() -> None:
    """Whether the model is a hybrid one decides about the default graphs of 0.5.17."""
    found = alone("0.5.17", TRITON_TEXT)
    assert phase(found, "verify").assumed
    given = outcome("0.5.17", TRITON)
    assert not any(one.assumed for worker in given.workers for one in worker.phases)


def test_a_plain_model_that_the_command_rules_out_is_not_assumed() -> None:
    """0.5.12 needs MLA for this backend: nothing is said that only a plain model would say."""
    found = alone("0.5.12", CHAIN_TEXT + "--attention-backend trtllm_mla")
    assert found.refusal is None


@pytest.mark.parametrize("before", ["SGLANG_ENABLE_SPEC_V2=$V2 ", "source env.sh\n"])
def test_a_variable_that_the_text_leaves_open_is_asked_for(before: str) -> None:
    """0.5.9 selects its second worker by this variable (``spec_info.py``)."""
    found = alone("0.5.9", f"{before}python -m sglang.launch_server {CHAIN_TEXT}")
    assert {worker.name for worker in found.workers} == {"EAGLEWorker", "EAGLEWorkerV2"}
    assert not any(worker.certain for worker in found.workers)
    assert "env SGLANG_ENABLE_SPEC_V2 (--env)" in found.missing


@pytest.mark.parametrize("release", ["0.5.9", "0.5.23"])
def test_a_command_without_its_model_is_not_refused(release: str) -> None:
    found = alone(release, CHAIN_TEXT.removeprefix("--model-path some/model "))
    assert found.refusal is None
    assert "EAGLEWorkerV2" in {worker.name for worker in found.workers}
    assert f"--model-path is not given; SGLang {release} requires it" in found.notes
