from __future__ import annotations

from typing import Any

import pytest

from specmap.scan.launch.argv import Given, parse
from specmap.scan.launch.command import read as read_commands
from specmap.scan.launch.declared import Declarations, read
from specmap.scan.launch.given import given
from specmap.scan.launch.unknown import ArgumentError
from specmap.scan.vocabulary import load_vocabulary
from tests.scan.launch.trees import ANNOTATED, ASSEMBLED, BY_HAND
from tests.scan.trees import plant

WORDS = load_vocabulary()


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Declarations]:
    trees = {"by hand": BY_HAND, "annotated": ANNOTATED, "assembled": ASSEMBLED}
    return {
        name: read(plant(tmp_path_factory.mktemp("tree"), files), WORDS)
        for name, files in trees.items()
    }


MODEL = ["--model", "m"]


def parsed(declarations: Declarations, text: str) -> Given:
    return parse(declarations, [*MODEL, *text.split()])


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("--tp-size 2", {"tp_size": 2}),
        ("--tensor-parallel-size=2", {"tp_size": 2}),
        ("--tp 2", {"tp_size": 2}),
        ("--tp-size 2 --tp-size 4", {"tp_size": 4}),
        ("--cuda-graph-bs 1 2 4 --tp-size 2", {"cuda_graph_bs": (1, 2, 4), "tp_size": 2}),
        ("--enable-x", {"enable_x": True}),
        ("--no-lora", {"lora": False}),
        ("--lora", {"lora": True}),
        ('--override {"a":1}', {"override": '{"a":1}'}),
        ("--quant None", {"quant": None}),
        ("--fraction 1e-1", {"fraction": 0.1}),
        ("--max-tokens -1", {"max_tokens": -1}),
        ("--attention-backend fa3", {"attention_backend": "fa3"}),
        ("--open-kind anything", {"open_kind": "anything"}),
        ("--gone", {}),
    ],
)
def test_values(releases: dict[str, Declarations], text: str, values: dict[str, Any]) -> None:
    assert parsed(releases["by hand"], text).values == {"model_path": "m", **values}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("--tp-size x", "argument --tensor-parallel-size/--tp-size: invalid int value: 'x'"),
        ("--tp-size", "expected one argument"),
        ("--cuda-graph-bs", "expected at least one argument"),
        ("--attention-backend foo", "argument --attention-backend: invalid choice: 'foo'"),
        ("--enable-x=1", "ignored explicit argument '1'"),
    ],
)
def test_what_argparse_refuses(releases: dict[str, Declarations], text: str, message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        parsed(releases["by hand"], text)
    assert str(caught.value).startswith("SGLang 0.5.9 refuses this command line: ")
    assert message in str(caught.value)


def test_an_ambiguous_prefix(releases: dict[str, Declarations]) -> None:
    with pytest.raises(ArgumentError) as caught:
        parsed(releases["assembled"], "--cuda-graph-max-bs 2")
    assert str(caught.value) == (
        "SGLang 0.5.23 refuses this command line: ambiguous option: --cuda-graph-max-bs "
        "could match --cuda-graph-max-bs-decode, --cuda-graph-max-bs-prefill"
    )


def test_an_argument_that_is_not_known(releases: dict[str, Declarations]) -> None:
    with pytest.raises(ArgumentError) as caught:
        parse(
            releases["by hand"],
            [*MODEL, "--atention-backend", "fa3", "--tp_sise=2"],
            lambda flag: "added in 9.9" if flag == "--tp_sise" else "",
        )
    assert str(caught.value) == (
        "SGLang 0.5.9 does not know the argument --atention-backend "
        "(nearest: --attention-backend); SGLang 0.5.9 does not know the argument --tp_sise "
        "(added in 9.9; nearest: --tp-size)"
    )


def test_a_word_that_belongs_to_nothing(releases: dict[str, Declarations]) -> None:
    with pytest.raises(ArgumentError, match="does not know the argument stray"):
        parsed(releases["by hand"], "--enable-x stray")


def test_values_that_are_not_known(releases: dict[str, Declarations]) -> None:
    found = parsed(releases["by hand"], "--tp-size $TP --cuda-graph-bs 1 <n> --kind ${K:-a}")
    assert found.values == {"model_path": "m"}
    assert found.unknown_values == {"tp_size": "$TP", "cuda_graph_bs": "1 <n>", "kind": "${K:-a}"}


@pytest.mark.parametrize("word", ["$EXTRA", "${ARGS[@]}", "...", "--$NAME"])
def test_a_word_that_may_be_more_arguments(releases: dict[str, Declarations], word: str) -> None:
    found = parsed(releases["by hand"], f"--enable-x {word} --tp-size 2")
    assert found.values == {"model_path": "m", "enable_x": True, "tp_size": 2}
    assert found.open == (word,)
    assert f"{word} may give more arguments" in found.notes[0]


def test_notes(releases: dict[str, Declarations]) -> None:
    found = parsed(releases["annotated"], "--cuda-graph-max-bs 2 --disable-graph")
    assert found.values["cuda_graph_max_bs_decode"] == 2
    assert found.values["graph"] == "disabled"
    assert found.notes == (
        "--cuda-graph-max-bs is deprecated; instead: --cuda-graph-max-bs-decode",
        "--disable-graph is deprecated",
    )
    found = parsed(releases["by hand"], "--gone")
    assert found.notes == ("--gone is deprecated and has no effect; instead: --kind",)
    found = parse(releases["by hand"], ["--enable-x"])
    assert found.notes == ("--model-path is not given; SGLang 0.5.9 requires it",)


def test_a_retired_argument(releases: dict[str, Declarations]) -> None:
    with pytest.raises(ArgumentError, match="--old: use --graph"):
        parsed(releases["annotated"], "--old")


@pytest.mark.parametrize(
    ("text", "value"),
    [("64", 64), ("8k", 8000), ("8Ki", 8192), ("1.5k", 1500)],
)
def test_sizes_with_a_suffix(releases: dict[str, Declarations], text: str, value: int) -> None:
    assert parsed(releases["annotated"], f"--chunk {text}").values["chunk"] == value


def test_decimals_of_1024s_are_refused(releases: dict[str, Declarations]) -> None:
    with pytest.raises(ArgumentError, match=r"--chunk: invalid suffixed value: '1\.5Ki'"):
        parsed(releases["annotated"], "--chunk 1.5Ki")


def of_text(declarations: Declarations, text: str, files: dict[str, str] | None = None) -> Given:
    command = read_commands(text, WORDS.arguments)[0]
    return given(declarations, command, WORDS.arguments, (files or {}).get)


CONFIG = "model: m\ntp-size: 2\nenable-x: true\ncuda-graph-bs: [1, 2]\noverride: {a: 1}\n"
FROM_CONFIG = {
    "model_path": "m",
    "tp_size": 2,
    "enable_x": True,
    "cuda_graph_bs": (1, 2),
    "override": '{"a": 1}',
}


def test_a_config_file(releases: dict[str, Declarations]) -> None:
    declarations = releases["by hand"]
    assert of_text(declarations, CONFIG).values == FROM_CONFIG
    start = "python -m sglang.launch_server --config c.yaml --tp-size 4"
    found = of_text(declarations, start, {"c.yaml": CONFIG})
    assert found.values == FROM_CONFIG | {"tp_size": 4}
    assert not found.open


def test_a_config_file_that_is_not_there(releases: dict[str, Declarations]) -> None:
    found = of_text(releases["by hand"], "sglang serve --model m --config c.yaml")
    assert found.values == {"model_path": "m"}
    assert found.open == ("c.yaml",)
    assert "c.yaml is not given; any argument that it sets is unknown" in found.notes


def test_a_config_file_in_one_word(releases: dict[str, Declarations]) -> None:
    found = of_text(releases["by hand"], "sglang serve --model m --config=c.yaml")
    assert found.notes[0] == "SGLang reads a config file only as two words: --config FILE"


def test_a_python_call(releases: dict[str, Declarations]) -> None:
    found = of_text(
        releases["by hand"], "sgl.Engine(model_path='m', tp_size=n, cuda_graph_bs=[1, 2])"
    )
    assert found.values == {"model_path": "m", "cuda_graph_bs": (1, 2)}
    assert found.unknown_values == {"tp_size": "{{n}}"}
    with pytest.raises(ArgumentError, match=r"has no field tp_sise \(nearest: tp_size"):
        of_text(releases["by hand"], "Engine(model_path='m', tp_sise=2)")
