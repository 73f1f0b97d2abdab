"""The launch arguments of real releases, and what their parsers make of a command line.

Counts were taken by running each release's own ``add_cli_args`` with its imports stubbed.
"""

from __future__ import annotations

from functools import cache

import pytest

from specmap.scan.launch.argv import Given, parse
from specmap.scan.launch.declared import Declarations, read
from specmap.scan.launch.history import load_history
from specmap.scan.launch.unknown import ArgumentError, Unknown
from specmap.scan.vocabulary import load_vocabulary
from tests.releases.trees import checkout_of

pytestmark = pytest.mark.releases

WORDS = load_vocabulary()
HISTORY = load_history()


@cache
def declared(release: str) -> Declarations:
    return read(checkout_of(release).root, WORDS)


def given(release: str, text: str) -> Given:
    return parse(declared(release), ["--model", "m", *text.split()])


@pytest.mark.parametrize(
    ("release", "count"),
    [
        ("0.4.6", 124),
        ("0.4.10", 180),
        ("0.5.3", 246),
        ("0.5.9", 331),
        ("0.5.12", 387),
        ("0.5.14", 420),
        ("0.5.17", 474),
        ("0.5.20", 494),
        ("0.5.23", 531),
    ],
)
def test_every_argument_is_found(release: str, count: int) -> None:
    found = declared(release)
    assert found.release == release
    assert len(found.arguments) == count


@pytest.mark.parametrize("release", ["0.4.6", "0.5.9", "0.5.14", "0.5.23"])
def test_sizes_go_to_their_fields(release: str) -> None:
    names = {"--tp": "tp_size", "--data-parallel-size": "dp_size", "--ep": "ep_size"}
    for flag, field in names.items():
        assert given(release, f"{flag} 4").values[field] == 4


@pytest.mark.parametrize(
    ("release", "flag", "file", "line"),
    [
        ("0.5.9", "--model-path", "sglang/srt/server_args.py", 2893),
        ("0.5.23", "--disable-cuda-graph", "sglang/srt/server_args.py", 410),
        ("0.5.23", "--speculative-num-steps", "sglang/srt/arg_groups/fields/spec.py", 58),
    ],
)
def test_where_an_argument_stands(release: str, flag: str, file: str, line: int) -> None:
    span = declared(release).by_flag[flag].span
    text = (checkout_of(release).root / span.file).read_text("utf-8").split("\n")
    assert (span.file, span.line) == (file, line)
    shown = "\n".join(text[span.line - 1 : span.end_line])
    assert flag in shown or flag.lstrip("-").replace("-", "_") in shown


@pytest.mark.parametrize("release", ["0.5.9", "0.5.12", "0.5.14", "0.5.23"])
def test_a_prefix_is_enough(release: str) -> None:
    assert given(release, "--speculative-num-draft 4").values["speculative_num_draft_tokens"] == 4


