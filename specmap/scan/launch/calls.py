"""Calling functions, methods and classes of the tree."""

from __future__ import annotations

import ast
from collections.abc import Callable

from specmap.scan.launch.machine import MOST_CALLS, MOST_RECURSIONS, Exit, Frame, Machine
from specmap.scan.launch.values import (
    Bound,
    Choice,
    Class,
    Either,
    External,
    Function,
    Instance,
    Lazy,
    Member,
    Module,
    Native,
    Raised,
    Scope,
    Unknown,
    View,
    merged,
    reasons_of,
    same,
)

Table = Callable[[str, list[object], dict[str, object]], object]


class Calls:
    """The caller of one machine. ``replaced`` answers for functions that are not run."""

    def __init__(
        self,
        machine: Machine,
        replaced: Callable[[str], Native | None],
        external: Table,
        own: tuple[str, ...],
    ) -> None:
        self.machine = machine
        self.replaced = replaced
        self.external = external
        self.own = own
        machine.invoke = self.invoke

    def invoke(
        self, target: object, positional: list[object], keywords: dict[str, object]
    ) -> object:
        """Call something.

        Raises:
            Raised: the call raises, whatever the unknown facts are.
        """
        if isinstance(target, Native):
            return target.call(positional, keywords)
        if isinstance(target, Bound):
            return self.invoke(target.function, [target.receiver, *positional], keywords)
        if isinstance(target, Function):
            return self._function(target, positional, keywords)
        if isinstance(target, Class):
            return self._construct(target, positional, keywords)
        if isinstance(target, External):
            return self.external(target.name, positional, keywords)
        if isinstance(target, Choice | Either):
            return self.machine.branch_value(
                target.reasons,
                [lambda one=one: self.invoke(one, positional, keywords) for one in target.values],  # type: ignore[misc]
            )
        if isinstance(target, Instance) and target.cls is not None and not target.open:
            owner = next((c for c in target.cls.mro() if "__call__" in c.slots), None)
            if owner is not None:
                function = self.machine.read(owner, "__call__")
                return self.invoke(function, [target, *positional], keywords)
        if target is None:
            raise Raised("TypeError", "'NoneType' object is not callable")
        reasons = reasons_of(target) or ("a call that could not be resolved",)
        self.machine.spoil([*positional, *keywords.values()], reasons[0])
        return self.machine.unknown(*reasons)

    # Functions

    def _function(
        self, function: Function, positional: list[object], keywords: dict[str, object]
    ) -> object:
        qualified = f"{function.module.name}.{function.name}"
        instead = self.replaced(qualified) or self.replaced(function.name)
        if instead is not None:
            if function.owner is not None and function.kind in ("plain", "property", "class"):
                positional = positional[1:]
            return instead.call(positional, keywords)
        if self._apart(function.module):
            return self._elsewhere(function, positional, keywords)
        if function.kind == "context" or self._too_deep(function):
            reason = f"{function.name}() at {function.module.file}:{function.node.lineno}"
            self.machine.spoil([*positional, *keywords.values()], reason)
            return self.machine.unknown(reason)
        scope = Scope(function.scope)
        if function.owner is not None and positional:
            scope.slots["__class__"] = function.owner
            scope.slots["__self__"] = positional[0]
        self._arguments(function, scope, positional, keywords)
        if isinstance(function.node, ast.Lambda):
            outer, self.machine.module = self.machine.module, function.module
            try:
                return self.machine.evaluate(function.node.body, scope)
            finally:
                self.machine.module = outer
        return self._run(function.node, function, scope)

    def _apart(self, module: Module) -> bool:
        within = self.machine.within
        return bool(within) and not module.name.startswith(within)

    def _elsewhere(
        self, function: Function, positional: list[object], keywords: dict[str, object]
    ) -> Unknown:
        """A function of another package: of its object, what its class writes is not known."""
        machine, owner = self.machine, function.owner
        reason = f"{function.name}() at {function.module.file}:{function.node.lineno}"
        if owner is not None and positional and isinstance(positional[0], Instance):
            made = positional[0]
            positional = positional[1:]
            for name in sorted(made.slots.keys() & _written(owner)):
                if (
                    not isinstance(made.slots[name], View)
                    and made.slots[name] is not machine.record
                ):
                    machine.heap.store(made, name, Unknown((reason,)))
        machine.spoil([*positional, *keywords.values()], reason)
        return machine.unknown(reason)

    def _too_deep(self, function: Function) -> bool:
        """Whether a call is cut off: in a long chain, or a recursion over unknown values."""
        running = self.machine.calls
        if len(running) >= MOST_CALLS:
            return True
        again = sum(frame.node is function.node for frame in running)
        return again >= MOST_RECURSIONS and bool(self.machine.why)

    def _run(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef, function: Function, scope: Scope
    ) -> object:
        machine = self.machine
        depth = machine.heap.push()
        frame = Frame(depth, node)
        saved = machine.module, machine.loops
        machine.calls.append(frame)
        machine.module, machine.loops = function.module, []
        falls, failed = False, None
        try:
            falls = machine.execute(node.body, scope)
        except Raised as raised:
            failed = raised
        finally:
            machine.module, machine.loops = saved
            machine.calls.remove(frame)
        if failed is not None:
            if not frame.returns:
                machine.heap.commit(depth)
                if function.module.name.startswith(self.own):
                    failed.explicit = True
                if failed.explicit:
                    raise failed
                return self._lost(function, scope, failed)
            machine.may_stop(failed, merged(machine.why, frame.why))
        exits = frame.returns
        if not exits:
            machine.heap.commit(depth)
            return None
        if not falls and failed is None and len(exits) == 1:
            delta = exits[0].delta
            machine.heap.take(depth)
            machine.heap.apply(delta)
            return exits[0].value
        last = machine.heap.take(depth)
        if falls:
            exits = [*exits, Exit(last)]
        machine.heap.join([e.delta for e in exits], frame.why)
        return machine.heap.join_values([e.value for e in exits], frame.why)

    def _lost(self, function: Function, scope: Scope, failed: Raised) -> Unknown:
        """An error that the code does not raise on purpose, outside the argument code.

        A value was taken for another there; what the call would have made is not known.
        """
        made = scope.slots.get("__self__")
        if isinstance(made, Instance) and made is not self.machine.record:
            made.open = True
        return self.machine.unknown(f"{function.name}(): {failed.message}")

    def _arguments(
        self,
        function: Function,
        scope: Scope,
        positional: list[object],
        keywords: dict[str, object],
    ) -> None:
        """Bind the parameters of a call.

        Raises:
            Raised: an argument is missing or not known.
        """
        args = function.node.args
        names = [a.arg for a in (*args.posonlyargs, *args.args)]
        slots, rest = scope.slots, dict(keywords)
        for name, value in zip(names, positional, strict=False):
            slots[name] = value
        extra = positional[len(names) :]
        if args.vararg is not None:
            slots[args.vararg.arg] = tuple(extra)
        elif extra:
            raise Raised("TypeError", f"{function.name}() takes {len(names)} positional arguments")
        known = {*names, *(a.arg for a in args.kwonlyargs)}
        for name in [n for n in rest if n in known]:
            slots[name] = rest.pop(name)
        if args.kwarg is not None:
            slots[args.kwarg.arg] = self.machine.box("dict", dict(rest))
        elif rest:
            raise Raised("TypeError", f"{function.name}() got an unexpected argument {min(rest)!r}")
        self._defaults(function, scope, names)

    def _defaults(self, function: Function, scope: Scope, names: list[str]) -> None:
        args, slots = function.node.args, scope.slots
        first = len(names) - len(args.defaults)
        pairs = [(name, args.defaults[i - first]) for i, name in enumerate(names) if i >= first]
        pairs += [(a.arg, d) for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True) if d]
        for name, default in pairs:
            if name not in slots:
                slots[name] = self.machine.evaluate(default, function.scope)
        for name in (*names, *(a.arg for a in args.kwonlyargs)):
            if name not in slots:
                raise Raised("TypeError", f"{function.name}() is missing argument {name!r}")

    # Classes

    def _construct(
        self, cls: Class, positional: list[object], keywords: dict[str, object]
    ) -> object:
        instead = self.replaced(cls.name)
        if instead is not None:
            return instead.call(positional, keywords)
        if cls.name in self.machine.blank:
            return self.machine.unknown(*self.machine.blank[cls.name])
        if "enum" in cls.marks:
            return self._member(cls, positional)
        if cls.module.name.startswith(self.machine.bare) and self.machine.bare:
            return Instance(cls, cls.name, open_=True)
        open_ = "open" in cls.marks or bool(self.machine.within)
        instance = Instance(cls, cls.name, open_=open_)
        init = next((c for c in cls.mro() if "__init__" in c.slots), None)
        if init is not None:
            function = self.machine.read(init, "__init__")
            self.invoke(function, [instance, *positional], keywords)
            return instance
        if "fields" in cls.marks:
            self.fill(instance, positional, keywords)
            hook = next((c for c in cls.mro() if "__post_init__" in c.slots), None)
            if hook is not None:
                self.invoke(self.machine.read(hook, "__post_init__"), [instance], {})
        return instance

    def _member(self, cls: Class, positional: list[object]) -> object:
        if not positional:
            return self.machine.unknown(cls.name)
        wanted = positional[0]
        if isinstance(wanted, Unknown | Choice):
            return Unknown(reasons_of(wanted))
        for name in cls.fields:
            member = cls.slots.get(name)
            if isinstance(member, Member) and (member is wanted or same(member.value, wanted)):
                return member
        if any("_missing_" in c.slots for c in cls.mro()):
            return self.machine.unknown(f"{cls.name}({wanted!r})")
        raise Raised("ValueError", f"{wanted!r} is not a valid {cls.name}")

    def fill(
        self, instance: Instance, positional: list[object], keywords: dict[str, object]
    ) -> None:
        """Set the fields of a dataclass or struct: what is given, else the defaults."""
        assert instance.cls is not None
        store = self.machine.heap.store
        rest = dict(keywords)
        classes = list(reversed(instance.cls.mro()))
        names = list(dict.fromkeys(name for c in classes for name in c.fields))
        for name, value in zip(names, positional, strict=False):
            store(instance, name, value)
        for name in names[len(positional) :]:
            if name in rest:
                store(instance, name, rest.pop(name))
            else:
                self._default(instance, name)
        if rest:
            raise Raised("TypeError", f"{instance.cls.name}() has no field {min(rest)!r}")

    def _default(self, instance: Instance, name: str) -> None:
        assert instance.cls is not None
        for cls in instance.cls.mro():
            node = default_node(cls, name)
            if node is None:
                continue
            if isinstance(node, ast.Call) and last_name(node.func) == "field":
                given = {k.arg: k.value for k in node.keywords}
                scope = cls.module
                with self.machine.apart(cls.module):
                    if "default_factory" in given:
                        factory = self.machine.evaluate(given["default_factory"], scope)
                        value = self.machine.invoke(factory, [], {})
                    elif "default" in given:
                        value = self.machine.evaluate(given["default"], scope)
                    else:
                        continue
                self.machine.heap.store(instance, name, value)
            elif name in cls.slots:
                value = cls.slots[name]
                value = self.machine.read(cls, name) if isinstance(value, Lazy) else value
                self.machine.heap.store(instance, name, value)
            return


def _written(cls: Class) -> frozenset[str]:
    """Return the attributes that the methods of a class and its bases assign."""
    return frozenset(
        node.attr
        for part in cls.mro()
        for node in ast.walk(part.node)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    )


def default_node(cls: Class, name: str) -> ast.expr | None:
    """Return the expression that a class body gives an annotated name, or None."""
    for item in cls.node.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            if item.target.id == name:
                return item.value
    return None


def last_name(node: ast.expr) -> str:
    """Return the last part of a dotted name."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
