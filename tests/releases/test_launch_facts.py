"""Launch facts of real releases: worked examples and refusals that were read in the source.

The values were found by cutting the argument code out of each release and running it, and by
reading the lines named here; none of them comes from specmap.
"""

from __future__ import annotations

import pytest

from specmap.scan.launch.tables import Inputs
from tests.releases.launches import DRAFT, LLAMA, evaluate, launch

pytestmark = pytest.mark.releases

RELEASES = ("0.5.9", "0.5.12", "0.5.23")
# Capture sizes with speculation for a maximum of 256, cut at a request pool of 48.
CUT_AT_48 = (*range(1, 9), *range(10, 33, 2), 40, 44, 48)
CHAIN: dict[str, object] = {
    "speculative_algorithm": "EAGLE3",
    "speculative_num_steps": 3,
    "speculative_eagle_topk": 1,
    "speculative_num_draft_tokens": 4,
}
TREE: dict[str, object] = {**CHAIN, "speculative_eagle_topk": 4, "speculative_num_draft_tokens": 8}
AUTO: dict[str, object] = {"speculative_algorithm": "EAGLE3"}
NGRAM: dict[str, object] = {"speculative_algorithm": "NGRAM"}
STANDALONE: dict[str, object] = {"speculative_algorithm": "STANDALONE"}


def _settled(release: str, gigabytes: int, values: dict[str, object], names: str) -> list[object]:
    facts = launch(release, values, gigabytes=gigabytes).facts()
    assert facts.refused is None, facts.refused
    return [facts.value(name) for name in names.split()]


@pytest.mark.parametrize(
    ("release", "gigabytes", "values", "backend", "overlap_off", "numbers"),
    [
        ("0.5.9", 80, CHAIN, "fa3", True, (3, 1, 4)),
        ("0.5.9", 141, TREE, "flashinfer", True, (3, 4, 8)),
        ("0.5.9", 80, AUTO, "fa3", True, (5, 4, 8)),
        ("0.5.9", 141, NGRAM, "fa3", True, (None, 10, 12)),
        ("0.5.12", 80, CHAIN, "fa3", False, (3, 1, 4)),
        ("0.5.12", 141, TREE, "flashinfer", True, (3, 4, 8)),
        ("0.5.12", 80, AUTO, "fa3", False, (5, 4, 8)),
        ("0.5.12", 141, NGRAM, "fa3", True, (None, 10, 12)),
        ("0.5.12", 80, {**STANDALONE, "disable_cuda_graph": True}, "fa3", False, (3, 1, 4)),
        ("0.5.23", 80, CHAIN, "fa3", False, (3, 1, 4)),
        ("0.5.23", 141, TREE, "flashinfer", False, (3, 4, 8)),
        ("0.5.23", 141, NGRAM, "fa3", False, (1, 10, 12)),
        ("0.5.23", 80, STANDALONE, "fa3", False, (3, 1, 4)),
    ],
)
def test_worked_examples(
    release: str,
    gigabytes: int,
    values: dict[str, object],
    backend: str,
    overlap_off: bool,
    numbers: tuple[int | None, ...],
) -> None:
    names = (
        "attention_backend disable_overlap_schedule page_size max_running_requests "
        "speculative_num_steps speculative_eagle_topk speculative_num_draft_tokens"
    )
    expected = [backend, overlap_off, 1, 48, *numbers]
    assert _settled(release, gigabytes, values, names) == expected


@pytest.mark.parametrize("gigabytes", [80, 141])
@pytest.mark.parametrize("release", RELEASES)
def test_the_list_at_capture(release: str, gigabytes: int) -> None:
    evaluator = launch(release, CHAIN, gigabytes=gigabytes)
    assert evaluator.pool_range() == (48, 48)
    assert evaluator.capture_sizes().value == CUT_AT_48


@pytest.mark.parametrize(
    ("release", "name"),
    [
        ("0.5.9", "cuda_graph_max_bs"),
        ("0.5.12", "cuda_graph_max_bs"),
        ("0.5.23", "cuda_graph_max_bs_decode"),
    ],
)
def test_a_capture_limit(release: str, name: str) -> None:
    assert launch(release, {**CHAIN, name: 2}).capture_sizes().value == (1, 2)


@pytest.mark.parametrize("release", ["0.5.12", "0.5.14"])
def test_experts_on_other_ranks_take_whole_groups_of_tokens(release: str) -> None:
    """Without DP attention each size is a multiple of the 8 ranks: one token a request in drafts.

    A target that verifies 4 tokens a request captures every even size.
    """
    name = "cuda_graph_max_bs" if release == "0.5.12" else "cuda_graph_max_bs_decode"
    values = {**CHAIN, "tp_size": 8, "moe_a2a_backend": "deepep", "deepep_mode": "low_latency"}
    assert launch(release, values).capture_sizes().value == (8, 16, 24, 32, 40, 48)
    differ = launch(release, {**values, name: 12}).capture_sizes()
    assert (differ.known, differ.reasons) == (
        False,
        ("one list of captured sizes for draft and target",),
    )
    stopped = launch(release, {**values, name: 4}).capture_stopped()
    assert stopped is not None and stopped.certain and stopped.error == "AssertionError"


