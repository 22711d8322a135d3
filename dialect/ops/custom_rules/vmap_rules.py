"""Users' vectorization rules, and those of the derivatives of functions that have such a rule.

A rule says how a function is computed over a batch axis: for each extent of the axis and each
choice of operands that have it. It cannot be a function of the dialect before both are known, so a
module that is written holds its name only. All batch axes stand in front here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from ...derived import derive
from ...errors import MissingRuleError, UnexpectedTracerError
from ...function import Function
from ...trace import trace_function
from ...types import ShapedArray
from ..shape import moveaxis
from .bodies import inexact
from .custom_lin import to_front
from .derivatives import linear_part_of, tangents_of, transpose_of

Flags = tuple[bool, ...]
Batched = tuple[Function, Flags]
"""A function of operands with their batch axes, and which of its results have one."""
Apply = Callable[[int, Flags, Sequence[Any]], tuple[list[Any], list[bool]]]


class VmapRule(str, ABC):
    """A rule, known to modules by its name.

    Attributes:
        types: Types of the operands of one element.
        wants_batch: Whether the rule is asked even where it could see one element, as in a
            derivative at one point in many directions.
    """

    types: list[ShapedArray]
    wants_batch = False

    def __new__(cls, name: str, *args: Any) -> Any:
        """Makes the text that stands in modules."""
        return super().__new__(cls, name)

    def __init__(self, name: str, types: Sequence[ShapedArray]):
        self.types = list(types)
        self._functions: dict[tuple[int, Flags], Batched] = {}

    # Two rules of one name are two rules.
    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def apply(self, size: int, flags: Flags, values: Sequence[Any]) -> tuple[list[Any], list[bool]]:
        """Applies the rule to values.

        Args:
            size: Extent of the batch axis.
            flags: Which operands have it.
            values: The operands.

        Returns:
            The results, and which of them have the axis.
        """
        function, out_flags = self.batched(size, flags)
        return function.evaluate(*values), list(out_flags)

    def batched(self, size: int, flags: Flags) -> Batched:
        """Returns the rule as a function, for a batch axis of some operands."""
        found = self._functions.get((size, flags))
        if found is None:
            found = self._functions[size, flags] = self._make(size, flags)
        return found

    def asks(self, flags: Flags) -> bool:
        """Tells whether the user's rule is asked for a batch axis of some operands."""
        return True

    @abstractmethod
    def _make(self, size: int, flags: Flags) -> Batched:
        """Traces the rule."""

    def for_operands(self, types: Sequence[ShapedArray]) -> VmapRule:
        """Returns the rule with the further operands of a derived function, which it ignores."""
        return self if len(types) == len(self.types) else ExtendedRule(self, types)

    def stacked(self, size: int, flags: Sequence[bool]) -> list[ShapedArray]:
        """Returns the types of the operands, some of them with a batch axis."""
        return [
            t.update(shape=(size, *t.shape)) if has else t
            for t, has in zip(self.types, flags, strict=True)
        ]


class UserRule(VmapRule):
    """The rule of a user's function.

    Args:
        name: What the user calls it.
        types: Types of the operands of one element.
        count: How many of them are arguments; the others are what the function closes over.
        call: Calls the rule on values of the arguments.
        function_name: What the user calls the function.
        wants_batch: See `VmapRule`.
    """

    def __init__(
        self,
        name: str,
        types: Sequence[ShapedArray],
        count: int,
        call: Apply,
        function_name: str,
        wants_batch: bool = False,
    ):
        super().__init__(name, types)
        self.arity = count
        self.wants_batch = wants_batch
        self.function_name = function_name
        self._call = call

    def apply(self, size: int, flags: Flags, values: Sequence[Any]) -> tuple[list[Any], list[bool]]:
        """Calls the rule on the values, so that Python code in it may look at them."""
        if any(flags[self.arity :]):
            raise UnexpectedTracerError(
                f"Detected vectorization of the custom_vmap function {self.function_name!r} over a "
                "closed-over value: its rule only says how to vectorize over its arguments.",
                "Pass the value to the function as an argument and let the rule handle it.",
            )
        return self._call(size, flags[: self.arity], values[: self.arity])

    def _make(self, size: int, flags: Flags) -> Batched:
        out_flags: list[bool] = []

        def traced(*values: Any) -> list[Any]:
            outs, found = self.apply(size, flags, values)
            out_flags.extend(found)
            return outs

        function = trace_function(traced, self.stacked(size, flags), name=str(self), kind="Vmap")
        return function, tuple(out_flags)


