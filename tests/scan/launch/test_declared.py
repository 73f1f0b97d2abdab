from __future__ import annotations

from pathlib import Path

import pytest

from specmap.errors import TargetError
from specmap.scan.launch.declared import Argument, Declarations, read
from specmap.scan.launch.unknown import Unknown
from specmap.scan.vocabulary import load_vocabulary
from tests.scan.launch.trees import ANNOTATED, ASSEMBLED, BY_HAND
from tests.scan.trees import plant

WORDS = load_vocabulary()


@pytest.fixture
def by_hand(tmp_path: Path) -> Declarations:
    return read(plant(tmp_path, BY_HAND), WORDS)


@pytest.fixture
def annotated(tmp_path: Path) -> Declarations:
    return read(plant(tmp_path, ANNOTATED), WORDS)


@pytest.fixture
def assembled(tmp_path: Path) -> Declarations:
    return read(plant(tmp_path, ASSEMBLED), WORDS)


def shape(argument: Argument) -> tuple[object, ...]:
    return (argument.field, argument.kind, argument.type_name, argument.choices)


def test_arguments_registered_by_hand(by_hand: Declarations) -> None:
    flags = by_hand.by_flag
    assert by_hand.release == "0.5.9"
    assert shape(flags["--model"]) == ("model_path", "value", "str", None)
    assert flags["--model"].required
    assert shape(flags["--tp-size"]) == ("tp_size", "value", "int", None)
    assert shape(flags["--cuda-graph-bs"]) == ("cuda_graph_bs", "list", "int", None)
    assert flags["--attention-backend"].choices == ("triton", "fa3")
    assert flags["--kind"].choices == ("auto", "a", "b")
    assert flags["--open-kind"].choices is None
    assert shape(flags["--enable-x"]) == ("enable_x", "flag", "str", None)
    assert flags["--lora"].action == "either"
    assert flags["--override"].type_name == "json.loads"
    assert (flags["--gone"].action, flags["--gone"].deprecated) == ("ignore", "--kind")


def test_where_an_argument_stands(by_hand: Declarations) -> None:
    span = by_hand.by_flag["--tp-size"].span
    lines = BY_HAND["sglang/srt/server_args.py"].split("\n")
    assert span.file == "sglang/srt/server_args.py"
    assert "add_argument" in lines[span.line - 1]
    assert '"--tensor-parallel-size", "--tp-size"' in lines[span.line]
    assert span.end_line == span.line + 2
    field = by_hand.fields["tp_size"].span
    assert lines[field.line - 1].strip() == "tp_size: int = 1"


def test_defaults(by_hand: Declarations) -> None:
    assert by_hand.fields["max_tokens"].default == 8192
    assert by_hand.defaults["max_tokens"] == 8192
    assert by_hand.fields["enable_x"].default is True
    assert by_hand.defaults["enable_x"] is False
    assert by_hand.defaults["urls"] == ()
    assert by_hand.defaults["port"] == Unknown("find_port()")
    assert "config" not in by_hand.defaults


def test_arguments_generated_from_fields(annotated: Declarations) -> None:
    flags = annotated.by_flag
    assert flags["--model-path"].required and flags["--model"].flags[0] == "--model-path"
    assert shape(flags["--tensor-parallel-size"]) == ("tp_size", "value", "int", None)
    assert flags["--cuda-graph-max-bs-prefill"].type_name == "int"
    assert shape(flags["--cuda-graph-bs-decode"])[:3] == ("cuda_graph_bs_decode", "list", "int")
    assert flags["--graph"].choices == ("full", "disabled")
    assert flags["--backend"].choices == ("full", "disabled")
    assert flags["--backend"].default == "full"
    assert flags["--chunk"].type_name == "human_readable_int"
    assert annotated.fields["chunk"].fallback == 64
    assert flags["--gemm-backend"].field == "gemm"
    assert flags["--disable-x"].kind == "flag"
    assert "--window" not in flags and annotated.fields["window"].default is None
    assert flags["--paths"].nargs == "*"


def test_old_spellings(annotated: Declarations) -> None:
    old = annotated.by_flag["--cuda-graph-max-bs"]
    assert old.field == "cuda_graph_max_bs_decode"
    assert old.deprecated == "--cuda-graph-max-bs-decode"
    assert annotated.by_flag["--disable-cuda-graph"].field == "disable_cuda_graph"
    const = annotated.by_flag["--disable-graph"]
    assert (const.field, const.kind, const.stored) == ("graph", "flag", "disabled")
    assert annotated.by_flag["--old"].refused == "use --graph"


def test_fields_of_several_classes(assembled: Declarations) -> None:
    assert list(assembled.fields) == [
        "algorithm",
        "cuda_graph_max_bs_decode",
        "model_path",
        "cuda_graph_max_bs_prefill",
        "metrics",
        "sampling",
    ]
    assert assembled.fields["algorithm"].span.file == "sglang/srt/arg_groups/fields/spec.py"
    assert assembled.fields["metrics"].default == ()
    assert assembled.by_flag["--sampling"].default == "pytorch"
    assert assembled.by_flag["--sampling"].choices is None


def test_a_tree_without_the_class(tmp_path: Path) -> None:
    plant(tmp_path, {"sglang/__init__.py": "", "sglang/srt/server_args.py": "x = 1\n"})
    with pytest.raises(TargetError, match=r"no class ServerArgs in sglang\.srt\.server_args"):
        read(tmp_path, WORDS)
