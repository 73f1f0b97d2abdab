"""Where a release can be given a fault of a rule's kind, and what the fault is.

Sites come from the map of the untouched release; the seed picks among them. A fault is caught
when its rule has a new finding in ``holder`` (or anywhere, where that is empty).
"""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from specmap.codemap.graph import CallEdge, CodeMap, Decision, FlagStatus
from specmap.codemap.source import Span
from specmap.codemap.verdict import PhaseName, Verdict
from tests.mutations.edits import Edit, normal

DECODE = (PhaseName.DRAFT, PhaseName.VERIFY, PhaseName.DRAFT_EXTEND)
REPORTED = ("can_run_cuda_graph", "can_run_graph")
BATCHES = ("ScheduleBatch", "ForwardBatch", "ModelWorkerBatch")


@dataclass(frozen=True, slots=True)
class Mutant:
    """A fault: the edits that make it, and where a finding is due.

    ``near`` are places that the finding depends on: no other mutant may stand there.
    """

    rule: str
    file: str
    edits: tuple[Edit, ...]
    holder: str = ""
    what: str = ""
    equivalent: str = ""
    near: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class Site:
    """A function that can take a statement: its batch parameter and its plain statements."""

    holder: str
    file: str
    batch: str
    lines: tuple[int, ...]


