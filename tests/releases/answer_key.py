"""Compares one fact of ``data/facts.json`` with a code map.

Each comparison yields one line per difference: what the fact expects and what the map
holds. ``NOT_IN_THE_MODEL`` lists the keys of ``expect`` that the map has no field for.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from specmap.codemap.graph import (
    ClassRecord,
    CodeMap,
    Decision,
    HostSync,
    Term,
)
from specmap.codemap.source import qualname_of
from tests.releases.answer_calls import assignment_differences, edge_differences
from tests.releases.answer_flags import flag_differences
from tests.releases.lookup import (
    Place,
    class_by_id,
    has_guard,
    last,
    method_holder,
    near,
    normal,
    places,
    unequal,
)

Fact = dict[str, Any]
Expect = dict[str, Any]

NOT_IN_THE_MODEL = {
    "reason": "prose; the edge's own reason must name the plugin",
    "answer": "an unresolved edge is what prints as UNKNOWN",
    "text": "a line of source that carries no flag",
    "true_modes": "the body of a ForwardMode predicate",
    "alternative": "the arm that the platform cuts",
    "sets": "what a capture test assigns, beyond deciding",
    "backends": "part of the term's text",
    "raises": "a refusal inside the replay, not a choice between graph and eager",
}

DECISION_KINDS = {"can_run_graph": "route", "piecewise_graph": "can_run", "capture_mode": "capture"}


def load_facts() -> list[Fact]:
    """Return the answer key in its own order."""
    path = Path(__file__).parent / "data" / "facts.json"
    facts: list[Fact] = json.loads(path.read_text(encoding="utf-8"))
    return facts


def differences(fact: Fact, code_map: CodeMap, facts: list[Fact]) -> list[str]:
    """Return one line per difference between a fact and the map; empty when they agree."""
    kind = fact["kind"]
    if kind == "call_edge":
        if fact["expect"].get("is_call", True):
            return list(edge_differences(fact, code_map))
        return list(assignment_differences(fact, code_map, facts))
    compare = {
        "class": class_differences,
        "method": method_differences,
        "flag": flag_differences,
        "condition": condition_differences,
        "host_sync": sync_differences,
    }[kind]
    return list(compare(fact, code_map))


def class_differences(fact: Fact, code_map: CodeMap) -> Iterator[str]:
    """Compare bases, linearised bases, methods, overrides and the worker's entry."""
    expect: Expect = fact["expect"]
    found = [
        c for c in code_map.classes if c.name == fact["symbol"] and c.span.file == fact["file"]
    ]
    if len(found) != 1:
        yield f"class {fact['symbol']}: {len(found)} records, must be one"
        return
    record = found[0]
    yield from unequal("line", fact["line"], record.span.line)
    yield from unequal(
        "bases", expect["bases"], [last(b) for b in record.bases if last(b) != "ABC"]
    )
    yield from unequal("mro", expect["mro"], [last(b) for b in record.mro])
    yield from _override_differences(record, expect, code_map)
    methods = dict(record.methods)
    for name, line in expect["methods_defined"].items():
        yield from unequal(f"method {name}", line, methods.get(name))
    verify = method_holder(code_map, record, "verify")
    yield from unequal("has a verify method", expect["has_verify_method"], verify is not None)
    if "verify_holder" in expect:
        at = f"{expect['verify_holder']}.verify"
        wanted = Place(at, expect["verify_file"], expect["verify_line"])
        yield from unequal("verify", wanted, verify)
    if "getattr_delegates_line" in expect:
        line = expect["getattr_delegates_line"]
        yield from unequal("__getattr__ delegates", line, record.getattr_delegates_line)
    yield from _entry_differences(record.id, expect, code_map)


def _override_differences(record: ClassRecord, expect: Expect, code_map: CodeMap) -> Iterator[str]:
    """The key lists the overrides of the cycle; what the map adds must be overrides too."""
    if missing := set(expect["overrides"]) - set(record.overrides):
        yield f"overrides: missing {sorted(missing)}, found {sorted(record.overrides)}"
    bases = [class_by_id(code_map, symbol) for symbol in record.mro[1:]]
    inherited = {name for base in bases if base for name, _ in base.methods}
    own = {name for name, _ in record.methods}
    if wrong := set(record.overrides) - set(expect["overrides"]) - (own & inherited):
        yield f"overrides: {sorted(wrong)} override nothing"


def _entry_differences(class_id: str, expect: Expect, code_map: CodeMap) -> Iterator[str]:
    worker = next((w for w in code_map.workers if w.id == class_id), None)
    entry = worker.entry if worker else None
    if expect["entry"] is None:
        yield from unequal("entry", None, entry)
    elif entry is None:
        yield f"entry: expected {expect['entry']!r}, the map has no driven worker {class_id}"
    else:
        holder = class_by_id(code_map, entry.holder)
        name = holder.name if holder else qualname_of(entry.holder).partition(".")[0]
        wanted = (expect["entry"], expect["entry_holder"], expect["entry_file"])
        yield from unequal("entry", wanted, (entry.name, name, entry.span.file))
        yield from unequal("entry line", expect["entry_line"], entry.span.line)
    if "reachable" in expect:
        reachable = worker.reachable if worker else "no worker record"
        yield from unequal("reachable", expect["reachable"], reachable)


