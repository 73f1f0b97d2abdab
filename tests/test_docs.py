"""Every command of the documentation: run here on small trees and recorded runs, or parsed.

What reads a real release runs in tests/releases/test_docs.py.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from specmap.cli import command
from tests import shown as docs
from tests.shown import PAGES, ROOT, Shown, commands, everything, ours_in, parse, run_shown

# What the installed script does; its name is part of click's protocol for completion.
SPECMAP = [
    sys.executable,
    "-c",
    "import sys; sys.argv[0] = 'specmap'; from specmap.cli import main; main()",
]
QUICK = sorted({one.page for one in everything() if not (one.parsed_only or one.needs_release)})


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def verbs(name: str, verb: click.Command) -> list[tuple[str, click.Command]]:
    below = verb.commands if isinstance(verb, click.Group) else {}
    return [(name, verb), *(one for key in below for one in verbs(f"{name} {key}", below[key]))]


@pytest.mark.parametrize("page", QUICK)
def test_what_a_page_runs_on_small_trees(
    page: str, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In order, in one folder: a later command of a page may read what an earlier one wrote."""
    monkeypatch.chdir(docs.plant_world(tmp_path / "world"))
    monkeypatch.setenv("SPECMAP_CACHE_DIR", str(cache))
    (path,) = (p for p in PAGES if p.name == page)
    for one in commands(path):
        if not (one.parsed_only or one.needs_release):
            run_shown(one, monkeypatch)


@pytest.mark.parametrize("one", everything(), ids=str)
def test_every_command_is_accepted_by_the_parser(one: Shown) -> None:
    known = one.text.partition(" ")[0] in {"specmap", *docs.OTHERS}
    assert known, f"{one.text!r} is no command that a test knows; see tests/shown.py"
    for text in ours_in(one):
        parse(text)


def test_the_commands_in_a_dockerfile_run() -> None:
    (text,) = re.findall(r"\$\((specmap [^)]*)\)", (ROOT / "docs/trace.md").read_text("utf-8"))
    done = subprocess.run(
        [sys.executable, "-m", *text.split()], capture_output=True, text=True, check=True
    )
    assert (Path(done.stdout.strip()) / "sitecustomize.py").is_file()


@pytest.mark.parametrize("start", docs.PARSED)
def test_no_reason_for_parsing_only_is_left_over(start: str) -> None:
    assert [one for one in everything() if start in one.text]


def test_every_target_of_make_that_pages_name_is_there() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for page in PAGES:
        for target in re.findall(r"(?:`|^)make ([a-z-]+)", page.read_text("utf-8"), re.MULTILINE):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"{page.name}: {target}"


@pytest.mark.parametrize(("name", "verb"), verbs("specmap", command), ids=lambda value: str(value))
def test_help_has_an_example_that_the_parser_accepts(name: str, verb: click.Command) -> None:
    text = verb.get_help(click.Context(verb, info_name=name, max_content_width=200))
    _, found, below = text.partition("Example")
    assert found, f"{name} --help shows no example"
    examples = re.sub(r" \\\n\s+", " ", below.partition("\n\n")[0]).splitlines()[1:]
    assert examples
    assert all(example.strip().startswith(name) for example in examples)
    for example in examples:
        parse(example.strip())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_page_is_in_the_navigation_and_its_links_lead_somewhere(page: Path) -> None:
    text = page.read_text("utf-8")
    if page.parent.name == "docs":
        assert f": {page.name}\n" in (ROOT / "mkdocs.yml").read_text("utf-8")
    for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if not re.match(r"https?://", link):
            assert (page.parent / link).exists(), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_programs_of_a_page_compile(page: Path) -> None:
    for line, block in docs.blocks(page, "python"):
        compile(block, f"{page.name}:{line}", "exec")


def test_the_questions_in_sql_have_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the run that was captured up to 2: 48 of 60 passes of each phase were eager."""
    import duckdb

    monkeypatch.chdir(docs.plant_world(tmp_path / "world"))
    code, _, complained = docs.ran(["specmap", "trace", "read", "output/trace-1"], monkeypatch)
    assert (code, complained) == (1, "")
    for name in ("trace.md", "eventlog.md"):
        for line, block in docs.blocks(ROOT / "docs" / name, "sql"):
            rows = duckdb.execute(block).fetchall()
            assert rows or "having" in block, f"{name}:{line}"  # no two ranks differed
    eager = duckdb.execute(
        "select phase, count(*) from 'output/trace-1/*.passes.parquet' "
        "where state = 'EAGER' and phase = 'verify' group by all"
    ).fetchall()
    assert eager == [("verify", 48)]


@pytest.mark.parametrize(
    ("shell", "said"), [("bash", "complete -o"), ("zsh", "#compdef"), ("fish", "complete --no")]
)
def test_the_shell_gets_its_completion(shell: str, said: str) -> None:
    done = subprocess.run(
        SPECMAP, capture_output=True, text=True, check=True,
        env={**os.environ, "_SPECMAP_COMPLETE": f"{shell}_source"},
    )  # fmt: skip
    assert said in done.stdout


def test_a_word_that_was_begun_is_completed() -> None:
    words = {"COMP_WORDS": "specmap tr", "COMP_CWORD": "1", "_SPECMAP_COMPLETE": "bash_complete"}
    done = subprocess.run(
        SPECMAP, capture_output=True, text=True, check=True, env={**os.environ, **words},
    )  # fmt: skip
    assert done.stdout.splitlines() == ["plain,trace"]
