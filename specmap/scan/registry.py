"""Workers that module code registers under the name of a speculative algorithm."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from specmap.codemap.condition import TRUE, AtomKind, Condition, all_of, leaf
from specmap.scan.module import ClassInfo
from specmap.scan.nodes import arguments_of
from specmap.scan.resolver import Resolver
from specmap.scan.values import ClassRef, Frame, FunctionRef, Instance, Scope, Value


def registered(resolver: Resolver) -> dict[ClassInfo, list[Condition]]:
    """Return when each class is made that a call at the top of a module registers.

    Such a call is handed a name, and a class or a function that makes one.
    """
    found: dict[ClassInfo, list[Condition]] = defaultdict(list)
    for module in resolver.tree.modules_under(resolver.vocabulary.speculative):
        scope = Scope(Frame(None, module))
        for statement in module.tree.body:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
                for cls, condition in _of_call(resolver, statement.value, scope):
                    found[cls].append(condition)
    return found


def _of_call(
    resolver: Resolver, call: ast.Call, scope: Scope
) -> Iterator[tuple[ClassInfo, Condition]]:
    passed = arguments_of(call)
    names = [p.value for p in passed if isinstance(p, ast.Constant) and isinstance(p.value, str)]
    values = [arm.value for p in passed for arm in resolver.evaluate(p, scope)] if names else []
    vocabulary = resolver.vocabulary
    owner = min(vocabulary.settings_names[cls] for cls in vocabulary.arguments.settings)
    setting = f"{owner}.{vocabulary.launch_words.algorithm['field']}"
    for name in names:
        chosen = leaf(f"{setting} == {name!r}", AtomKind.LAUNCH, scope.frame.module.span(call))
        for value in values:
            for cls, when in _made(resolver, value):
                yield cls, all_of(chosen, when)


def _made(resolver: Resolver, value: Value) -> Iterator[tuple[ClassInfo, Condition]]:
    if isinstance(value, ClassRef):
        yield value.cls, TRUE
    elif isinstance(value, FunctionRef):
        for item in resolver.run(Frame(value.function, value.function.module)).returns:
            for arm in resolver.evaluate(item.value, item.scope) if item.value else ():
                if isinstance(arm.value, Instance):
                    when = all_of(resolver.condition(item.path), arm.condition)
                    yield arm.value.cls, resolver.settled(when)
