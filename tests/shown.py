"""Commands, programs and outputs that the documentation shows, and a folder to run them in."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

from specmap import cli
from tests.review_tree import LAST_LINE, SYNC, VERIFY, commit, edit, git, repository
from tests.trace.recorded import MAX_BS_2, write_pair

ROOT = Path(__file__).parent.parent
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")))
WIDTH = 100

# Commands of ours that only go through the parser, by how they begin, and why.
PARSED = {
    "specmap trace --live": "starts a server on a GPU; recorded runs stand for what it prints",
    "specmap trace --attach": "needs a server that runs; tests/test_cli_trace.py attaches to one",
    "specmap trace export output/trace-1 --prometheus": "sends to a collector on the network",
    "specmap trace read run": "reads what kubectl copied",
}
# Programs of others that pages show, and what stands for running them.
OTHERS = {
    "make": "the target is in the Makefile; .ci/run and the README's two run",
    "pip": "installs; .ci/run and tests/test_packaging.py do",
    "benchmarks/gpu/tp8.sh": "needs the GPUs of a host; tests/trace/test_tp8.py has its dry run",
    "pre-commit": "installs a hook",
    "kubectl": "needs a cluster; the specmap command in it is parsed",
    "jq": "follows a file that a command wrote; run with it where it is installed",
    "git": "clones or applies; tests/releases/test_docs.py applies the patch of the page",
    "patch": "run by tests/releases/test_docs.py",
    "cp": "run by tests/releases/test_docs.py",
}

_FENCE = re.compile(r"^(\s*)```(\S*)[^\n]*\n(.*?)^\1```\s*$", re.DOTALL | re.MULTILINE)
_WAITS = re.compile(r"^specmap: still at work .*\n", re.MULTILINE)
_INNER = re.compile(r"\$\((specmap [^)]*)\)|(?:-- |&& |^)(specmap .*)$")


@dataclass(frozen=True)
class Shown:
    """One command of a page with what the page says that it prints."""

    page: str
    line: int
    text: str
    output: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def words(self) -> list[str]:
        return shlex.split(self.text, comments=True)

    @property
    def is_ours(self) -> bool:
        return self.text.startswith("specmap ")

    @property
    def parsed_only(self) -> bool:
        return any(self.text.startswith(start) for start in PARSED) or not self.is_ours

    @property
    def needs_release(self) -> bool:
        """Whether it reads a real tree: a release, a fork of one, or the tree of a recorded run."""
        names = ("sglang==", " fork", "specmap report", "specmap sweep", "--format svg")
        return any(name in self.text for name in names)


def blocks(page: Path, *languages: str) -> list[tuple[int, str]]:
    """Return the fenced blocks of a page in these languages, each with its first line's number."""
    return [(line, text) for line, _, text in fenced(page, *languages)]


def fenced(page: Path, *languages: str) -> Iterator[tuple[int, str, str]]:
    """Yield line, language and text of the fenced blocks of a page in these languages."""
    text = page.read_text("utf-8")
    for found in _FENCE.finditer(text):
        if found[2] in languages:
            yield text.count("\n", 0, found.start(3)) + 1, found[2], textwrap.dedent(found[3])


def commands(page: Path) -> list[Shown]:
    """Return the commands of a page, in order.

    In a block with ``$`` at the beginning of lines the others are output; in other blocks every
    line is a command.
    """
    found: list[Shown] = []
    for first, language, block in fenced(page, "", "console", "bash", "sh"):
        lines = block.splitlines()
        prompted = any(line.startswith("$ ") for line in lines)
        at = 0
        while at < len(lines):
            start, line = at, lines[at].removeprefix("$ ")
            while line.endswith(("\\", "|")) and at + 1 < len(lines):
                at += 1
                line = f"{line.removesuffix(chr(92)).rstrip()} {lines[at].strip()}"
            at += 1
            output = []
            while prompted and at < len(lines) and not lines[at].startswith("$ "):
                output.append(lines[at])
                at += 1
            if prompted or language == "console" or line.partition(" ")[0] in {"specmap", *OTHERS}:
                found.append(Shown(page.name, first + start, line.strip(), tuple(output)))
    return found


def everything() -> list[Shown]:
    """Return the commands of all pages."""
    return [shown for page in PAGES for shown in commands(page)]


def ours_in(shown: Shown) -> list[str]:
    """Return the specmap commands in a line, those inside another command too."""
    head = shown.text.partition(" | ")[0]
    return [one or two for one, two in _INNER.findall(head)]


def parse(text: str) -> None:
    """Take a command through the parser; nothing runs.

    Raises:
        click.ClickException: the parser refuses it.
    """
    words = shlex.split(text, comments=True)[1:]
    context = click.Context(cli.command, info_name="specmap")
    verb: click.Command = cli.command
    while isinstance(verb, click.Group) and words and words[0] in verb.commands:
        verb = verb.commands[words[0]]
        words = words[1:]
        context = click.Context(verb, parent=context, info_name=verb.name)
    verb.make_context(verb.name, words, parent=context.parent)


