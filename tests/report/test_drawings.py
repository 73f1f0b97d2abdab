"""DOT and Mermaid draw the same view."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace

import pytest

from specmap.codemap.graph import CodeMap, EdgeStatus, Sink
from specmap.codemap.source import qualname_of
from specmap.report import RENDERERS, RenderOptions, callgraph, dot, mermaid
from specmap.report.callgraph import LinkKind, NodeKind, short
from specmap.report.select import narrow

EAGLE = RenderOptions(workers=("EAGLEWorker",))
NASTY = 'a "b" <c|d> [e] {f} & #g; `h` \\n 100%'


def view_of(sample: CodeMap, *phases: str) -> callgraph.View:
    return callgraph.build(narrow(sample, ("EAGLEWorker",), phases))


def nasty(sample: CodeMap) -> CodeMap:
    def spoil(sink: Sink) -> Sink:
        return replace(sink, text=NASTY)

    return replace(sample, sinks=tuple(map(spoil, sample.sinks)))


def test_only_what_lies_on_a_chain_is_a_function(sample: CodeMap) -> None:
    functions = [n for n, node in view_of(sample).nodes() if node.kind is NodeKind.FUNCTION]
    names = {qualname_of(name) for name in functions}
    assert "ModelRunner.forward_extend" in names
    assert not names & {"EagleVerifyInput.verify", "CudaGraphRunner.can_run"}


def test_phases_and_sinks_carry_their_verdict(sample: CodeMap) -> None:
    verdicts = {
        node.lines[0]: node.verdict
        for _, node in view_of(sample).nodes()
        if node.kind is NodeKind.PHASE
    }
    assert verdicts == {
        "target_prefill": "depends",
        "draft_prefill": "EAGER",
        "draft": "depends",
        "verify": "depends",
        "draft_extend": "depends",
    }


def test_guards_stand_on_the_links(sample: CodeMap) -> None:
    links = {
        (qualname_of(a), qualname_of(b)): link for a, b, link in view_of(sample, "verify").links()
    }
    replay = links["ModelRunner._forward_raw", "CudaGraphRunner.replay"]
    assert replay.labels == (":2463 if can_run_graph",)
    eager = links["ModelRunner._forward_raw", "ModelRunner.forward_extend"]
    assert eager.full == (
        "line 2500 if not can_run_graph and if "
        "forward_batch.forward_mode.is_extend(include_draft_extend_v2=True)",
    )


def test_unresolved_and_boundary_calls_hang_on_their_function(sample: CodeMap) -> None:
    view = view_of(sample)
    leaving = {b: (qualname_of(a), link.kind) for a, b, link in view.links()}
    found = {
        kind: (leaving[name], node.lines)
        for name, node in view.nodes()
        for kind in ("unresolved", "not followed")
        if name.startswith(f"{kind}:")
    }
    unresolved = next(e for e in sample.edges if e.status is EdgeStatus.UNRESOLVED)
    boundary = next(e for e in sample.edges if e.status is EdgeStatus.BOUNDARY)
    assert found == {
        "unresolved": (
            (qualname_of(unresolved.caller), LinkKind.UNRESOLVED),
            ("unresolved:", f":{unresolved.span.line} {short(unresolved.text, 34)}"),
        ),
        "not followed": (
            (qualname_of(boundary.caller), LinkKind.BOUNDARY),
            ("not followed:", f":{boundary.span.line} {short(boundary.text, 34)}"),
        ),
    }


def test_many_calls_that_are_not_followed_are_counted(sample: CodeMap) -> None:
    boundary = next(e for e in sample.edges if e.status is EdgeStatus.BOUNDARY)
    more = tuple(replace(boundary, text=f"helper_{number}") for number in range(4))
    view = view_of(replace(sample, edges=(*sample.edges, *more)))
    lines = [node.lines for name, node in view.nodes() if name.startswith("not followed:")]
    assert lines == [("5 calls not followed",)]


def test_decisions_of_classes_without_a_pass_share_one_node(sample: CodeMap) -> None:
    known = next(d for d in sample.decisions if d.kind == "can_run")
    others = tuple(
        replace(known, id=f"other:{name}", holder=f"sglang/x.py::{name}.can_run")
        for name in ("OneRunner", "TwoRunner")
    )
    worker = sample.workers[0]
    phases = tuple(
        replace(p, decisions=(*p.decisions, *(d.id for d in others))) for p in worker.phases
    )
    changed = replace(
        sample,
        decisions=(*sample.decisions, *others),
        workers=(replace(worker, phases=phases), *sample.workers[1:]),
    )
    (node,) = (n for _, n in view_of(changed).nodes() if n.lines[0] == "2 decisions elsewhere")
    assert [line.split()[1] for line in node.lines[1:]] == [
        "OneRunner.can_run",
        "TwoRunner.can_run",
    ]


def test_a_decision_outside_the_chains_hangs_on_its_caller(sample: CodeMap) -> None:
    links = [(a, b) for a, b, link in view_of(sample).links() if link.kind is LinkKind.ASKS]
    assert ("ModelRunner._forward_raw", "decision:can_run") in [
        (qualname_of(a), b) for a, b in links
    ]


def test_a_decision_at_capture_hangs_on_its_runner(sample: CodeMap) -> None:
    found = [a for a, b, _ in view_of(sample, "verify").links() if b == "decision:capture_mode"]
    assert list(map(qualname_of, found)) == ["CudaGraphRunner.replay"]


def test_every_link_of_mermaid_joins_declared_nodes(sample: CodeMap) -> None:
    for options in (EAGLE, RenderOptions()):
        text = mermaid.render(sample, options)
        declared = set(re.findall(r"^ +(n\d+)[\[({]", text, re.MULTILINE))
        ends = re.findall(r"^  (n\d+) -[-.]+>(?:\|\"[^\"]*\"\|)? (n\d+)$", text, re.MULTILINE)
        assert {end for pair in ends for end in pair} <= declared
        assert len(ends) == len(re.findall(r"^  n\d+ -", text, re.MULTILINE)) > 0
        assert text.count("subgraph ") == len(re.findall(r"^ +end$", text, re.MULTILINE))


def test_mermaid_escapes_source_text(sample: CodeMap) -> None:
    text = mermaid.render(nasty(sample), EAGLE)
    assert "a #34;b#34; #60;c|d#62; [e] {f} #38; #35;g; #96;h#96; \\n 100%" in text
    for line in text.splitlines():
        assert line.count('"') % 2 == 0, line


def test_dot_escapes_source_text(sample: CodeMap) -> None:
    text = dot.render(nasty(sample), EAGLE)
    assert r"a \"b\" <c|d> [e] {f} & #g; `h` \\n 100%" in text


def test_without_the_dot_program(sample: CodeMap, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    for name in ("svg", "png"):
        with pytest.raises(dot.DotMissing, match="install the system package 'graphviz'"):
            RENDERERS[name].render(sample, EAGLE)


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz's dot is not installed")
def test_dot_reads_what_was_written(sample: CodeMap) -> None:
    for spoilt in (sample, nasty(sample)):
        source = dot.render(spoilt, EAGLE)
        done = subprocess.run(
            ["dot", "-Tcanon"], input=source.encode(), capture_output=True, check=True
        )
        assert done.stderr == b""
    assert b"<svg" in dot.render_svg(nasty(sample), EAGLE)
    assert dot.render_png(sample, EAGLE).startswith(b"\x89PNG")