class ExtendedRule(VmapRule):
    """A rule with further operands: constants that the derivative of a function captured."""

    def __new__(cls, base: VmapRule, types: Sequence[ShapedArray]) -> Any:
        """Makes the text that stands in modules."""
        return super().__new__(cls, str(base))

    def __init__(self, base: VmapRule, types: Sequence[ShapedArray]):
        super().__init__(str(base), types)
        self.base = base
        self.wants_batch = base.wants_batch

    def asks(self, flags: Flags) -> bool:
        """Tells whether the user's rule is asked for a batch axis of some operands."""
        return self.base.asks(flags[: len(self.base.types)])

    def _make(self, size: int, flags: Flags) -> Batched:
        count = len(self.base.types)
        function, out_flags = self.base.batched(size, flags[:count])

        def apply(*values: Any) -> list[Any]:
            return function.evaluate(*values[:count])

        types = self.stacked(size, flags)
        return trace_function(apply, types, name=function.name, kind="Vmap"), out_flags


class LostRule(VmapRule):
    """The rule of a function that was read from a module."""

    def _make(self, size: int, flags: Flags) -> NoReturn:
        raise MissingRuleError(
            f"The vectorization rule {str(self)!r} of a custom_vmap function is Python, and was "
            "not saved with its module.",
            "Apply vmap before saving: for a known batch the rule has become ops.",
        )


def rule_of(parameter: str, types: Sequence[ShapedArray]) -> VmapRule:
    """Returns the rule that a parameter of an op is."""
    return parameter if isinstance(parameter, VmapRule) else LostRule(parameter, types)


class TangentRule(VmapRule):
    """The rule of a function's derivative: the derivative of its rule.

    Operands are those of the function, then the tangents of the active ones. Where only values or
    only tangents have the batch axis, a user's rule sees one element, and its derivative is
    vectorized. A rule that is itself a derivative is asked if values have the axis; else the
    derivative of one element is vectorized.

    Args:
        name: What the user calls the rule.
        base: The rule of the function.
        active: Which operands of the function have tangents.
        is_linear: Whether to return the tangents only.
        one: The derivative for one element.
    """

    def __init__(self, name: str, base: VmapRule, active: Flags, is_linear: bool, one: Function):
        moving = [t for t, is_active in zip(base.types, active, strict=True) if is_active]
        super().__init__(name, [*base.types, *moving])
        self.base = base
        self.wants_batch = base.wants_batch
        self.active = active
        self.is_linear = is_linear
        self.one = one

    def _pairs(self, flags: Flags) -> list[tuple[bool, bool]]:
        """Returns for each operand of the function whether it and its tangent have the axis."""
        primals, moving = flags[: len(self.active)], iter(flags[len(self.active) :])
        return [(p, next(moving) if a else p) for p, a in zip(primals, self.active, strict=True)]

    def asks(self, flags: Flags) -> bool:
        """Tells whether the user's rule is asked for a batch axis of some operands."""
        is_any = any(p for p, _ in self._pairs(flags))
        return is_any or self.wants_batch or isinstance(self.base, UserRule)

    def _make(self, size: int, flags: Flags) -> Batched:
        if not self.asks(flags):
            return kept(self, self.one, size, flags)
        pairs = self._pairs(flags)
        either = tuple(p or t for p, t in pairs)
        sees_one = isinstance(self.base, UserRule) and not self.wants_batch
        if sees_one and not any(p and t for p, t in pairs):
            nothing = (False,) * len(pairs)
            function, out_flags = self.base.batched(size, nothing)
            if not any(out_flags):
                return vectorized(self._derivative(function), size, flags)
        function, out_flags = self.base.batched(size, either)
        derivative = self._derivative(function)
        wanted = [*either, *(e for e, a in zip(either, self.active, strict=True) if a)]

        def apply(*values: Any) -> list[Any]:
            return derivative.evaluate(*spread_over(size, values, flags, wanted))

        has_tangent = inexact(function.output_types)
        result_flags = [f for f, has in zip(out_flags, has_tangent, strict=True) if has]
        return (
            trace_function(apply, self.stacked(size, flags), name=str(self), kind="Vmap"),
            (*(() if self.is_linear else out_flags), *result_flags),
        )

    def _derivative(self, function: Function) -> Function:
        derive_it = linear_part_of if self.is_linear else tangents_of
        return derive_it(function, self.active)


