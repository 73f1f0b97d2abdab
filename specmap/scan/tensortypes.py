"""What the device typing knows about one expression, and how a comprehension binds names."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from specmap.scan.guards import Binding, Bound, Path, Test
from specmap.scan.nodes import nodes_in
from specmap.scan.values import Scope

CPU, CUDA, UNKNOWN = "cpu", "cuda", "unknown"


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor (or, on the CPU, a numpy array); ``is_bool`` where its dtype is known so."""

    device: str
    is_bool: bool = False


@dataclass(frozen=True, slots=True)
class Host:
    """A Python object that is no tensor; ``element`` is what iterating it gives.

    ``items`` are the parts of a tuple whose length is known.
    """

    element: Tensor | None = None
    items: tuple[Tensor | Host | None, ...] = ()

    def at(self, index: ast.expr | int | None) -> Tensor | Host | None:
        """Return one part."""
        number = index.value if isinstance(index, ast.Constant) else index
        if isinstance(number, int) and 0 <= number < len(self.items):
            return self.items[number]
        return self.element or HOST


Typed = Tensor | Host | None
HOST = Host()


def joined(*parts: Typed) -> Typed:
    """Return what an expression with several values is; a tensor on any way makes it one."""
    found = [part for part in parts if isinstance(part, Tensor)]
    if found:
        devices = {part.device for part in found} - {UNKNOWN}
        device = devices.pop() if len(devices) == 1 else UNKNOWN
        return Tensor(device, all(part.is_bool for part in found))
    hosts = [part for part in parts if isinstance(part, Host)]
    if not hosts:
        return None
    first = next((host for host in hosts if host.element), hosts[0])
    alike = all(host.items == first.items for host in hosts if host.element)
    return first if alike else Host(first.element)


def comprehension_scope(
    node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, scope: Scope
) -> Scope:
    """Return the scope of a comprehension's elements."""
    env = dict(scope.env)
    for generator in node.generators:
        outer = Scope(scope.frame, dict(env), scope.facts)
        _bind(generator.target, generator.iter, outer, (None,), env)
    return Scope(scope.frame, env, scope.facts)


def _bind(
    target: ast.expr,
    value: ast.expr,
    scope: Scope,
    index: tuple[int | None, ...],
    env: dict[str, Binding],
) -> None:
    if isinstance(target, ast.Name):
        env[target.id] = Bound(value, scope, index)
    elif isinstance(target, ast.Tuple | ast.List):
        for position, item in enumerate(target.elts):
            _bind(item, value, scope, (*index, position), env)


def asks_device(path: Path) -> bool:
    """Whether a branch is only there to bring a tensor to one side."""
    test = path[-1] if path else None
    if not isinstance(test, Test):
        return False
    attributes = {n.attr for n in nodes_in(test.node) if isinstance(n, ast.Attribute)}
    return bool(attributes & {"is_cpu", "is_cuda", "device"})
