"""Compares the call edges and attribute stores of the answer key with a code map."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from specmap.codemap.graph import Assignment, CallEdge, CodeMap, EdgeStatus
from specmap.codemap.source import qualname_of
from tests.releases.lookup import (
    Place,
    class_by_id,
    edges_at,
    has_guard,
    last,
    method_holder,
    near,
    normal,
    places,
    stores,
)

Fact = dict[str, Any]
Expect = dict[str, Any]


def expected_places(expect: Expect) -> set[Place]:
    """Return the callees of a fact or of one of its call sites."""
    columns = (expect["callees"], expect["callee_file"], expect["callee_line"])
    return {Place(*row) for row in zip(*columns, strict=True)}


def accepted_places(expect: Expect) -> set[Place]:
    """Return the callees that are right too but not required."""
    return {
        Place(a["callee"], a["callee_file"], a["callee_line"])
        for a in expect.get("also_correct", [])
    }


def edge_differences(fact: Fact, code_map: CodeMap) -> Iterator[str]:
    """Compare one call site; of several calls on one line, the closest answer counts."""
    expect: Expect = fact["expect"]
    file, line = fact["file"], fact["line"]
    candidates = edges_at(code_map, file, line, expect["caller"])
    if not candidates:
        yield f"no call of {expect['caller']} starts at {file}:{line}; near:"
        yield from near(code_map.edges, (e.span for e in code_map.edges), file, line)
        return
    answers = [list(_one_edge(fact, edge, code_map)) for edge in candidates]
    yield from min(answers, key=len)


def _one_edge(fact: Fact, edge: CallEdge, code_map: CodeMap) -> Iterator[str]:
    expect: Expect = fact["expect"]
    if expect.get("unresolvable"):
        yield from _unresolved_differences(edge)
        return
    if edge.status not in (EdgeStatus.STATIC, EdgeStatus.BOUNDARY):
        yield f"status: expected a resolved call, found {edge}"
    found, wanted = places(code_map, edge.callees), expected_places(expect)
    if missing := wanted - found:
        yield f"callees missing: {sorted(missing)}; found {sorted(found)} by {edge.rules}"
    if wrong := found - wanted - accepted_places(expect):
        yield f"callees that are wrong: {sorted(wrong)} by {edge.rules}"
    for name in expect.get("not_callees", []):
        if name in {p.qualname for p in found}:
            yield f"callee {name} must not be there"
    if "guard" in expect:
        branch, end = expect["guard_branch"] == "true", expect["guard_end_line"]
        if not has_guard(edge.guards, expect["guard"], expect["guard_line"], branch, end):
            yield f"guard: expected {expect['guard']!r} line {expect['guard_line']} {branch}"
            yield from (f"  found {guard}" for guard in edge.guards)
    yield from _edge_extras(fact, edge, code_map)


def _unresolved_differences(edge: CallEdge) -> Iterator[str]:
    if edge.status is not EdgeStatus.UNRESOLVED or edge.callees:
        yield f"expected an unresolved call, found {edge.status} {edge.callees}"
    if "plugin" not in edge.reason:
        yield f"reason: expected one that names the plugin, found {edge.reason!r}"


def _edge_extras(fact: Fact, edge: CallEdge, code_map: CodeMap) -> Iterator[str]:
    expect: Expect = fact["expect"]
    if "also_unknown" in expect and set(expect["also_unknown"]) != set(edge.also_unknown):
        yield f"also unknown: expected {expect['also_unknown']}, found {edge.also_unknown}"
    if "self_type" in expect:
        types = {last(t) for t in edge.self_types}
        if types != {expect["self_type"]}:
            yield f"type of self: expected {expect['self_type']}, found {sorted(types)}"
    if "phase" in expect and [expect["phase"]] != [str(p) for p in edge.phases]:
        yield f"phases: expected only {expect['phase']}, found {[str(p) for p in edge.phases]}"
    modes = {last(mode) for mode in edge.forward_modes}
    if "forward_mode" in expect and modes != {expect["forward_mode"]}:
        yield f"forward modes: expected {expect['forward_mode']}, found {edge.forward_modes}"
    if "signature_mismatch" in expect:
        wanted = {(name, expect["keyword"]) for name in expect["signature_mismatch"]}
        found = {(qualname_of(symbol), keyword) for symbol, keyword in edge.rejects}
        if wanted != found:
            yield f"rejects: expected {sorted(wanted)}, found {sorted(found)}"
    if "returns" in expect:
        yield from _factory_differences(expect, code_map)
    for site in expect.get("other_sites", []):
        at = [
            e for e in code_map.edges if (e.span.file, e.span.line) == (site["file"], site["line"])
        ]
        if not any(expected_places(expect) <= places(code_map, e.callees) for e in at):
            yield f"other site {site['file']}:{site['line']}: same callee expected, found {at}"
    if "then" in expect:
        yield from _then_differences(expect, code_map)


def _factory_differences(expect: Expect, code_map: CodeMap) -> Iterator[str]:
    name = expect["callees"][0]
    found = [f for f in code_map.factories if qualname_of(f.function) == name]
    if len(found) != 1:
        yield f"{len(found)} factory records for {name}, must be one"
        return
    factory = found[0]
    classes = {qualname_of(symbol) for symbol, _ in factory.arms}
    if classes != set(expect["returns"]):
        yield f"factory: expected {sorted(expect['returns'])}, found {sorted(classes)}"
    line = factory.instantiated_at.line if factory.instantiated_at else None
    if line != expect["instantiated_line"]:
        yield f"factory instantiated: expected {expect['instantiated_line']}, found {line}"


def _then_differences(expect: Expect, code_map: CodeMap) -> Iterator[str]:
    then = expect["then"]
    file = expect["callee_file"][0]
    inner = {
        "file": file,
        "line": then["call_line"],
        "expect": {
            "caller": expect["callees"][0],
            "callees": [then["callee"]],
            "callee_file": [file],
            "callee_line": [then["def_line"]],
        },
    }
    yield from (f"then: {text}" for text in edge_differences(inner, code_map))


# --- attribute stores ------------------------------------------------------------------


def assignment_differences(fact: Fact, code_map: CodeMap, facts: list[Fact]) -> Iterator[str]:
    """Compare one store to a runner or worker attribute, and the calls made through it."""
    expect: Expect = fact["expect"]["attribute"]
    every = stores(code_map, expect["name"])
    here = [s for s in every if (s.span.file, s.span.line) == (fact["file"], fact["line"])]
    if len(here) != 1:
        yield f"{len(here)} stores to {expect['name']} at {fact['file']}:{fact['line']}; all:"
        yield from (f"  {s.span} {s.value} {s.types}" for s in every)
        return
    store = here[0]
    caller = fact["expect"]["caller"]
    if qualname_of(store.holder) != caller:
        yield f"holder: expected {caller}, found {store.holder}"
    yield from _store_differences(expect, store)
    unknown = fact["expect"].get("also_unknown", store.also_unknown)
    if set(unknown) != set(store.also_unknown):
        yield f"also unknown: expected {unknown}, found {store.also_unknown}"
    for other in expect.get("other_assignments", []):
        yield from _other_store_differences(fact, other, every)
    for site in expect["call_sites"]:
        yield from _site_differences(site, store, code_map, accepted_at(facts, fact, site))


def _types(store: Assignment) -> set[str | None]:
    return {None if t is None else last(t) for t in store.types}


def _store_differences(expect: Expect, store: Assignment) -> Iterator[str]:
    if normal(store.value) != normal(expect["value"]):
        yield f"value: expected {expect['value']!r}, found {store.value!r}"
    if _types(store) != set(expect["types"]):
        yield f"types: expected {expect['types']}, found {store.types}"
    if "guard" in expect:
        branch, line = expect["guard_branch"] == "true", expect["guard_line"]
        if not has_guard(store.guards, expect["guard"], line, branch, expect["guard_end_line"]):
            yield f"guard: expected {expect['guard']!r} line {line} {branch}, found {store.guards}"
    if "created" in expect:
        wanted = {(c["file"], c["line"]) for c in expect["created"]}
        found = {(span.file, span.line) for span in store.created}
        if wanted != found:
            yield f"created: expected {sorted(wanted)}, found {sorted(found)}"
    if expect.get("restored_line") != store.restored_line:
        yield f"restored: expected {expect.get('restored_line')}, found {store.restored_line}"
    if expect.get("context_manager", False) != store.context_manager:
        yield f"context manager: found {store.context_manager}"


def _other_store_differences(
    fact: Fact, other: Expect, every: tuple[Assignment, ...]
) -> Iterator[str]:
    at = (other.get("file", fact["file"]), other["line"])
    found = [s for s in every if (s.span.file, s.span.line) == at]
    if len(found) != 1 or normal(found[0].value) != normal(other["value"]):
        yield f"other store: expected {other['value']!r} at {at}, found {found}"
    elif "types" in other and _types(found[0]) != set(other["types"]):
        yield f"other store at {at}: expected types {other['types']}, found {found[0].types}"


def accepted_at(facts: list[Fact], fact: Fact, site: Expect) -> set[Place]:
    """Return every callee that some fact of the release allows at a call site.

    One call site is reached with different objects in the attribute, so facts about
    different stores name different callees for it.
    """
    allowed: set[Place] = set()
    for other in facts:
        if other["release"] != fact["release"] or other["kind"] != "call_edge":
            continue
        expect = other["expect"]
        same = (other["file"], other["line"]) == (site["file"], site["line"])
        if same and "callees" in expect:
            allowed |= expected_places(expect) | accepted_places(expect)
        for inner in expect.get("attribute", {}).get("call_sites", []):
            if (inner["file"], inner["line"]) == (site["file"], site["line"]):
                allowed |= expected_places(inner) | accepted_places(inner)
    return allowed


def _site_differences(
    site: Expect, store: Assignment, code_map: CodeMap, allowed: set[Place]
) -> Iterator[str]:
    wanted = expected_places(site)
    method = last(site["callees"][0])
    reached = set()
    for symbol in store.types:
        record = class_by_id(code_map, symbol) if symbol else None
        target = method_holder(code_map, record, method) if record else None
        reached |= {target} if target else set()
    if missing := wanted - reached:
        yield f"types of the store do not reach {sorted(missing)}, only {sorted(reached)}"
    at = f"{site['file']}:{site['line']}"
    edges = edges_at(code_map, site["file"], site["line"], site["caller"])
    found = {p for e in edges for p in places(code_map, e.callees) if last(p.qualname) == method}
    if missing := wanted - found:
        yield f"call {at}: missing {sorted(missing)}, found {sorted(found)}"
    if wrong := found - allowed:
        yield f"call {at}: wrong callees {sorted(wrong)}"