@pytest.mark.parametrize("release", ["0.5.20", "0.5.23"])
def test_the_old_capture_limit_is_ambiguous(release: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        given(release, "--cuda-graph-max-bs 2")
    assert str(caught.value).endswith(
        "ambiguous option: --cuda-graph-max-bs could match "
        "--cuda-graph-max-bs-decode, --cuda-graph-max-bs-prefill"
    )


@pytest.mark.parametrize(
    ("release", "text", "field", "value"),
    [
        ("0.5.12", "--cuda-graph-max-bs 2", "cuda_graph_max_bs", 2),
        ("0.5.14", "--cuda-graph-max-bs 2", "cuda_graph_max_bs_decode", 2),
        ("0.5.18", "--cuda-graph-max-bs 2", "cuda_graph_max_bs_decode", 2),
        ("0.5.14", "--cuda-graph-bs 1 2", "cuda_graph_bs_decode", (1, 2)),
        ("0.5.12", "--piecewise-cuda-graph-max-tokens 9", "piecewise_cuda_graph_max_tokens", 9),
        ("0.5.14", "--piecewise-cuda-graph-max-tokens 9", "cuda_graph_max_bs_prefill", 9),
        ("0.5.14", "--piecewise-cuda-graph-tokens 4 8", "cuda_graph_bs_prefill", (4, 8)),
        ("0.5.9", "--enable-piecewise-cuda-graph", "enable_piecewise_cuda_graph", True),
        ("0.5.14", "--disable-piecewise-cuda-graph", "cuda_graph_backend_prefill", "disabled"),
        ("0.5.12", "--disable-cuda-graph", "disable_cuda_graph", True),
        ("0.5.23", "--disable-cuda-graph", "disable_cuda_graph", True),
        ("0.5.23", "--enable-dp-attention", "enable_dp_attention", True),
        ("0.5.23", "--attn-dp-size 2", "attn_dp_size", 2),
        ("0.5.13", "--speculative-draft-window-size 8", "speculative_draft_window_size", 8),
        ("0.5.18", "--speculative-dflash-draft-window-size 8", "speculative_draft_window_size", 8),
        ("0.5.23", "--fp8-gemm-backend triton", "fp8_gemm_runner_backend", "triton"),
        ("0.5.12", "--no-record-nolora-graph", "record_nolora_graph", False),
        ("0.5.12", "--nccl-init-addr a:1", "dist_init_addr", "a:1"),
    ],
)
def test_renames(release: str, text: str, field: str, value: object) -> None:
    assert given(release, text).values[field] == value


def test_an_argument_that_only_warns() -> None:
    found = given("0.5.12", "--enable-piecewise-cuda-graph")
    assert "enable_piecewise_cuda_graph" not in found.values
    assert found.notes == (
        "--enable-piecewise-cuda-graph is deprecated and has no effect; "
        "instead: --enforce-piecewise-cuda-graph",
    )


@pytest.mark.parametrize(
    ("flag", "release", "says"),
    [
        ("--cuda-graph-max-bs", "0.5.20", "last in 0.5.19, gone in 0.5.20"),
        ("--cuda-graph-max-bs", "0.5.20", "--cuda-graph-max-bs-decode in 0.5.14"),
        ("--piecewise-cuda-graph-tokens", "0.5.20", "--cuda-graph-bs-prefill in 0.5.14"),
        ("--enable-piecewise-cuda-graph", "0.5.14", "last in 0.5.13, gone in 0.5.14"),
        ("--enable-piecewise-cuda-graph", "0.5.3", "added in 0.5.4"),
        ("--speculative-dflash-draft-window-size", "0.5.20", "last in 0.5.19"),
        ("--speculative-draft-window-size", "0.5.11", "added in 0.5.12"),
        ("--attn-dp-size", "0.5.20", "added in 0.5.22"),
        ("--enable-double-sparsity", "0.5.23", "last in 0.5.10"),
    ],
)
def test_history(flag: str, release: str, says: str) -> None:
    assert says in HISTORY.about(flag, release)


@pytest.mark.parametrize("release", ["0.4.6", "0.5.9", "0.5.12", "0.5.17", "0.5.23"])
def test_the_history_agrees_with_a_release(release: str) -> None:
    here = HISTORY.releases.index(release)
    listed = {
        flag
        for flag, ranges in HISTORY.ranges.items()
        if any(
            HISTORY.releases.index(first) <= here <= HISTORY.releases.index(last)
            for first, last in ranges
        )
    }
    assert listed == set(declared(release).by_flag)


@pytest.mark.parametrize(
    ("release", "field", "value"),
    [
        ("0.5.9", "speculative_algorithm", None),
        ("0.5.12", "page_size", None),
        ("0.5.9", "cuda_graph_bs", None),
        ("0.5.23", "speculative_attention_mode", "prefill"),
        ("0.5.23", "disable_cuda_graph", False),
        ("0.5.12", "max_prefill_tokens", 16384),
        ("0.5.12", "record_nolora_graph", True),
        ("0.5.9", "encoder_urls", ()),
    ],
)
def test_defaults(release: str, field: str, value: object) -> None:
    assert declared(release).defaults[field] == value


def test_hardly_any_default_is_unknown() -> None:
    for release in ("0.5.9", "0.5.12", "0.5.23"):
        defaults = declared(release).defaults
        unknown = {name for name, value in defaults.items() if isinstance(value, Unknown)}
        assert unknown <= {"model_path"}, release


@pytest.mark.parametrize(
    ("release", "flag", "choice", "wrong"),
    [
        ("0.5.9", "--attention-backend", "fa3", "fa2"),
        ("0.5.12", "--speculative-attention-mode", "decode", "both"),
        ("0.5.14", "--cuda-graph-backend-prefill", "full", "graph"),
        ("0.5.23", "--load-format", "auto", "zip"),
    ],
)
def test_choices(release: str, flag: str, choice: str, wrong: str) -> None:
    given(release, f"{flag} {choice}")
    with pytest.raises(ArgumentError, match=f"invalid choice: '{wrong}'"):
        given(release, f"{flag} {wrong}")


def test_the_algorithm_is_a_choice_only_where_it_was() -> None:
    with pytest.raises(ArgumentError, match="invalid choice: 'FOO'"):
        given("0.5.9", "--speculative-algorithm FOO")
    assert given("0.5.23", "--speculative-algorithm FOO").values["speculative_algorithm"] == "FOO"
