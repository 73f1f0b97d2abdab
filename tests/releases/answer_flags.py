"""Compares the graph flags of the answer key with a code map."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from specmap.codemap.graph import CodeMap, Flag, FlagStatus
from specmap.codemap.source import qualname_of, symbol_id
from tests.releases.lookup import has_guard, near, normal, unequal

Fact = dict[str, Any]
Expect = dict[str, Any]


def flag_differences(fact: Fact, code_map: CodeMap) -> Iterator[str]:
    """Compare status, phase, value, guards and the lines that the value came through."""
    expect: Expect = fact["expect"]
    holder, line = fact["symbol"], fact["line"]
    here = [f for f in code_map.flags if f.span.file == fact["file"] and f.span.line == line]
    accepted = expect.get("accept_status", [expect["status"]])
    if not here and "not_an_assignment" in accepted:
        yield from _offer_differences(fact, code_map)
        yield from _call_phase_differences(fact, code_map)
        return
    matching = [f for f in here if f.name == expect["flag"] and qualname_of(f.holder) == holder]
    if len(matching) != 1:
        yield f"{len(matching)} flags {expect['flag']!r} at line {line}, must be one; near:"
        yield from near(code_map.flags, (f.span for f in code_map.flags), fact["file"], line)
        return
    flag = matching[0]
    if flag.status not in accepted:
        yield f"status: expected {accepted}, found {str(flag.status)!r}"
    yield from unequal("phase", expect["phase"], str(flag.phase))
    for key in ("value", "decides"):
        if key in expect:
            yield from unequal(key, expect[key], getattr(flag, key))
    yield from _flag_guard_differences(fact, flag)
    for key in ("source_line", "result_line", "result_source_line"):
        if key in expect:
            yield from unequal(key, expect[key], getattr(flag, key))
    if "source_chain" in expect:
        yield from unequal("source chain", expect["source_chain"], list(flag.source_chain))
    if "dropped" in expect and normal(expect["dropped"]) not in normal(flag.text):
        yield f"dropped: expected {expect['dropped']!r} in the text {flag.text!r}"
    yield from _flag_context_differences(fact, flag, code_map)


def _offer_differences(fact: Fact, code_map: CodeMap) -> Iterator[str]:
    """A line without a flag: the flag to offer instead must be in the map."""
    offer = fact["expect"].get("offer_line")
    flags = [f.span.line for f in code_map.flags if f.span.file == fact["file"]]
    if offer is not None and offer not in flags:
        yield f"no flag at the line to offer, {offer}; flags of the file: {sorted(flags)}"


def _flag_guard_differences(fact: Fact, flag: Flag) -> Iterator[str]:
    expect, holder = fact["expect"], fact["symbol"]
    own = [g for g in flag.guards if qualname_of(g.holder) == holder]
    if expect["guard"] is None:
        yield from unequal("guards in the holder", [], own)
    elif not _computes(flag, expect):
        at = expect.get("guard_holder", holder)
        yield from guard_difference(expect, flag.guards, at)
    if "enclosing_guards" in expect:
        wanted = [
            (normal(g["guard"]), g["guard_line"], g["guard_branch"] == "true")
            for g in expect["enclosing_guards"]
        ]
        found = [(normal(g.text), g.span.line, g.branch) for g in own if g.encloses]
        yield from unequal("guards in the holder", wanted, found)
    for other in expect.get("other_guards", []):
        yield from guard_difference(other, flag.guards, other["guard_holder"])


def _computes(flag: Flag, expect: Expect) -> bool:
    """Whether the guard that the key names is the very expression that computes the flag."""
    inside = flag.span.line <= expect["guard_line"] <= flag.span.end_line
    text = normal(expect["guard"])
    return flag.status is FlagStatus.COMPUTED and inside and text in normal(flag.text)


def guard_difference(expect: Expect, guards: Any, holder: str | None) -> Iterator[str]:
    """Yield a line when none of ``guards`` is the test that ``expect`` describes."""
    branch = expect["guard_branch"] == "true"
    end = expect.get("guard_end_line")
    if not has_guard(guards, expect["guard"], expect["guard_line"], branch, end, holder):
        line = expect["guard_line"]
        yield f"guard: expected {expect['guard']!r} line {line} {branch} in {holder}"
        yield from (f"  found {guard}" for guard in guards)


def _flag_context_differences(fact: Fact, flag: Flag, code_map: CodeMap) -> Iterator[str]:
    expect = fact["expect"]
    if "dropped_line" in expect:
        dropped = [
            f
            for f in code_map.flags
            if f.span.file == fact["file"] and f.span.line == expect["dropped_line"]
        ]
        found = [str(f.status) for f in dropped]
        yield from unequal(f"flag at {expect['dropped_line']}", ["dropped"], found)
    if "callers" in expect:
        calls = sorted({e.span.line for e in code_map.edges if flag.holder in e.callees})
        yield from unequal("lines that call the holder", expect["callers"], calls)
    yield from _call_phase_differences(fact, code_map)


def _call_phase_differences(fact: Fact, code_map: CodeMap) -> Iterator[str]:
    """A flag that is an argument: the phases of the call that it is passed to."""
    if "phases" not in fact["expect"]:
        return
    phases = {
        str(phase)
        for edge in code_map.edges
        if edge.caller == symbol_id(fact["file"], fact["symbol"])
        and edge.span.line <= fact["line"] <= edge.span.end_line
        for phase in edge.phases
    }
    yield from unequal("phases of the call", set(fact["expect"]["phases"]), phases)
