from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from specmap.codemap.condition import FALSE, TRUE, atoms_of
from specmap.codemap.graph import CodeMap
from specmap.report import RENDERERS, RenderOptions, as_json

ROOT = Path(__file__).parents[2]
SCHEMA: dict[str, Any] = json.loads(
    (ROOT / "docs/schema/codemap-1.0.schema.json").read_text(encoding="utf-8")
)
OPTIONS = [RenderOptions(), RenderOptions(("EAGLEWorker",)), RenderOptions((), ("verify",))]


def document(sample: CodeMap, options: RenderOptions) -> Any:
    return json.loads(RENDERERS["json"].render(sample, options))


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("options", OPTIONS)
def test_rendered_maps_are_valid(sample: CodeMap, options: RenderOptions) -> None:
    jsonschema.Draft202012Validator(SCHEMA).validate(document(sample, options))


def test_the_schema_refuses_what_the_format_does_not_know(sample: CodeMap) -> None:
    data = document(sample, RenderOptions())
    data["workers"][0]["phases"][0]["name"] = "prefill"
    data["edges"][0]["colour"] = "red"
    data["workers"][0]["selected_when"]["tree"] = ["xor", ["atom", 0]]
    broken = list(jsonschema.Draft202012Validator(SCHEMA).iter_errors(data))
    assert {error.absolute_path[0] for error in broken} == {"workers", "edges"}
    assert len(broken) == 3


def test_every_key_is_described() -> None:
    todo: list[Any] = [SCHEMA]
    while todo:
        value = todo.pop()
        if isinstance(value, dict):
            for name, entry in value.get("properties", {}).items():
                assert entry.get("description"), name
            todo += value.values()
        elif isinstance(value, list):
            todo += value


@pytest.mark.parametrize("indent", [None, 2])
def test_round_trip(sample: CodeMap, indent: int | None) -> None:
    text = as_json.dumps(sample, indent)
    loaded = as_json.load(text)
    assert loaded == sample
    assert as_json.dumps(loaded, indent) == text


@pytest.mark.parametrize("indent", [None, 0, 2])
def test_the_layout_is_that_of_the_standard_library(sample: CodeMap, indent: int | None) -> None:
    odd = replace(sample, target='é "quoted" \x7f\n🙂', files=())
    text = as_json.dumps(odd, indent)
    separators = (",", ":") if indent is None else None
    assert text == json.dumps(json.loads(text), indent=indent, separators=separators)
    assert json.loads(text)["target"] == odd.target


def test_a_condition_keeps_where_its_atoms_stand(sample: CodeMap) -> None:
    loaded = as_json.load(as_json.dumps(sample))
    spans = [
        list(map(str, (atom.span for atom in atoms_of(worker.selected_when))))
        for worker in (sample.workers[0], loaded.workers[0])
    ]
    assert spans[0] == spans[1]
    assert spans[0][0] == "sglang/srt/speculative/spec_info.py:75"


def test_the_form_of_a_condition(sample: CodeMap) -> None:
    selected = document(sample, RenderOptions())["workers"][0]["selected_when"]
    assert selected["text"] == (
        "self.is_eagle() and not server_args.enable_multi_layer_eagle"
        " and server_args.disable_overlap_schedule"
    )
    assert selected["tree"] == ["and", ["atom", 0], ["not", ["atom", 1]], ["atom", 2]]
    assert selected["atoms"][1] == {
        "text": "server_args.enable_multi_layer_eagle",
        "kind": "launch",
        "file": "sglang/srt/speculative/spec_info.py",
        "line": 60,
        "end_line": 60,
    }


def test_constants(sample: CodeMap) -> None:
    phases = document(sample, RenderOptions(("EAGLEWorker",), ("draft_prefill",)))["workers"][0][
        "phases"
    ]
    assert phases[0]["graph_when"] == {"text": "never", "tree": ["or"], "atoms": []}
    assert phases[0]["arms"][0]["condition"] == {"text": "always", "tree": ["and"], "atoms": []}
    loaded = as_json.load(as_json.dumps(sample)).workers[0].phases[1]
    assert (loaded.graph_when, loaded.arms[0].condition) == (FALSE, TRUE)


def test_a_reader_ignores_keys_of_a_newer_minor_version(sample: CodeMap) -> None:
    data = json.loads(as_json.dumps(sample))
    data["schema"] = "1.7"
    data["later"] = [1]
    data["workers"][0]["later"] = True
    assert as_json.load(json.dumps(data)).workers == sample.workers


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "not a code map"),
        ("[]", "no schema version"),
        ('{"schema": "x.1"}', "no schema version"),
        ('{"schema": "2.0"}', "schema 2.0 is newer than the 1.x"),
        ('{"schema": "1.0"}', "not a code map of schema 1.0"),
    ],
)
def test_what_is_refused(text: str, says: str) -> None:
    with pytest.raises(as_json.MapFormatError, match=says) as caught:
        as_json.load(text)
    assert "\n" not in str(caught.value)
    assert "scan again" in str(caught.value)
