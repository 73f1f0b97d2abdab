"""The target's graph runner captures verify.

**Before**

    self.capture_forward_mode = ForwardMode.DECODE
    self.num_tokens_per_bs = 1

**After**

    if model_runner.spec_algorithm.is_speculative() and not model_runner.is_draft_worker:
        self.capture_forward_mode = ForwardMode.TARGET_VERIFY
        self.num_tokens_per_bs = model_runner.server_args.speculative_num_draft_tokens

Where the runner has an arm for speculation that captures another mode, that arm is changed. Where
a method of the runner returns the mode and the number of tokens, it returns those of verify first.

Preconditions: the number of verify tokens is fixed at launch by one setting; the runner stores
the number of tokens of a request in an attribute that is known. Not checked: how the captured
body fills a verify input, which is why this is for review. Proof: a scan of the result, in which
verify can replay.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import libcst as cst

from specmap.codemap.graph import Phase
from specmap.codemap.hazards import CapturedMode
from specmap.codemap.remedy import Change, Proposal, Rewrite, Safety
from specmap.codemap.source import Span
from specmap.fix.facts import Facts, facts_of
from specmap.fix.lost import lost, runners
from specmap.fix.tree import Source, Tree, statements, walk


def find(tree: Tree) -> Iterator[Proposal]:
    """Propose to capture verify in each runner of a target that lost it."""
    facts = facts_of(tree)
    wanting = [(w, p) for w, p in lost(tree, facts) if p.static_shape and p.static_shape.fixed]
    for runner in runners(tree, facts) if wanting else ():
        if facts.captures_verify(runner):
            continue
        stored = [c for c in tree.codemap.hazards.captured_modes if c.runner == runner]
        workers = tuple(w.id for w, _ in wanting)
        if stored:
            yield from _proposed(tree, facts, stored, wanting[0][1], workers)
        else:
            yield from _returned(tree, facts, runner, wanting[0][1], workers)


def _returned(
    tree: Tree, facts: Facts, runner: str, phase: Phase, workers: tuple[str, ...]
) -> Iterator[Proposal]:
    """A method that returns mode and width together gets a first arm for verify."""
    for store in facts.mode_stores(runner):
        function, method = (tree.function(f"{runner}.{n}") for n in (store.holder, store.method))
        source = tree.source_of(runner)
        targets = store.statement.targets[0]
        if function is None or method is None or not isinstance(targets, ast.Tuple):
            continue
        mode = f"{facts.mode_place.rpartition('::')[2]}.{facts.modes[0]}"
        width = _width(source, function, phase, True)
        known = {n for n, value in tree.names.pairs("numbers") if value == "width"}
        others = [ast.unparse(t).removeprefix("self.") for t in targets.elts]
        others.remove(store.attribute)
        test = _speculates(source, function, facts, _held(source, function))
        refused = ""
        if len(others) != 1 or others[0] not in known:
            refused = "the runner's number of tokens of a request is not known"
        elif not width or not _stored_before(source, function, width, store.statement.lineno):
            refused = "the runner does not know the number of verify tokens when it asks"
        elif not test:
            refused = "the runner does not know the algorithm"
        parts = [mode, width] if store.index == 0 else [width, mode]
        code = f"if {test}:\n    return {', '.join(parts)}\n"
        first = _first_statement(method)
        line = source.lines(method)[0]
        yield Proposal(
            REWRITE.id,
            Span(source.file, line, line),
            f"{runner}.{store.method}",
            f"{store.method} returns no mode of verify for the runner to capture",
            () if refused else (source.before(first, code),),
            (f"the runner captures {', '.join(sorted(facts.captured(runner) or ()))}",),
            refused,
            workers,
        )


def _first_statement(function: cst.FunctionDef) -> cst.CSTNode:
    """The first statement of a function after its docstring."""
    body = list(function.body.body)
    text = function.get_docstring() is not None
    return body[1] if text and len(body) > 1 else body[0]


def _held(source: Source, function: cst.FunctionDef) -> str:
    """Where the constructor keeps its first parameter: ``self.model_runner``."""
    name = _parameter(function)
    kept = [
        source.code(s.body[0].targets[0].target)
        for s in statements(function)
        if isinstance(s.body[0], cst.Assign) and source.code(s.body[0].value) == name
    ]
    return kept[0] if kept else ""


def _stored_before(source: Source, function: cst.FunctionDef, width: str, line: int) -> bool:
    """Whether the constructor stores an attribute of its own before a line."""
    own = width.removeprefix("self.")
    if own == width or "." in own:
        return True
    return any(source.lines(s)[0] < line for s in _width_stores(source, function, own))


def _proposed(
    tree: Tree, facts: Facts, stored: list[CapturedMode], phase: Phase, workers: tuple[str, ...]
) -> Iterator[Proposal]:
    holder = stored[0].holder
    function, source = tree.function(holder), tree.source_of(holder)
    if function is None:
        return
    mode = f"{facts.mode_place.rpartition('::')[2]}.{facts.modes[0]}"
    attribute = _width_attribute(tree, source, function)
    width = _width(source, function, phase)
    refused = "" if attribute and width else (
        "the runner's number of tokens of a request is not known"
    )  # fmt: skip
    lines = {capture.span.line for capture in stored}
    stores = [s for s in statements(function) if source.lines(s)[0] in lines]
    arm = next((s for s in stores if _for_speculation(source, function, s, facts, holder)), None)
    changes: tuple[Change, ...] = ()
    if arm is not None and isinstance(arm.body[0], cst.Assign):
        changes = (source.replace(arm.body[0].value, mode),)
        if attribute and not _follows(source, function, arm, attribute):
            changes = (*changes, source.after(arm, f"self.{attribute} = {width}\n"))
    elif stores:
        test = _speculates(source, function, facts)
        refused = refused or ("" if test else "the runner does not know the algorithm")
        last = max(stores + _width_stores(source, function, attribute), key=source.lines)
        target = source.code(stores[0].body[0]).partition(" = ")[0]
        body = f"    {target} = {mode}\n    self.{attribute} = {width}\n"
        changes = (source.after(last, f"if {test}:\n{body}"),)
    line = source.lines(arm or stores[0])[0] if stores else function_line(source, function)
    captured = ", ".join(sorted({capture.mode for capture in stored}))
    yield Proposal(
        REWRITE.id,
        Span(source.file, line, line),
        holder,
        f"the runner captures {captured} and no mode of verify",
        () if refused else changes,
        (f"every request verifies {phase.static_shape.tokens_per_request} tokens"
         if phase.static_shape else "",),
        refused,
        workers,
    )  # fmt: skip


def function_line(source: Source, function: cst.FunctionDef) -> int:
    """Return the line of a function."""
    return source.lines(function)[0]


def _width_attribute(tree: Tree, source: Source, function: cst.FunctionDef) -> str:
    """The attribute that the constructor stores and that holds the tokens of a request."""
    known = [name for name, value in tree.names.pairs("numbers") if value == "width"]
    fixed = set(tree.names.scan.fixed_width)
    stored = {n for n in known if n not in fixed and _width_stores(source, function, n)}
    return min(stored, default="")


def _width_stores(
    source: Source, function: cst.FunctionDef, name: str
) -> list[cst.SimpleStatementLine]:
    return [
        s
        for s in statements(function)
        if isinstance(s.body[0], cst.Assign) and source.code(s.body[0]).startswith(f"self.{name} =")
    ]


def _width(source: Source, function: cst.FunctionDef, phase: Phase, elsewhere: bool = False) -> str:
    """The setting that fixes the width, as the constructor can read it, or ``elsewhere``."""
    shape = phase.static_shape
    setting = shape.tokens_per_request if shape else ""
    own = setting.rpartition(".")[2]
    if own and _width_stores(source, function, own):
        return f"self.{own}"
    if "(" in setting.partition(".")[0]:
        return setting
    runner = _held(source, function) if elsewhere else _parameter(function)
    return f"{runner}.{setting}" if setting and runner else ""


def _parameter(function: cst.FunctionDef) -> str:
    names = [p.name.value for p in function.params.params[1:]]
    return names[0] if names else ""


def _speculates(source: Source, function: cst.FunctionDef, facts: Facts, runner: str = "") -> str:
    """A test that holds where a target runner speculates; ``runner`` is how it is called."""
    algorithm, runner = facts.algorithm_test, runner or _parameter(function)
    marks = sorted(facts.tree.names.scan.launch_words.draft_marks)
    names = sorted(facts.tree.names.scan.launch_words.algorithm_names)
    name = next((n for n in names if f".{n}" in source.text), "")
    if not algorithm or not runner or not name or not marks:
        return ""
    return f"{runner}.{name}.{algorithm}() and not {runner}.{marks[0]}"


def _for_speculation(
    source: Source, function: cst.FunctionDef, store: cst.CSTNode, facts: Facts, holder: str
) -> bool:
    """Whether a store stands in an arm whose test holds for speculation."""
    return any(
        isinstance(node, cst.If)
        and any(inner is store for inner in walk(node.body))
        and facts.truth(source.flat(node.test), facts.scope(holder)) is True
        for node in walk(function.body)
    )


def _follows(source: Source, function: cst.FunctionDef, arm: cst.CSTNode, attribute: str) -> bool:
    """Whether the same block stores the width."""
    blocks = [n for n in walk(function) if isinstance(n, cst.IndentedBlock)]
    own = next((b for b in blocks if any(s is arm for s in b.body)), None)
    stores = _width_stores(source, function, attribute)
    return own is not None and any(s is store for s in own.body for store in stores)


REWRITE = Rewrite(
    id="SPF104",
    name="verify-not-captured",
    summary="The target's graph runner captures verify",
    safety=Safety.REVIEW,
    find=find,
    rules=("SPM107",),
    page=__doc__ or "",
)
