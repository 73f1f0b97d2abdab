"""For which members the methods of an enum hold."""

from __future__ import annotations

import ast

from specmap.scan.enums import methods_of

MODES = """
class Mode(IntEnum):
    EXTEND = auto()
    DECODE = auto()
    VERIFY = auto()
    IDLE = auto()

    def is_decode(self):
        return self == Mode.DECODE

    def is_graph(self):
        \"\"\"Modes that are captured.\"\"\"
        return self in (Mode.DECODE, Mode.VERIFY) or self == Mode.IDLE

    def is_extend(self, wide: bool = False):
        return self == Mode.EXTEND or (self == Mode.VERIFY if wide else False)

    def is_busy(self):
        return not self.is_idle()

    def is_idle(self):
        return self == Mode.IDLE

    def is_small(self):
        return self.value < LIMIT
"""


def test_members_follow_from_comparisons_methods_and_defaults() -> None:
    (enum,) = ast.parse(MODES).body
    assert isinstance(enum, ast.ClassDef)
    assert {name: sorted(members) for name, members in methods_of(enum).items()} == {
        "is_decode": ["DECODE"],
        "is_graph": ["DECODE", "IDLE", "VERIFY"],
        "is_extend": ["EXTEND"],
        "is_busy": ["DECODE", "EXTEND", "VERIFY"],
        "is_idle": ["IDLE"],
    }
