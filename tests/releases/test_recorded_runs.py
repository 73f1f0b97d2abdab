"""The source's verdicts of recorded launches beside what a GPU ran: they agree."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from specmap.codemap.event import Agreement, Run
from specmap.join import joined
from specmap.launched import Launch, judge_launch
from specmap.recorded import Question, reported
from specmap.reported import Request, report
from specmap.traced import read_run
from tests.releases.trees import map_of
from tests.trace.recorded import CASES, MAX_BS_2, RELEASE, Case, write_pair

pytestmark = pytest.mark.releases

# What benchmarks/gpu/engine.py writes as the config of its models.
MODEL: Mapping[str, Any] = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 1024,
    "intermediate_size": 2048, "num_hidden_layers": 32, "num_attention_heads": 16,
    "num_key_value_heads": 4, "head_dim": 64, "vocab_size": 32000,
    "max_position_embeddings": 4096, "torch_dtype": "bfloat16", "tie_word_embeddings": False,
}  # fmt: skip


def compared(case: Case, folder: Path) -> Run:
    case.write(folder)
    for name, config in (("target", MODEL), ("eagle3", {**MODEL, "num_hidden_layers": 1})):
        (folder / name).mkdir()
        (folder / name / "config.json").write_text(json.dumps(config), "utf-8")
    outcome = judge_launch(
        f"sglang=={RELEASE}",
        Launch(
            case.launch,
            model_config=folder / "target",
            draft_config=folder / "eagle3" if "eagle3" in case.launch else None,
            gpu_memory=141,
            sm=90,
        ),
    )
    return joined(read_run(folder), map_of(RELEASE), outcome)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_decode_cycle_ran_as_the_source_says(case: Case, tmp_path: Path) -> None:
    rows = {row.phase: row for row in compared(case, tmp_path).joined}
    for phase in ("draft", "verify", "draft_extend"):
        assert rows[phase].agreement is Agreement.AGREE, (phase, rows[phase])
    # NGRAM drafts on the CPU: neither phase has a forward, in the source as in the run.
    assert bool(rows["draft"].observed) == (case.name != "ngram")
    assert rows["target_prefill"].agreement is not Agreement.CONTRADICT


# What nvidia-smi says of an H200: 143771 MiB.
H200 = {"gpu_memory_bytes": 143771 << 20, "gpu_sm": 90}


def test_the_card_and_the_model_settle_a_batch_of_four(tmp_path: Path) -> None:
    """The sizes to capture are not among the arguments here: SGLang takes them from the card."""
    write_pair(tmp_path, arguments={"model_path": "/gone", "cuda_graph_bs": None}, **H200)
    for name, config in (("target", MODEL), ("eagle3", {**MODEL, "num_hidden_layers": 1})):
        (tmp_path / f"{name}.json").write_text(json.dumps(config), "utf-8")
    asked = Question(
        target=f"sglang=={RELEASE}",
        model_config=tmp_path / "target.json",
        draft_config=tmp_path / "eagle3.json",
    )
    run = reported(tmp_path, asked, None)
    rows = {row.phase: row.agreement for row in run.joined}
    assert [rows[p] for p in ("draft", "verify", "draft_extend")] == [Agreement.AGREE] * 3
    assert run.notes == ()


@pytest.mark.parametrize(
    ("left_out", "differs"),
    [
        ("--attention-backend triton", "attention_backend fa3, the run triton"),
        ("--mem-fraction-static 0.7", "mem_fraction_static "),
        ("--max-running-requests 8", "max_running_requests 48, the run 8"),
        ("--speculative-algorithm EAGLE3", "worker none, the run EAGLEWorkerV2"),
        ("--speculative-num-steps 3", "it would be refused (sglang/srt/server_args.py:"),
        ("--cuda-graph-max-bs 2", "cuda_graph_max_bs 256, the run 2"),
        ("--max-total-tokens 32768", ""),  # a server without it writes what it found room for
    ],
)
def test_a_launch_that_lacks_what_the_run_set_is_not_its(
    tmp_path: Path, left_out: str, differs: str
) -> None:
    MAX_BS_2.write(tmp_path)
    assert left_out in MAX_BS_2.launch
    launch = Launch(MAX_BS_2.launch.replace(left_out, ""), gpu_memory=141, sm=90)
    made = report(Request((f"sglang=={RELEASE}",), tmp_path, launch))
    told = "the launch given is not that of the run and is left out: "
    assert [differs in note for note in made.notes if note.startswith(told)] == (
        [True] if differs else []
    )