# --- the folder that the commands run in -------------------------------------------------------

MODEL = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 1024,
    "intermediate_size": 2048, "num_hidden_layers": 32, "num_attention_heads": 16,
    "num_key_value_heads": 4, "head_dim": 64, "vocab_size": 32000,
    "max_position_embeddings": 4096, "torch_dtype": "bfloat16", "tie_word_embeddings": False,
}  # fmt: skip


def plant_world(folder: Path) -> Path:
    """Make what pages take for granted: a repository, launch files, recorded runs.

    ``python/sglang`` is the small tree of the rules' examples, one commit with a new wait on
    ``origin/main``. ``output/trace-1`` and ``trace-2`` are runs of SGLang 0.5.12 on a H200: one
    captured up to batch size 2 with four requests, and two ranks whose phases all replayed.
    """
    folder.mkdir()
    repository(folder)
    git(folder, "update-ref", "refs/remotes/origin/main", "HEAD")
    edit(folder / "python", VERIFY, (LAST_LINE, SYNC + LAST_LINE))
    commit(folder, "count the tokens")
    (folder / "launch.sh").write_text(launch_of(ROOT / "docs/start.md"), "utf-8")
    (folder / "config.json").write_text(json.dumps(MODEL), "utf-8")
    first, second = (folder / "output" / f"trace-{n}" for n in (1, 2))
    for run in (first, second):
        run.mkdir(parents=True)
    MAX_BS_2.write(first)
    _complete(first / "rank-0-0-0-1.json")
    write_pair(second, arguments=_PLACES, **_H200)
    (folder / ".git/info/exclude").write_text("*\n", "utf-8")
    return folder


# What the recorded headers were cut down to leaves out; nvidia-smi says 143771 MiB of a H200.
_PLACES = {"model_path": "target", "speculative_draft_model_path": "draft"}
_H200 = {"gpu_memory_bytes": 143771 << 20, "gpu_sm": 90}


def _complete(header: Path) -> None:
    known = json.loads(header.read_bytes())
    known["arguments"] |= _PLACES
    header.write_text(json.dumps(known | _H200), "utf-8")


def launch_of(page: Path) -> str:
    """Return the launch command that a page shows as launch.sh."""
    return next(text for _, text in blocks(page, "bash") if "sglang.launch_server" in text)


def ran(words: list[str], patch: pytest.MonkeyPatch) -> tuple[int, str, str]:
    """Run a command in this process as on a terminal of 100 columns: code, output, complaints."""
    out, err = io.BytesIO(), io.StringIO()
    with patch.context() as inside, contextlib.redirect_stderr(err):
        inside.setattr("sys.argv", words)
        inside.setattr(cli, "_PLAIN_WIDTH", WIDTH)
        with io.TextIOWrapper(out, encoding="utf-8", write_through=True) as stream:
            with contextlib.redirect_stdout(stream), pytest.raises(SystemExit) as ended:
                cli.main()
            code = ended.value.code
            text = out.getvalue().decode()
    assert isinstance(code, int)
    return code, text, complaints(err.getvalue())


def complaints(errors: str) -> str:
    """Return what a command said on its error stream, without what only a slow machine hears."""
    return _WAITS.sub("", errors)


def run_shown(shown: Shown, patch: pytest.MonkeyPatch) -> None:
    """Run one command of a page and compare what it prints with the page."""
    (text, *_) = ours_in(shown)
    code, printed, complained = ran(shlex.split(text, comments=True), patch)
    undrawn = "Graphviz's 'dot' program is not installed" in complained  # a fact of the machine
    assert code in (0, 1) or undrawn, f"{shown}: {complained}"
    if shown.output:
        differs = difference(shown.output, (printed + complained).splitlines())
        assert differs is None, f"{shown}: the page has {differs!r}, the command printed\n{printed}"


def difference(page: tuple[str, ...], printed: list[str]) -> str | None:
    """Return the first line of a page that was not printed in its place.

    ``...`` alone on a line stands for any number of lines, at the end of one for the rest of it.
    """
    at, anywhere = 0, False
    for line in map(str.rstrip, page):
        if line.strip() == "...":
            anywhere = True
            continue
        fits = [n for n in range(at, len(printed)) if _fits(line, printed[n].rstrip())]
        if not fits or not (anywhere or fits[0] == at):
            return line
        at, anywhere = fits[0] + 1, False
    return None if anywhere or not any(map(str.strip, printed[at:])) else "(the end)"


def _fits(line: str, printed: str) -> bool:
    return printed.startswith(line[:-3]) if line.endswith("...") else line == printed
