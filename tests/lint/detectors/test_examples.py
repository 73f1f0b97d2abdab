"""Every rule finds what its own examples mark, and nothing else in them."""

from __future__ import annotations

import pytest

from specmap.codemap.rule import Rule
from specmap.lint.rulebook import load_folder
from specmap.scan.vocabulary import rules_folder
from specmap.testing import Example, check_example, check_rule, examples

RULES = load_folder(rules_folder())
EXAMPLES = examples()


@pytest.mark.parametrize("rule", [r for r in RULES if r.detector], ids=lambda rule: rule.id)
def test_a_rule_has_a_page_a_detector_and_examples(rule: Rule) -> None:
    check_rule(rule, EXAMPLES)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_page_says_what_it_costs_how_to_fix_and_who_says_so(rule: Rule) -> None:
    heads = [line for line in rule.explanation.splitlines() if line.startswith("## ")]
    assert heads == ["## Why it costs", "## How to fix", "## Source"]


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_an_example_gives_what_it_marks(example: Example) -> None:
    check_example(example)
