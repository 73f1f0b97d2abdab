"""The rules as a table, and one rule's page."""

from __future__ import annotations

import json
from collections.abc import Sequence

from specmap.codemap.rule import Rule
from specmap.report.findings_json import rule_record
from specmap.report.options import RenderOptions
from specmap.report.text_parts import console, table


def render_rules(rules: Sequence[Rule], options: RenderOptions) -> str:
    """Return all rules as a table, in their order."""
    columns = ["rule", "name", "severity", "confidence", "summary"]
    rows = [
        [rule.id, rule.name, rule.severity.value, rule.confidence.value, rule.summary]
        for rule in rules
    ]
    made, sink = console(options)
    made.print(table(columns, rows, "summary"))
    return "\n".join(line.rstrip() for line in sink.getvalue().splitlines()) + "\n"


def render_rules_json(rules: Sequence[Rule]) -> str:
    """Return all rules as a JSON list, without their pages."""
    return json.dumps([rule_record(rule) for rule in rules], indent=1, ensure_ascii=False) + "\n"


def render_rule(rule: Rule) -> str:
    """Return the page of one rule: what it says, then how it is set."""
    page = rule.explanation.rstrip() or f"# {rule.id} {rule.name}\n\n{rule.summary}."
    releases = f"{rule.first_release or 'the first'} to {rule.last_release or 'the newest'}"
    facts = {
        "severity": rule.severity,
        "confidence": rule.confidence,
        "topic": rule.topic,
        "needs": rule.needs,
        "SGLang releases": releases,
        "from": rule.origin,
        "allow with": f"# specmap: allow {rule.name} -- reason",
    }
    return page + "\n\n" + "".join(f"{name}: {value}\n" for name, value in facts.items())
