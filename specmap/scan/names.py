"""What a name means in a scope: a local, a parameter, a closure's name, a module's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specmap.codemap.condition import (
    negate,
)
from specmap.scan.guards import Binding, Bound, Choice, Imported, Known
from specmap.scan.module import FunctionInfo
from specmap.scan.values import (
    NONE,
    Arm,
    Arms,
    ClassRef,
    Frame,
    Instance,
    Scope,
    is_known,
    only,
    under,
    unite,
)

if TYPE_CHECKING:
    from specmap.scan.resolver import Resolver


class Names:
    """Looks names up and opens their bindings."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._bindings: dict[Bound | Choice, Arms] = {}

    def name(self, name: str, scope: Scope) -> Arms:
        """Return what a name means in a scope: local, parameter, closure, module, builtin."""
        binding = scope.env.get(name)
        if binding is not None:
            return self.binding(binding)
        frame = scope.frame
        function = frame.function
        if name in frame.extra:
            return frame.extra[name]
        if function is not None:
            found = self._parameter(function, frame, name)
            if found is not None:
                return found
        if frame.closure is not None:
            return self.name(name, frame.closure)
        return self._resolver.types.module_name(frame.module, name)

    def _parameter(self, function: FunctionInfo, frame: Frame, name: str) -> Arms | None:
        index = function.positions.get(name)
        if index is None:
            return None
        if index == 0 and function.owner is not None and not function.is_static:
            return self._self(function, frame)
        if index == 0 and frame.self_value is not None and not function.is_static:
            return only(frame.self_value)  # a function in place of a method
        return self._resolver.parameters.value(frame, name)

    def _self(self, function: FunctionInfo, frame: Frame) -> Arms:
        assert function.owner is not None
        if function.is_classmethod:
            cls = getattr(frame.self_value, "cls", None) or function.owner
            return only(ClassRef(cls))
        if frame.self_value is not None:
            return only(frame.self_value)
        if frame.call is not None and frame.caller is not None and frame.call.args:
            return self._resolver.evaluate(frame.call.args[0], frame.caller)
        return only(self._resolver.any_instance(function.owner))

    def binding(self, binding: Binding | None) -> Arms:
        """Return what a local binding holds."""
        if binding is None:
            return ()
        if isinstance(binding, Known):
            return binding.arms
        if isinstance(binding, Imported):
            return self._resolver.types.imported(binding.module, binding.name)
        known = self._bindings.get(binding)
        if known is not None:
            return known
        return self._resolver.memo.get(
            self._bindings, binding, lambda: self._open_binding(binding), ()
        )

    def _open_binding(self, binding: Bound | Choice) -> Arms:
        return self._bound(binding) if isinstance(binding, Bound) else self._choice(binding)

    def _bound(self, binding: Bound) -> Arms:
        found = self._resolver.access.pick(
            self._resolver.evaluate(binding.node, binding.scope), binding.index
        )
        if binding.annotation is not None:
            declared = self._resolver.types.annotation(binding.annotation, binding.scope)
            found = self._narrowed(found, declared)
        return found or self._resolver.expressions.opaque(binding.node, binding.scope)

    def _narrowed(self, found: Arms, declared: Arms) -> Arms:
        """Keep the values that an annotation allows; where none is left, what it says."""
        classes = {arm.value.cls for arm in declared if isinstance(arm.value, Instance)}
        if not classes:
            return found if is_known(found) else declared or found
        kept = tuple(
            arm
            for arm in found
            if isinstance(arm.value, Instance)
            and classes & set(self._resolver.types.mro(arm.value.cls))
        )
        if any(arm.value == NONE for arm in declared):
            return kept or declared
        # The annotation says that the value is there: why it is does not matter here.
        return tuple(Arm(arm.value) for arm in kept) or declared

    def _choice(self, binding: Choice) -> Arms:
        taken = self._resolver.truths.taken(binding.path)
        then = under(self.binding(binding.then), taken)
        other = under(self.binding(binding.other), negate(taken))
        return unite(then, other)