@pytest.mark.parametrize(("release", "last"), [("0.5.9", 96), ("0.5.12", 100)])
def test_a_limit_off_the_grid(release: str, last: int) -> None:
    """0.5.9 does not append a maximum that is not on its grid; 0.5.12 does."""
    values = {**CHAIN, "cuda_graph_max_bs": 100, "max_running_requests": 300}
    assert launch(release, values).facts().value("cuda_graph_bs")[-1] == last  # type: ignore[index]


@pytest.mark.parametrize(
    ("gigabytes", "tp", "largest"), [(80, 1, 256), (80, 4, 512), (141, 1, 256), (141, 8, 512)]
)
@pytest.mark.parametrize("release", ["0.5.9", "0.5.12"])
def test_the_default_capture_limit(release: str, gigabytes: int, tp: int, largest: int) -> None:
    [found] = _settled(release, gigabytes, {**CHAIN, "tp_size": tp}, "cuda_graph_max_bs")
    assert found == largest


def _backends(values: dict[str, object]) -> tuple[object, object]:
    config = launch("0.5.23", values).facts().value("cuda_graph_config")
    assert isinstance(config, dict)
    return config["decode"]["backend"], config["prefill"]["backend"]


def test_who_wins_over_whom_0_5_23() -> None:
    """JSON over a backend flag over an off-switch over ``--disable-cuda-graph``."""
    off = {**CHAIN, "disable_cuda_graph": True}
    full = {"decode": {"backend": "full"}}
    assert _backends(CHAIN) == ("full", "breakable")
    assert _backends(off) == ("disabled", "disabled")
    assert _backends({**off, "cuda_graph_config": full}) == ("full", "disabled")
    assert _backends({**CHAIN, "disable_decode_cuda_graph": True}) == ("disabled", "breakable")
    assert _backends({**off, "cuda_graph_backend_decode": "full"}) == ("full", "disabled")


def test_piecewise_graphs_stay_on_0_5_12() -> None:
    values = {**STANDALONE, "disable_cuda_graph": True}
    assert _settled("0.5.12", 80, values, "disable_piecewise_cuda_graph") == [False]


@pytest.mark.parametrize("value", ["0", "1"])
def test_spec_v2_of_0_5_9_is_its_variable(value: str) -> None:
    inputs = Inputs(
        values={"model_path": "a/b", "speculative_draft_model_path": "c/d", **CHAIN},
        environment={"SGLANG_ENABLE_SPEC_V2": value},
        sm=90,
        gpu_memory_mib=81559,
        model_config=LLAMA,
        draft_config=DRAFT,
    )
    facts = evaluate("0.5.9", inputs).facts()
    assert facts.value("disable_overlap_schedule") is (value == "0")


NOT_V2: dict[str, object] = {**TREE, "page_size": 16, "attention_backend": "triton"}
ATTENTION_DP: dict[str, object] = {"tp_size": 2, "dp_size": 2, "enable_dp_attention": True}
PAGED_NGRAM: dict[str, object] = {**NGRAM, "page_size": 16, "attention_backend": "fa3"}