@dataclass
class Release:
    """One release: its map, its files, and what several faults look up."""

    codemap: CodeMap
    root: Path
    _trees: dict[str, ast.Module] = field(default_factory=dict)

    def tree(self, file: str) -> ast.Module:
        """Return the syntax tree of a file of the release."""
        if file not in self._trees:
            self._trees[file] = ast.parse((self.root / file).read_text("utf-8"))
        return self._trees[file]

    def forget(self) -> None:
        """Read the files anew: they were changed."""
        self._trees.clear()

    def function(self, symbol: str) -> ast.FunctionDef | None:
        """Return the definition of a function of the map."""
        file, _, qualname = symbol.partition("::")
        body: Sequence[ast.stmt] = self.tree(file).body
        found: ast.stmt | None = None
        for name in qualname.split("."):
            named = (s for s in body if isinstance(s, ast.ClassDef | ast.FunctionDef))
            found = next((s for s in named if s.name == name), None)
            if found is None:
                return None
            assert isinstance(found, ast.ClassDef | ast.FunctionDef)
            body = found.body
        return found if isinstance(found, ast.FunctionDef) else None

    def holders(self) -> list[str]:
        """Return the functions of the workers' own files that a decode pass goes through."""
        found = {
            holder
            for worker in self.codemap.workers
            for phase in worker.phases
            if phase.name in DECODE
            for arm in phase.arms
            for holder, _ in arm.chain
            if "/speculative/" in holder
        }
        return sorted(found)

    def sites_of(self, *phases: PhaseName) -> set[tuple[str, int]]:
        """Return the functions and lines on the ways of these phases."""
        return {
            site
            for worker in self.codemap.workers
            for phase in worker.phases
            if phase.name in phases
            for arm in phase.arms
            for site in arm.chain
        }

    def captured(self) -> frozenset[str]:
        """Return the functions that a graph runner captures."""
        return frozenset(shared.function for shared in self.codemap.shared)

    def sites(self) -> list[Site]:
        """Return the functions on the cycle that hold a batch and plain statements."""
        return [site for holder in self.holders() if (site := self.site(holder)) is not None]

    def site(self, holder: str) -> Site | None:
        """Return where a function can take a statement, if it has a batch to read."""
        node = self.function(holder)
        if node is None:
            return None
        args = [*node.args.args, *node.args.kwonlyargs]
        batch = next((a.arg for a in args if a.annotation and _named(a.annotation)), None)
        plain = ast.Assign | ast.AnnAssign | ast.Expr | ast.If | ast.Return
        lines = [s.lineno for s in node.body if isinstance(s, plain) and not _is_doc(s)]
        rebound = {
            n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        if batch is None or batch in rebound or not lines:
            return None
        return Site(holder, holder.partition("::")[0], batch, tuple(lines))


def _named(annotation: ast.expr) -> bool:
    return any(name in ast.unparse(annotation) for name in BATCHES)


def _is_doc(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


Fault = Callable[[Release, random.Random], Iterator[Mutant]]


def constant_flag(release: Release, rng: random.Random) -> Iterator[Mutant]:
    """A computed flag becomes a constant."""
    for flag in release.codemap.flags:
        own = [g for g in flag.guards if g.holder == flag.holder and g.encloses]
        if flag.status is FlagStatus.COMPUTED and flag.decides and not own and flag.phase in DECODE:
            edit = Edit("value", flag.span.line, flag.name, rng.choice(("False", "True")))
            what = f"{flag.name} = {edit.code}"
            yield Mutant("SPM101", flag.span.file, (edit,), flag.holder, what)


def constant_report(release: Release, rng: random.Random) -> Iterator[Mutant]:
    """A reported flag becomes a constant."""
    verdicts = {(w.id, p.name): p.verdict for w in release.codemap.workers for p in w.phases}
    for flag in release.codemap.flags:
        if flag.status is FlagStatus.CONSTANT or flag.decides or flag.tuple_position is not None:
            continue
        if flag.phase not in set(PhaseName) or not _is_keyword(release, flag.span, flag.name):
            continue
        if flag.name not in REPORTED or "/speculative/" not in flag.holder:
            continue
        value = rng.choice(("False", "True"))
        eager = all(verdicts[w, PhaseName(flag.phase)] is Verdict.EAGER for w in flag.workers)
        reason = f"{flag.phase} is always eager" if eager and value == "False" else ""
        edit = Edit("keyword", flag.span.line, flag.name, value)
        yield Mutant("SPM102", flag.span.file, (edit,), flag.holder, f"{flag.name}={value}", reason)


def _is_keyword(release: Release, span: Span, name: str) -> bool:
    return any(
        isinstance(n, ast.keyword) and n.arg == name and n.lineno == span.line
        for n in ast.walk(release.tree(span.file))
    )


def dropped_flag(release: Release, rng: random.Random) -> Iterator[Mutant]:
    """What a target pass reported is no longer handed on."""
    for flag in release.codemap.flags:
        if flag.status is not FlagStatus.PROPAGATED or flag.decides:
            continue
        if flag.phase not in (PhaseName.VERIFY, PhaseName.TARGET_PREFILL):
            continue
        name, _, attribute = flag.text.rpartition(".")
        if flag.name not in REPORTED or "/speculative/" not in flag.holder:
            continue
        name = name if attribute else flag.text
        if name.isidentifier() and _is_keyword(release, flag.span, flag.name):
            edit = Edit("keyword", flag.span.line, flag.name)
            yield Mutant("SPM103", flag.span.file, (edit,), flag.holder, f"without {flag.name}=")


def decided_twice(release: Release, rng: random.Random) -> Iterator[Mutant]:
    """One of the two decisions of a pass gains a test."""
    routes = {(d.span.file, d.span.line): d for d in release.codemap.decisions if d.kind == "route"}
    pairs = {(double.first, double.second) for double in release.codemap.doubles}
    for pair in sorted(pairs):
        for span in (rng.choice(pair),):
            decision = routes.get((span.file, span.line))
            if decision is None or "/speculative/" not in decision.holder:
                continue
            batch = _asked_about(release, decision)
            if batch:
                code = f"({decision.text}) and {batch}.batch_size > 1"
                edit = Edit("expression", span.line, decision.text, code)
                what = f"{batch}.batch_size > 1 at one place"
                ends = tuple(end for p in pairs if set(p) & set(pair) for end in p)
                yield Mutant("SPM104", span.file, (edit,), "", what, near=tuple(sorted(ends)))


def _asked_about(release: Release, decision: Decision) -> str:
    for node in ast.walk(ast.parse(decision.text, mode="eval")):
        if isinstance(node, ast.Call) and ".can_run" in ast.unparse(node.func) and node.args:
            argument = node.args[0]
            return argument.id if isinstance(argument, ast.Name) else ""
    return ""


def bypassed(release: Release, rng: random.Random) -> Iterator[Mutant]:
    """A pass calls the model itself, or what asks the runner of prefill alone."""
    of_prefill = any(f.qualname == "ModelRunner.forward_extend" for f in release.codemap.functions)
    asking = {d.holder for d in release.codemap.decisions if d.kind == "route"}
    sites = release.sites_of(*DECODE)
    for edge in release.codemap.edges:
        if "/speculative/" not in edge.caller or (edge.caller, edge.span.line) not in sites:
            continue
        receiver, _, method = edge.text.rpartition(".")
        if method not in ("forward", "forward_batch_generation") or "self." not in receiver:
            continue
        call = _call_at(release, edge)
        batch = None if call is None else _batch_of(call)
        if batch is None or call is None:
            continue
        runner = receiver if method == "forward" else f"{receiver}.model_runner"
        code = f"{runner}.model.forward({batch}.input_ids, {batch}.positions, {batch})"
        if of_prefill and rng.random() < 0.5:
            code = f"{runner}.forward_extend({batch})[0]"
        text = normal(ast.get_source_segment(source_of(release, edge.span.file), call) or "")
        guarded = edge.caller in asking or _is_fallback(release, edge.caller, asking)
        yield Mutant(
            "SPM105",
            edge.span.file,
            (Edit("expression", edge.span.line, text, code),),
            "",
            f"{edge.text} -> {code.partition('(')[0]}",
            "the call is a guarded fallback" if guarded else "",
        )


def _is_fallback(release: Release, caller: str, asking: set[str]) -> bool:
    """Whether every way to a function passes a worker's own decision.

    A worker decides, too, where it tests what another function has asked for its draft.
    """
    given = {f.holder for f in release.codemap.flags if f.decides and f.phase == "draft"}
    ways = [
        (phase.name, chain[: chain.index(caller)])
        for worker in release.codemap.workers
        for phase in worker.phases
        if phase.name in DECODE
        for chain in ([holder for holder, _ in arm.chain] for arm in phase.arms)
        if caller in chain
    ]
    return bool(ways) and all(
        set(way) & (asking | given if name == "draft" else asking) for name, way in ways
    )


def source_of(release: Release, file: str) -> str:
    """Return the text of a file of the release."""
    return (release.root / file).read_text("utf-8")


def _call_at(release: Release, edge: CallEdge) -> ast.Call | None:
    for node in ast.walk(release.tree(edge.span.file)):
        if isinstance(node, ast.Call) and node.lineno == edge.span.line:
            if ast.unparse(node.func) == edge.text:
                return node
    return None


def _batch_of(call: ast.Call) -> str | None:
    named = {k.arg: k.value for k in call.keywords}
    batch = named.get("forward_batch") or (call.args[0] if call.args else named.get("batch"))
    return batch.id if isinstance(batch, ast.Name) else None


def unused_graph(release: Release, rng: random.Random) -> Iterator[Mutant]:
    """The arm that replays is cut away; the runner is still asked."""
    for decision in release.codemap.decisions:
        phases = [p for p in decision.phases if p in (PhaseName.DRAFT, PhaseName.DRAFT_EXTEND)]
        if decision.kind != "route" or "/speculative/" not in decision.holder or not phases:
            continue
        node = release.function(decision.holder)
        for test in ast.walk(node) if node is not None else ():
            if isinstance(test, ast.If) and _replays(test) and isinstance(test.test, ast.Name):
                edit = Edit("unless", test.lineno)
                file = decision.span.file
                yield Mutant("SPM106", file, (edit,), "", f"only the eager arm of {test.test.id}")


def _replays(test: ast.If) -> bool:
    calls = [n for s in test.body for n in ast.walk(s) if isinstance(n, ast.Call)]
    return any(ast.unparse(c.func).rpartition(".")[2] in ("replay", "execute") for c in calls)


EXPLICIT = (
    "_probe = {0}.seq_lens.max().item()\nself._probe = _probe",
    "self._probe = int({0}.seq_lens.sum())",
    "self._probe = {0}.seq_lens.tolist()",
    'self._probe = {0}.seq_lens.to("cpu")',
    "self._probe = {0}.seq_lens.cpu()",
)
HIDDEN = (
    "self._probe = {0}.seq_lens[{0}.seq_lens > 1]",
    "self._probe = {0}.seq_lens.nonzero()",
    "self._probe = {0}.seq_lens.unique()",
    "if ({0}.seq_lens > 1).all():\n    self._probe = 1",
)
COPIES = (
    "self._probe = {0}.seq_lens_cpu.to({0}.seq_lens.device)",
    "self._probe = {0}.seq_lens_cpu.cuda()",
)


def _inserted(rule: str, codes: Sequence[str], captured: bool) -> Fault:
    def fault(release: Release, rng: random.Random) -> Iterator[Mutant]:
        regions = release.captured()
        bodies = {d.holder for d in release.codemap.decisions if d.kind == "can_run"}
        for site in release.sites():
            is_method = "self" in _parameters(release.function(site.holder))
            if (site.holder in regions) is not captured or site.holder in bodies or not is_method:
                continue
            code = rng.choice(codes).format(site.batch)
            edit = Edit("insert", rng.choice(site.lines), "", code + "\n")
            yield Mutant(rule, site.file, (edit,), site.holder, code.partition("\n")[0])

    return fault


def _parameters(node: ast.FunctionDef | None) -> set[str]:
    return {a.arg for a in node.args.args} if node is not None else set()


def mirror_left(release: Release, rng: random.Random) -> Iterator[Mutant]:
    """What was read from the host's copy of the lengths is read from the device."""
    for holder in release.holders():
        node, file = release.function(holder), holder.partition("::")[0]
        for read in ast.walk(node) if node is not None else ():
            if isinstance(read, ast.Call) and isinstance(read.func, ast.Attribute):
                copy = read.func.value
                on_device = ast.unparse(copy).removesuffix("_cpu")
                waits = ast.unparse(read.func).endswith(("_cpu.sum", "_cpu.max", "_cpu.tolist"))
                if waits and "." in on_device:
                    edit = Edit("expression", copy.lineno, ast.unparse(copy), on_device)
                    yield Mutant("SPM201", file, (edit,), holder, f"{on_device}, not its copy")


def sync_in_decision(release: Release, rng: random.Random) -> Iterator[Mutant]:
    """A runner's test reads the device."""
    tests = (
        "bool(({0}.seq_lens > 0).all())",
        "{0}.seq_lens.max().item() < 4096",
        "int({0}.seq_lens.sum()) > 0",
    )
    for decision in release.codemap.decisions:
        node = release.function(decision.holder) if decision.kind == "can_run" else None
        if node is None or "self" not in _parameters(node):
            continue
        batch = next((a.arg for a in node.args.args if a.annotation and _named(a.annotation)), None)
        last = node.body[-1]
        if batch and isinstance(last, ast.Return) and last.value is not None:
            text = normal(
                ast.get_source_segment(source_of(release, decision.span.file), last.value) or ""
            )
            code = f"{rng.choice(tests).format(batch)} and ({text})"
            edit = Edit("expression", last.value.lineno, text, code)
            yield Mutant("SPM204", decision.span.file, (edit,), decision.holder, code[:60])


def unaccepted(release: Release, rng: random.Random) -> Iterator[Mutant]:
    """A call passes what no worker, or not every worker, accepts."""
    classes = {w.id for w in release.codemap.workers if w.reachable}
    owned = classes | {o for w in release.codemap.workers for o in w.owns if "/speculative/" in o}
    for edge in release.codemap.edges:
        owners = {callee.rpartition(".")[0] for callee in edge.callees}
        if (
            not owners & owned
            or not any("worker" in owner for owner in owners)
            or edge.text.endswith("__init__")
            or edge.rejects
        ):
            continue
        if _call_at(release, edge) is None:
            continue
        takers = [release.function(callee) for callee in edge.callees]
        if any(node is None or node.args.kwarg is not None for node in takers):
            continue
        edit = Edit("add", edge.span.line, edge.text, "extra_argument=None")
        yield Mutant(
            "SPM401", edge.span.file, (edit,), edge.caller, f"{edge.text}(extra_argument=)"
        )


FAULTS: tuple[Fault, ...] = (
    constant_flag,
    constant_report,
    dropped_flag,
    decided_twice,
    bypassed,
    unused_graph,
    _inserted("SPM201", EXPLICIT, False),
    _inserted("SPM202", HIDDEN, False),
    _inserted("SPM203", EXPLICIT, True),
    mirror_left,
    sync_in_decision,
    _inserted("SPM205", COPIES, False),
    unaccepted,
)
