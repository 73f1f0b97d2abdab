"""Sources as Python reads them: PEP 263, BOM, line ends."""

from __future__ import annotations

import ast

import pytest

from specmap.codemap.source import lines_of, text_of

TEXT = "# größer\nword = 'ß'\n"


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (TEXT.encode(), "ß"),
        (b"\xef\xbb\xbf" + TEXT.encode(), "ß"),
        (b"# -*- coding: latin-1 -*-\n" + TEXT.encode("latin-1"), "ß"),
        (b"#!/usr/bin/python\n# vim: set fileencoding=cp1251 :\nword = '\xdf'\n", "Я"),
        (TEXT.replace("\n", "\r\n").encode(), "ß"),
        (TEXT.replace("\n", "\r").encode(), "ß"),
    ],
)
def test_the_text_is_what_python_reads(data: bytes, word: str) -> None:
    assert text_of(data).endswith(f"\nword = '{word}'\n")
    for read in (data, text_of(data)):
        (stored,) = ast.parse(read).body
        assert isinstance(stored, ast.Assign)
        assert ast.literal_eval(stored.value) == word


def test_what_declares_nonsense_is_still_text() -> None:
    assert text_of(b"# coding: klingon\nx = 1\n") == "# coding: klingon\nx = 1\n"
    assert text_of(b"x = '\xdf'\n") == "x = '\ufffd'\n"


def test_lines_are_those_that_python_counts() -> None:
    text = "a = '\x0c\x1c\u2028'\n\x0c\nb = 2\n"
    assert lines_of(text)[ast.parse(text).body[1].lineno - 1] == "b = 2"
    assert lines_of("x\n") == ["x"]
    assert lines_of("x") == ["x"]
