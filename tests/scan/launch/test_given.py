from __future__ import annotations

from pathlib import Path

from specmap.scan.launch.command import read
from specmap.scan.launch.declared import Declarations
from specmap.scan.launch.declared import read as read_declared
from specmap.scan.launch.given import given
from specmap.scan.vocabulary import load_vocabulary
from tests.scan.launch.trees import BY_HAND
from tests.scan.trees import plant

WORDS = load_vocabulary()


def notes(declarations: Declarations, text: str) -> tuple[str, ...]:
    (command,) = read(text, WORDS.arguments)
    return given(declarations, command, WORDS.arguments).notes


def test_a_settings_object_with_every_field_is_a_printed_one(tmp_path: Path) -> None:
    declarations = read_declared(plant(tmp_path, BY_HAND), WORDS)
    fields = ", ".join(f"{name}=None" for name in declarations.fields)
    logged = "try a change with the launch command itself"
    for text in (f"server_args=ServerArgs({fields})", f"[TP0] server_args=ServerArgs({fields})"):
        (note,) = notes(declarations, text)
        assert note.endswith(logged)
    assert notes(declarations, "server_args = ServerArgs(model_path='m', tp_size=8)") == ()