@pytest.mark.parametrize(
    ("release", "values", "place", "line"),
    [
        # steps given, topk not; topk given, steps not
        ("0.5.9", {**AUTO, "speculative_num_steps": 3}, "server_args.py", 2453),
        ("0.5.12", {**AUTO, "speculative_num_steps": 3}, "server_args.py", 3838),
        ("0.5.23", {**AUTO, "speculative_num_steps": 3}, "speculative_hook.py", 1274),
        ("0.5.9", {**AUTO, "speculative_eagle_topk": 4}, "server_args.py", 2423),
        ("0.5.12", {**AUTO, "speculative_eagle_topk": 4}, "server_args.py", 3808),
        ("0.5.23", {**AUTO, "speculative_eagle_topk": 4}, "speculative_hook.py", 1160),
        # a tree on pages with another backend
        ("0.5.9", NOT_V2, "server_args.py", 2457),
        ("0.5.12", NOT_V2, "server_args.py", 3842),
        ("0.5.9", PAGED_NGRAM, "server_args.py", 2490),
        ("0.5.12", PAGED_NGRAM, "server_args.py", 3896),
        ("0.5.23", PAGED_NGRAM, "speculative_hook.py", 1361),
        # attention data parallelism
        ("0.5.9", {**NGRAM, **ATTENTION_DP}, "server_args.py", 2498),
        ("0.5.12", {**NGRAM, **ATTENTION_DP}, "server_args.py", 3904),
        ("0.5.23", {**NGRAM, "tp_size": 2, "attn_dp_size": 2}, "speculative_hook.py", 1369),
        ("0.5.9", {**STANDALONE, **ATTENTION_DP}, "server_args.py", 2358),
        ("0.5.12", {**STANDALONE, **ATTENTION_DP}, "server_args.py", 3738),
        ("0.5.23", {**STANDALONE, "tp_size": 2, "attn_dp_size": 2}, "speculative_hook.py", 1082),
        # pipeline parallelism, FlexAttention, LoRA, DFLASH, pages that do not divide
        ("0.5.9", {**CHAIN, "pp_size": 2}, "server_args.py", 5137),
        ("0.5.12", {**CHAIN, "pp_size": 2}, "server_args.py", 7251),
        ("0.5.23", {**CHAIN, "pp_size": 2}, "validation_hook.py", 132),
        ("0.5.9", {**CHAIN, "attention_backend": "flex_attention"}, "server_args.py", 1851),
        ("0.5.12", {**CHAIN, "attention_backend": "flex_attention"}, "server_args.py", 2679),
        ("0.5.23", {**CHAIN, "attention_backend": "flex_attention"}, "attention_hook.py", 161),
        ("0.5.9", {**CHAIN, "lora_paths": ["a"], "enable_lora": True}, "server_args.py", 5338),
        ("0.5.12", {**CHAIN, "lora_paths": ["a"], "enable_lora": True}, "server_args.py", 7448),
        ("0.5.12", {"speculative_algorithm": "DFLASH"}, "server_args.py", 3601),
        ("0.5.23", {"speculative_algorithm": "DFLASH"}, "speculative_hook.py", 325),
        ("0.5.12", {"speculative_algorithm": "DFLASH", "pp_size": 2}, "server_args.py", 3596),
        ("0.5.23", {"speculative_algorithm": "DFLASH", "pp_size": 2}, "speculative_hook.py", 320),
        ("0.5.12", {"speculative_algorithm": "NOPE"}, "spec_info.py", 54),
        ("0.5.9", {"chunked_prefill_size": 100, "page_size": 64}, "server_args.py", 5180),
        ("0.5.12", {"chunked_prefill_size": 100, "page_size": 64}, "server_args.py", 7288),
        ("0.5.23", {"chunked_prefill_size": 100, "page_size": 64}, "validation_hook.py", 244),
    ],
)
def test_refusals(release: str, values: dict[str, object], place: str, line: int) -> None:
    refused = launch(release, values).facts().refused
    assert refused is not None
    assert refused.span.file.endswith(place)
    assert refused.span.line <= line <= refused.span.end_line


@pytest.mark.parametrize(("release", "line"), [("0.5.9", 2439), ("0.5.12", 3824)])
def test_a_tree_on_trtllm(release: str, line: int) -> None:
    values = {**TREE, "attention_backend": "trtllm_mha"}
    refused = launch(release, values, sm=100).facts().refused
    assert refused is not None
    assert refused.span.line == line


def test_trees_on_pages_are_allowed_0_5_23() -> None:
    assert _settled("0.5.23", 80, NOT_V2, "page_size attention_backend") == [16, "triton"]


def test_a_tree_in_spec_v2_is_refused_0_5_9() -> None:
    inputs = Inputs(
        values={"model_path": "a/b", "speculative_draft_model_path": "c/d", **TREE},
        environment={"SGLANG_ENABLE_SPEC_V2": "1"},
        sm=90,
        gpu_memory_mib=81559,
        model_config=LLAMA,
        draft_config=DRAFT,
    )
    refused = evaluate("0.5.9", inputs).facts().refused
    assert refused is not None
    assert refused.span.line == 2380


def test_a_flag_that_is_overwritten_says_so() -> None:
    """0.5.12: a tree turns the overlap off, SA:3754."""
    values = {**TREE, "disable_overlap_schedule": False}
    [change] = launch("0.5.12", values).facts().changes
    assert (change.name, change.given, change.fact.value) == (
        "disable_overlap_schedule",
        False,
        True,
    )
    assert [o.span.line for o in change.fact.origins if o.span] == [3754]


@pytest.mark.parametrize(
    ("release", "text", "truth"),
    [
        ("0.5.12", "spec_algorithm.is_eagle()", True),
        ("0.5.12", "spec_algorithm.is_ngram()", False),
        ("0.5.12", "server_args.disable_overlap_schedule", False),
        ("0.5.12", "self.speculative_num_steps > 1", True),
        ("0.5.12", "torch.cuda.get_device_capability()[0] < 8", False),
        ("0.5.12", "require_mlp_sync(model_runner.server_args)", False),
        ("0.5.12", "self.graph_runner.can_run(forward_batch)", None),
        ("0.5.23", "check_cuda_graph_backend(Phase.DECODE, Backend.DISABLED)", False),
        ("0.5.23", "get_exec().graph.cuda_graph_config.decode.backend != Backend.DISABLED", True),
        ("0.5.23", "get_parallel().attn_dp_enabled", False),
        ("0.5.23", "get_spec().speculative_num_steps > 1", True),
        ("0.5.23", "envs.SGLANG_DISABLE_DRAFT_EXTEND_CUDA_GRAPH.get()", False),
        ("0.5.23", "shape_key in self._graphs", None),
    ],
)
def test_conditions_of_the_map(release: str, text: str, truth: bool | None) -> None:
    assert launch(release, CHAIN).truth(text).truth is truth
