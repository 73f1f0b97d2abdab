"""Pages of the site that are made from the code: README, rules, rewrites, schemas, commands.

mkdocs loads this file (``hooks`` in mkdocs.yml). Nothing is written beside the site.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from specmap.cli import command
from specmap.fix.catalogue import CATALOGUE
from specmap.report.rules_text import render_rule
from specmap.review import all_rules

ROOT = Path(__file__).parent.parent
SCHEMAS = {
    "codemap": "docs/schema/codemap-1.0.schema.json",
    "run": "docs/schema/run-1.0.schema.json",
    "sweep": "docs/schema/sweep-1.0.schema.json",
}
COPIED = {
    "index.md": "README.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
    "rules/names.md": "rules/README.md",
    "rules/fix.toml": "rules/fix.toml",
    "rules/vocabulary.toml": "rules/vocabulary.toml",
}
# Links that are right in the repository, and where they lead on the site.
LINKS = (
    (r"\]\(docs/", "]("),
    (r"\]\(CONTRIBUTING\.md", "](contributing.md"),
    (r"\]\(CHANGELOG\.md", "](changelog.md"),
    (r"\]\(\.\./README\.md", "](index.md"),
    (r"\]\(\.\./rules/README\.md", "](rules/names.md"),
    (r"\]\(\.\./rules/([\w-]+)/README\.md", r"](rules/\1.md"),
    (r"\]\(\.\./rules/(?=\w+\.toml)", "](rules/"),
)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the generated pages where mkdocs.yml has their folder."""
    last = {"rules/": [{"Names and examples": "rules/names.md"}], "rewrites/": []}
    for entry in config.nav or []:
        for title, place in entry.items():
            if isinstance(place, str) and place in last:
                pages = [name for name, _ in generated() if name.startswith(place)]
                entry[title] = [*pages, *last[place]]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages, and the files that pages link to."""
    for name, text in generated():
        files.append(File.generated(config, name, content=text))
    for name, source in COPIED.items():
        files.append(File.generated(config, name, content=(ROOT / source).read_text("utf-8")))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Turn links between the repository's files into links between pages."""
    for here, there in LINKS:
        markdown = re.sub(here, there, markdown)
    return markdown


def generated() -> Iterator[tuple[str, str]]:
    """Yield every page that is made from the code, with its text."""
    yield from _rules()
    yield from _rewrites()
    for name, path in SCHEMAS.items():
        yield f"schema/{name}.md", _schema(json.loads((ROOT / path).read_text("utf-8")), path)
    yield "commands.md", "\n".join(_commands())


def _rules() -> Iterator[tuple[str, str]]:
    named = [(f"{rule.id}-{rule.name}", rule) for rule in all_rules()]
    rows = [
        f"| [{rule.id}]({name}.md) | {rule.name} | {rule.severity} | {rule.summary} |"
        for name, rule in named
    ]
    yield (
        "rules/index.md",
        _page(
            "Lint rules",
            "`specmap lint` reports what these find; `specmap explain SPM105` prints one page.",
            ["rule", "name", "severity", "what it finds"],
            rows,
        ),
    )
    for name, rule in named:
        page, _, facts = render_rule(rule).rstrip().rpartition("\n\n")
        rows = [f"| {key} | {value} |" for key, value in _pairs(facts)]
        yield f"rules/{name}.md", f"{page}\n\n## The rule\n\n{_facts(rows)}"


def _pairs(facts: str) -> Iterator[tuple[str, str]]:
    for line in facts.splitlines():
        key, _, value = line.partition(": ")
        yield key, f"`{value}`" if value.startswith("#") else value


def _rewrites() -> Iterator[tuple[str, str]]:
    rows = [
        f"| [{one.id}]({one.id}-{one.name}.md) | {one.name} | {one.safety} | {one.summary} |"
        for one in CATALOGUE
    ]
    yield (
        "rewrites/index.md",
        _page(
            "Rewrites",
            "`specmap fix` proposes these; [Rewriting a tree](../fix.md) says how they are proven.",
            ["rewrite", "name", "safety", "what it does"],
            rows,
        ),
    )
    for one in CATALOGUE:
        facts = [
            ("safety", str(one.safety)),
            ("takes away findings of", ", ".join(one.rules) or "no rule"),
            ("layers of proof", ", ".join(map(str, one.layers))),
        ]
        rows = [f"| {key} | {value} |" for key, value in facts]
        yield (
            f"rewrites/{one.id}-{one.name}.md",
            f"# {one.id} {one.name}\n\n{one.page.strip()}\n\n## The rewrite\n\n{_facts(rows)}",
        )


def _facts(rows: list[str]) -> str:
    return "\n".join(["| | |", "|---|---|", *rows, ""])


def _page(title: str, lead: str, columns: list[str], rows: list[str]) -> str:
    head = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    return "\n".join([f"# {title}", "", lead, "", *head, *rows, ""])


def _schema(schema: dict[str, Any], path: str) -> str:
    file = Path(path).name
    lines = [
        f"# Schema: {schema['title']}", "",
        f"{schema['description']} As JSON Schema (draft 2020-12): [{file}]({file}).",
        "", "## The object", "", *_keys(schema),
    ]  # fmt: skip
    for name, about in sorted(schema["$defs"].items()):
        lines += ["", f"## {name}", "", about.get("description", ""), "", *_keys(about)]
    return "\n".join(lines) + "\n"


def _keys(about: dict[str, Any]) -> list[str]:
    if "enum" in about:
        return [", ".join(f"`{value}`" for value in about["enum"])]
    if "properties" not in about:
        return []
    rows = [
        f"| `{key}` | {_kind(value)} | {_cell(value.get('description', ''))} |"
        for key, value in about["properties"].items()
    ]
    return ["| key | type | what |", "|---|---|---|", *rows]


def _kind(value: dict[str, Any]) -> str:
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "const" in value:
        return f"`{value['const']}`"
    for word in ("anyOf", "oneOf"):
        if word in value:
            return " or ".join(dict.fromkeys(_kind(one) for one in value[word]))
    kind = value.get("type", "any")
    kind = " or ".join(kind) if isinstance(kind, list) else str(kind)
    return f"{kind} of {_kind(value['items'])}" if value.get("items") else kind


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|")


def _commands() -> Iterator[str]:
    yield from (
        "# Every option",
        "",
        "What `--help` prints. Examples first, options below them.",
        "",
    )
    for name, verb in walked("specmap", command):
        context = click.Context(verb, info_name=name, max_content_width=100, terminal_width=100)
        yield from (f"## {name}", "", "```text", verb.get_help(context), "```", "")


def walked(name: str, verb: click.Command) -> Iterator[tuple[str, click.Command]]:
    """Yield a command and those below it, each with its full name."""
    yield name, verb
    if isinstance(verb, click.Group):
        for below in sorted(verb.commands):
            yield from walked(f"{name} {below}", verb.commands[below])