def method_differences(fact: Fact, code_map: CodeMap) -> Iterator[str]:
    """Compare a definition: its line, whether it is a property, what it returns."""
    expect: Expect = fact["expect"]
    found = [
        f
        for f in code_map.functions
        if f.qualname == expect["qualname"] and f.span.file == fact["file"]
    ]
    if len(found) != 1:
        yield f"{expect['qualname']}: {len(found)} function records, must be one"
        return
    record = found[0]
    yield from unequal("definition line", expect["def_line"], record.span.line)
    yield from unequal("is a property", expect["is_property"], record.is_property)
    returned = {
        qualname_of(r) if "::" in r else normal(r).partition("(")[0] for r in record.returns
    }
    yield from unequal("returns", {expect["returns"]}, returned)
    if "returns_type" in expect:
        types = {last(t) for t in record.return_type}
        yield from unequal("type returned", {expect["returns_type"]}, types)
    if "returns_line" in expect:
        wanted = Place(expect["returns"], expect["returns_file"], expect["returns_line"])
        if wanted not in places(code_map, (f.id for f in code_map.functions)):
            yield f"returns {wanted}: the map holds no such function"


def condition_differences(fact: Fact, code_map: CodeMap) -> Iterator[str]:
    """Compare a term of a decision, or a decision that is the whole expression."""
    expect: Expect = fact["expect"]
    file = fact["file"]
    held = [
        d
        for d in code_map.decisions
        if d.span.file == file and qualname_of(d.holder) == expect["holder"]
    ]
    if not held:
        yield f"no decision in {expect['holder']}"
        return
    found = [(d, t) for d in held for t in terms_matching(d, expect)]
    if not found:
        yield f"no term {expect['term']!r} on line {expect['term_line']}; terms:"
        yield from (f"  {d.kind} {d.span} {d.text!r}: {t}" for d in held for t in d.terms)
        return
    if "graph_when" in expect:
        values = {t.graph_when for _, t in found}
        yield from unequal("graph when", {expect["graph_when"]}, values)
    decisions = [d for d, _ in found]
    if not any(expect["gates"] in d.phases for d in decisions):
        phases = [str(p) for d in decisions for p in d.phases]
        yield f"gates: expected {expect['gates']}, found {phases}"
    if "decision" in expect:
        wanted = DECISION_KINDS[expect["decision"]]
        if wanted not in {d.kind for d in decisions}:
            yield f"kind: expected {wanted}, found {[d.kind for d in decisions]}"
    yield from _term_context_differences(fact, held, [t for _, t in found], code_map)


def terms_matching(decision: Decision, expect: Expect) -> list[Term]:
    """Return the expected term, or every term of a decision whose whole text it is."""
    wanted = normal(expect["term"])
    lines = (expect["term_line"], expect["term_end_line"])
    exact = [
        t
        for t in decision.terms
        if normal(t.text) == wanted and (t.span.line, t.span.end_line) == lines
    ]
    if exact or normal(decision.text) != wanted:
        return exact
    # The names among these terms are spelt out by further terms, on the lines that bind them.
    own = [t for t in decision.terms if normal(t.conjunct_of) == wanted]
    inside = [t for t in own if lines[0] <= t.span.line <= t.span.end_line <= lines[1]]
    return inside if len(inside) == len(own) else []


def _term_context_differences(
    fact: Fact, held: list[Decision], terms: list[Term], code_map: CodeMap
) -> Iterator[str]:
    expect = fact["expect"]
    every = {normal(t.text) for d in held for t in d.terms}
    for absent in expect.get("absent_terms", []):
        if normal(absent) in every:
            yield f"term {absent!r} must be absent"
    if "terms" in expect:
        inside = [
            normal(t.text)
            for d in held
            for t in d.terms
            if expect["term_line"] <= t.span.line <= expect["term_end_line"]
        ]
        yield from unequal("terms in order", expect["terms"], inside)
    if "conjunct_of" in expect:
        whole = {normal(t.conjunct_of) for t in terms}
        yield from unequal("conjunct of", {normal(expect["conjunct_of"])}, whole)
    if "callee" in expect:
        call = {
            "file": fact["file"],
            "line": expect["called_line"],
            "expect": {
                "caller": expect["holder"],
                "callees": [expect["callee"]],
                "callee_file": [expect["callee_file"]],
                "callee_line": [expect["callee_line"]],
            },
        }
        yield from edge_differences(call, code_map)


def sync_differences(fact: Fact, code_map: CodeMap) -> Iterator[str]:
    """Compare kind, label, position, operation, consumer and guards of a host sync."""
    expect: Expect = fact["expect"]
    here = [
        s
        for s in code_map.syncs
        if s.span.file == fact["file"]
        and s.span.line == fact["line"]
        and qualname_of(s.holder) == fact["symbol"]
    ]
    matching = [s for s in here if normal(s.operation) == normal(expect["operation"])]
    if len(matching) != 1:
        yield f"{len(matching)} syncs {expect['operation']!r} at line {fact['line']}; near:"
        yield from near(
            code_map.syncs, (s.span for s in code_map.syncs), fact["file"], fact["line"]
        )
        return
    sync = matching[0]
    yield from unequal("kind", expect["sync"], str(sync.kind))
    for key in ("label", "phase_between", "where", "consumer"):
        if key in expect:
            yield from unequal(key, expect[key], getattr(sync, key))
    yield from _sync_guard_differences(expect, sync)


def _sync_guard_differences(expect: Expect, sync: HostSync) -> Iterator[str]:
    if "guard" in expect and not has_guard(
        sync.guards, expect["guard"], expect["guard_line"], branch=True
    ):
        yield f"guard: expected {expect['guard']!r}, found {sync.guards}"
    if "skipped_when" in expect:
        line, skip = expect["skipped_when_line"], expect["skipped_when"]
        if not has_guard(sync.guards, skip, line, branch=False):
            yield f"skipped when: expected not {skip!r} line {line}, found {sync.guards}"