class TransposedRule(VmapRule):
    """The rule of the transpose of a function in some operands: the transpose of its rule.

    Operands are those in which the function is not linear, then the cotangents of its results.
    What varies over the batch gives each element a cotangent of its own, so the rule that is
    transposed sees linear operands along the batch axis. Where only cotangents vary, the transpose
    of one element is vectorized.

    Args:
        name: What the user calls the rule.
        base: The rule of the function.
        linear: Which of its operands it is linear in.
        result_types: Types of its results.
        one: The transpose for one element.
    """

    def __init__(
        self,
        name: str,
        base: VmapRule,
        linear: Flags,
        result_types: Sequence[ShapedArray],
        one: Function,
    ):
        known = [t for t, is_linear in zip(base.types, linear, strict=True) if not is_linear]
        super().__init__(name, [*known, *result_types])
        self.base = base
        self.wants_batch = base.wants_batch
        self.linear = linear
        self.one = one

    def asks(self, flags: Flags) -> bool:
        """Tells whether the user's rule is asked for a batch axis of some operands."""
        return any(flags[: self.linear.count(False)]) or self.wants_batch

    def _make(self, size: int, flags: Flags) -> Batched:
        if not self.asks(flags):
            return kept(self, self.one, size, flags)
        count = self.linear.count(False)
        known, cotangents = flags[:count], flags[count:]
        moving = iter(known)
        full = tuple(is_linear or next(moving) for is_linear in self.linear)
        function, out_flags = self.base.batched(size, full)
        pullback = transpose_of(function, self.linear)

        def apply(*values: Any) -> list[Any]:
            batch = spread_over(size, values[count:], cotangents, [True] * len(cotangents))
            # A result that is the same for all elements gets what all of them send back.
            pulled = [x if has else _sum(x) for x, has in zip(batch, out_flags, strict=True)]
            return pullback.evaluate(*values[:count], *pulled)

        traced = trace_function(apply, self.stacked(size, flags), name=str(self), kind="Vmap")
        return traced, (True,) * len(traced.outputs)


class InnerRule(VmapRule):
    """The rule of a derivative that was vectorized before its rule had a batch to see.

    Args:
        base: The rule of the derivative.
        size: Extent of the axis over which it was vectorized.
        flags, out_flags: Which operands and results have that axis, in front.
        one: The derivative, so vectorized, for one element of a further axis.
    """

    def __new__(cls, base: VmapRule, *args: Any) -> Any:
        """Makes the text that stands in modules."""
        return super().__new__(cls, str(base))

    def __init__(self, base: VmapRule, size: int, flags: Flags, out_flags: Flags, one: Function):
        super().__init__(str(base), base.stacked(size, flags))
        self.base = base
        self.wants_batch = base.wants_batch
        self.size = size
        self.flags, self.out_flags = flags, out_flags
        self.one = one

    def asks(self, flags: Flags) -> bool:
        """Tells whether the user's rule is asked for a batch axis of some operands."""
        return self.base.asks(flags)

    def _make(self, size: int, flags: Flags) -> Batched:
        if not self.asks(flags):
            return kept(self, self.one, size, flags)
        function, found = self.base.batched(size, flags)
        axes = [int(outer) if has else None for outer, has in zip(flags, self.flags, strict=True)]
        captures = (None,) * len(function.captures)
        derived = derive(function, "vmap", self.size, (*axes, *captures), None, None)

        def place(x: Any, axis: int | None, outer: bool, is_wanted: bool) -> Any:
            if not is_wanted:
                return x
            if axis is None:
                x, axis = to_front(x, None, self.size), 0
            return moveaxis(x, axis, int(outer))

        def apply(*values: Any) -> list[Any]:
            results = derived.function.evaluate(*values, *function.captured)
            return list(map(place, results, derived.axes, found, self.out_flags))

        types = self.stacked(size, flags)
        return trace_function(apply, types, name=str(self), kind="Vmap"), found


def kept(rule: VmapRule, one: Function, size: int, flags: Flags) -> Batched:
    """Vectorizes a derivative by the rules of its ops, and keeps its rule for further axes.

    Args:
        rule: The rule of the derivative.
        one: The derivative for one element.
        size: Extent of the batch axis.
        flags: Which operands have it.
    """
    from .custom_vmap import call_with_vmap

    function, out_flags = vectorized(one, size, flags)
    types = [v.type for v in (*function.inputs, *function.captures)]
    further = InnerRule(rule, size, flags, out_flags, function).for_operands(types)

    def apply(*values: Any) -> list[Any]:
        return call_with_vmap(function, further, values)

    return trace_function(apply, rule.stacked(size, flags), name=one.name, kind="Vmap"), out_flags


def _sum(x: Any) -> Any:
    from ..reduce import reduce_sum

    return reduce_sum(x, (0,))


def spread_over(
    size: int, values: Sequence[Any], flags: Sequence[bool], wanted: Sequence[bool]
) -> list[Any]:
    """Broadcasts values along a new axis in front where it is wanted and they have none."""
    return [
        to_front(x, None, size) if wants and not has else x
        for x, has, wants in zip(values, flags, wanted, strict=True)
    ]


def vectorized(function: Function, size: int, flags: Flags) -> Batched:
    """Vectorizes a function of one element, by the rules of its ops, over axes in front."""
    axes = (*(0 if has else None for has in flags), *(None for _ in function.captures))
    derived = derive(function, "vmap", size, axes, None, None)
    types = [v.type for v in derived.function.inputs]

    def apply(*values: Any) -> list[Any]:
        results = derived.function.evaluate(*values, *function.captured)
        return [
            x if axis is None else moveaxis(x, axis, 0)
            for x, axis in zip(results, derived.axes, strict=True)
        ]

    count = len(types) - len(function.captures)
    traced = trace_function(apply, types[:count], name=function.name, kind="Vmap")
    return traced, tuple(axis is not None for axis in derived.axes)
