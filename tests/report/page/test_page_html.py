from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

import specmap
from specmap.codemap.graph import Problem
from specmap.errors import OutputError
from specmap.report.page import html
from specmap.report.page.data import page
from specmap.report.page.html import render
from tests.report.page.subjects import EVIL, lint, subject, unpacked
from tests.report.sample_outcome import outcome

FOLDER = Path(specmap.__file__).parent / "report/page"


class Elements(HTMLParser):
    """Collects elements as a browser finds them, with the text of scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self._open = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self.texts.append("")
        self._open = True

    def handle_endtag(self, tag: str) -> None:
        self._open = False

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts[-1] += data

    def text(self, tag: str, place: int = 0) -> str:
        return [t for (name, _), t in zip(self.found, self.texts, strict=True) if name == tag][
            place
        ]


def test_the_page_holds_its_data() -> None:
    one = subject(lint=lint(), outcome=outcome())
    data, columns = page([one])
    assert unpacked(render([one])) == (json.loads(json.dumps(data)), columns)


def test_nothing_that_a_tree_or_a_command_says_gets_out_of_the_data() -> None:
    codemap = replace(subject().codemap, problems=(Problem(EVIL, 1, EVIL),))
    evil = subject(
        label=EVIL, codemap=codemap, source=lambda file: f"{EVIL}\n" * 3000, lint=lint(EVIL)
    )
    plain, text = Elements(render([subject()]).decode()), render([evil]).decode()
    parsed = Elements(text)
    assert [tag for tag, _ in parsed.found] == [tag for tag, _ in plain.found]
    assert "alert(1)" not in parsed.text("script") + parsed.text("script", 1)
    assert parsed.text("title") == f"specmap: {EVIL}"
    assert text.count("<!--") == 0
    assert unpacked(text.encode())[0]["sides"][0]["label"] == EVIL


def test_the_policy_lets_nothing_in_but_the_page_itself() -> None:
    parsed = Elements(render([subject()]).decode())
    (policy,) = [a["content"] for t, a in parsed.found if t == "meta" and "http-equiv" in a]
    assert policy is not None
    rules = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["base-uri"] == rules["form-action"] == "'none'"
    assert rules["worker-src"] == "blob:"
    inline = {"script-src": parsed.text("script", 1), "style-src": parsed.text("style")}
    for name, text in inline.items():
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in rules[name]
        assert "unsafe-inline" not in rules[name]
    linked = {"src", "href", "action", "data", "srcset"}
    assert not [attrs for _, attrs in parsed.found if linked & set(attrs)]


def test_the_same_side_gives_the_same_bytes() -> None:
    assert render([subject(lint=lint())]) == render([subject(lint=lint())])


def test_without_script_the_page_says_its_headline() -> None:
    text = render([subject()]).decode()
    assert re.search(r"<noscript><p>Open until a launch is given: ", text)


@pytest.mark.parametrize("text", ["a</script>b", "a</SCRIPT b", "<!-- x"])
def test_a_script_that_would_end_its_element_is_refused(
    text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "bundle").mkdir()
    (tmp_path / "bundle/page.js").write_text(text, "utf-8")
    monkeypatch.setattr(html, "files", lambda name: tmp_path)
    with pytest.raises(OutputError, match=r"page\.js holds .* build the front end again"):
        render([subject()])


def test_a_missing_front_end_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(html, "files", lambda name: tmp_path)
    with pytest.raises(OutputError, match=r"page\.js is missing .*; install specmap again"):
        render([subject()])


def test_the_bundle_was_built_from_these_sources() -> None:
    """Node is not needed: the build leaves the hashes of what it read."""
    built = json.loads((FOLDER / "bundle/SOURCES.json").read_text("utf-8"))["files"]
    app = FOLDER / "app"
    named = {"package.json", "package-lock.json", "tsconfig.json", "build.mjs"}
    sources = [p for p in (app / "src").rglob("*") if p.is_file()] + [app / n for n in named]
    now = {
        path.relative_to(app).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sources
    }
    assert built == now
