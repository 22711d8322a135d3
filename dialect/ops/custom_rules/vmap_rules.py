"""Users' vectorization rules, and the rules derived from them for derivatives.

A rule computes a function over a batch axis: for each extent of the axis and each choice of
operands that have it. It cannot be a function of the dialect before both are known, so the text of
a module holds its name only. All batch axes stand in front here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from axir.dialect.core.errors import MissingRuleError, UnexpectedTracerError
from axir.dialect.core.state import BatchFrame
from axir.dialect.core.symbolic_zeros import Marks, chosen, inexact, inverted, union
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.reductions.reduce import reduce_sum
from axir.dialect.ops.shape.rearranging import move_batch_axis
from axir.dialect.program.derived_functions import derive
from axir.dialect.program.function import Function
from axir.dialect.program.function_tracing import trace_function
from axir.dialect.program.op_table import OPS
from axir.dialect.program.rules import FlatFunction, Value

from .bodies import batched_rule, batched_types, linear_part_of, tangents_of, transpose_of

Batched = tuple[Function, Marks]
"""A function of operands with their batch axes, and which of its results have one."""
Apply = Callable[[int, Marks, Sequence[Any]], tuple[list[Any], list[bool]]]


class VmapRule(str, ABC):
    """A rule, known to modules by its name.

    Attributes:
        types: Types of the operands of one element.
        wants_batch: Whether the rule is used even if one element would suffice, as in a derivative
            at one point in many directions.
    """

    types: list[ShapedArray]
    wants_batch = False

    def __new__(cls, name: str, *args: object) -> VmapRule:
        """Makes the text for modules."""
        return super().__new__(cls, name)

    def __init__(self, name: str, types: Sequence[ShapedArray]):
        self.types = list(types)
        self._functions: dict[tuple[int, Marks], Batched] = {}

    # Two rules of one name are different.
    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def apply(
        self, size: int, flags: Marks, values: Sequence[Value]
    ) -> tuple[list[Value], list[bool]]:
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

    def batched(self, size: int, flags: Marks) -> Batched:
        """Returns the rule as a function; some operands have a batch axis."""
        found = self._functions.get((size, flags))
        if found is None:
            found = self._functions[size, flags] = self._make(size, flags)
        return found

    def asks(self, flags: Marks) -> bool:
        """Tells whether the user's rule is used for a batch axis of some operands."""
        return True

    @abstractmethod
    def _make(self, size: int, flags: Marks) -> Batched:
        """Traces the rule."""

    def for_operands(self, types: Sequence[ShapedArray]) -> VmapRule:
        """Returns the rule with the further operands of a derived function, which it ignores."""
        return self if len(types) == len(self.types) else ExtendedRule(str(self), types, self)

    def traced(self, apply: FlatFunction, size: int, flags: Marks) -> Function:
        """Traces a function of the operands, some of them with a batch axis."""
        types = batched_types(self.types, _axes(flags), size)
        return trace_function(apply, types, name=str(self), kind="Vmap")


class UserRule(VmapRule):
    """The rule of a user's function.

    Args:
        name: Name of the user's rule.
        types: Types of the operands of one element.
        count: How many of them are arguments; the others are captured values of the function.
        call: Calls the rule on values of the arguments.
        function_name: Name of the user's function.
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

    def apply(
        self, size: int, flags: Marks, values: Sequence[Value]
    ) -> tuple[list[Value], list[bool]]:
        """Calls the rule on the values, so that Python code in it may look at them."""
        if any(flags[self.arity :]):
            raise UnexpectedTracerError(
                f"Detected vectorization of the custom_vmap function {self.function_name!r} over a "
                "closed-over value: its rule only says how to vectorize over its arguments.",
                "Pass the value to the function as an argument and let the rule handle it.",
            )
        return self._call(size, flags[: self.arity], values[: self.arity])

    def _make(self, size: int, flags: Marks) -> Batched:
        out_flags: list[bool] = []

        def apply(*values: Value) -> list[Value]:
            outs, found = self.apply(size, flags, values)
            out_flags.extend(found)
            return outs

        return self.traced(apply, size, flags), tuple(out_flags)


class ExtendedRule(VmapRule):
    """A rule with further operands: captured constants of a derivative."""

    def __init__(self, name: str, types: Sequence[ShapedArray], base: VmapRule):
        super().__init__(name, types)
        self.base = base
        self.wants_batch = base.wants_batch

    def asks(self, flags: Marks) -> bool:
        """Tells whether the user's rule is used for a batch axis of some operands."""
        return self.base.asks(flags[: len(self.base.types)])

    def _make(self, size: int, flags: Marks) -> Batched:
        count = len(self.base.types)
        function, out_flags = self.base.batched(size, flags[:count])
        return self.traced(lambda *xs: function.evaluate(*xs[:count]), size, flags), out_flags


class LostRule(VmapRule):
    """The rule of a function that was read from a module."""

    def _make(self, size: int, flags: Marks) -> NoReturn:
        raise MissingRuleError(
            f"The vectorization rule {str(self)!r} of a custom_vmap function is Python, and was "
            "not saved with its module.",
            "Apply vmap before saving: for a known batch the rule has become ops.",
        )


def rule_of(parameter: str, function: Function) -> VmapRule:
    """Returns the rule of a call's parameter; it takes all operands of the function."""
    types = function.in_avals
    rule = parameter if isinstance(parameter, VmapRule) else LostRule(parameter, types)
    return rule.for_operands(types)


# Derivatives ------------------------------------------------------------------------------------


class DerivedRule(VmapRule):
    """The rule of a function that was derived from one with a rule; derived from that rule.

    Args:
        name: Name of the user's rule.
        types: Types of the operands of one element.
        base: The rule of the function.
        one: The derived function for one element; it is vectorized where the rule does not apply.
    """

    def __init__(self, name: str, types: Sequence[ShapedArray], base: VmapRule, one: Function):
        super().__init__(name, types)
        self.base = base
        self.wants_batch = base.wants_batch
        self.one = one

    def _make(self, size: int, flags: Marks) -> Batched:
        return self._asked(size, flags) if self.asks(flags) else self._kept(size, flags)

    @abstractmethod
    def _asked(self, size: int, flags: Marks) -> Batched:
        """Traces the function derived from the user's rule."""

    def _kept(self, size: int, flags: Marks) -> Batched:
        """Vectorizes a derivative by the rules of its ops, and keeps its rule for further axes."""
        function, out_flags, further = vectorized_inside(self, self.one, BatchFrame(size), flags)

        def call(*values: Value) -> list[Value]:
            operands = [*values, *function.captured]
            return OPS["custom_vmap_call"].bind(*operands, call=function, rule=further)

        return self.traced(call, size, flags), out_flags


class TangentRule(DerivedRule):
    """The rule of a function's derivative: the derivative of its rule.

    It takes the operands of the function, then the tangents of the active ones. Where only values
    or only tangents have the batch axis, a user's rule sees one element, and its derivative is
    vectorized. A rule that is itself a derivative is used if values have the axis; else the
    derivative of one element is vectorized.

    Args:
        name: Name of the user's rule.
        base: The rule of the function.
        active: Which operands of the function have tangents.
        is_linear: Whether to return the tangents only.
        one: The derivative for one element.
    """

    def __init__(self, name: str, base: VmapRule, active: Marks, is_linear: bool, one: Function):
        super().__init__(name, [*base.types, *chosen(base.types, active)], base, one)
        self.active = active
        self.is_linear = is_linear

    def _pairs(self, flags: Marks) -> tuple[Marks, Marks]:
        """Tells which operands of the function have the axis, and which tangents."""
        primals, tangents = flags[: len(self.active)], iter(flags[len(self.active) :])
        moving = (next(tangents) if a else p for p, a in zip(primals, self.active, strict=True))
        return primals, tuple(moving)

    def asks(self, flags: Marks) -> bool:
        """Tells whether the user's rule is used for a batch axis of some operands."""
        primals, _ = self._pairs(flags)
        return any(primals) or self.wants_batch or isinstance(self.base, UserRule)

    def _asked(self, size: int, flags: Marks) -> Batched:
        primals, moving = self._pairs(flags)
        sees_one = isinstance(self.base, UserRule) and not self.wants_batch
        if sees_one and not any(p and t for p, t in zip(primals, moving, strict=True)):
            function, out_flags = self.base.batched(size, (False,) * len(primals))
            if not any(out_flags):
                return vectorized(self._derivative(function), BatchFrame(size), flags)
        either = union(primals, moving)
        function, out_flags = self.base.batched(size, either)
        derivative = self._derivative(function)
        wanted = [*either, *chosen(either, self.active)]

        def apply(*values: Value) -> list[Value]:
            return derivative.evaluate(*spread_over(size, values, flags, wanted))

        tangent_flags = chosen(out_flags, inexact(function.output_types))
        found = (*(() if self.is_linear else out_flags), *tangent_flags)
        return self.traced(apply, size, flags), found

    def _derivative(self, function: Function) -> Function:
        derive_it = linear_part_of if self.is_linear else tangents_of
        return derive_it(function, self.active)


class TransposedRule(DerivedRule):
    """The rule of the transpose of a function in some operands: the transpose of its rule.

    It takes the operands in which the function is not linear, then the cotangents of its results.
    If any of the nonlinear operands varies over the batch, each element has a separate cotangent,
    so the transposed rule sees linear operands along the batch axis. Where only cotangents vary,
    the transpose of one element is vectorized.

    Args:
        name: Name of the user's rule.
        base: The rule of the function.
        linear: Which of its operands it is linear in.
        result_types: Types of its results.
        one: The transpose for one element.
    """

    def __init__(
        self,
        name: str,
        base: VmapRule,
        linear: Marks,
        result_types: Sequence[ShapedArray],
        one: Function,
    ):
        super().__init__(name, [*chosen(base.types, inverted(linear)), *result_types], base, one)
        self.linear = linear

    def asks(self, flags: Marks) -> bool:
        """Tells whether the user's rule is used for a batch axis of some operands."""
        return any(flags[: self.linear.count(False)]) or self.wants_batch

    def _asked(self, size: int, flags: Marks) -> Batched:
        count = self.linear.count(False)
        known, cotangents = iter(flags[:count]), flags[count:]
        full = tuple(is_linear or next(known) for is_linear in self.linear)
        function, out_flags = self.base.batched(size, full)
        pullback = transpose_of(function, self.linear)

        def apply(*values: Value) -> list[Value]:
            batch = spread_over(size, values[count:], cotangents, [True] * len(cotangents))
            # A result that all elements share gets the sum of their cotangents.
            pulled = [
                x if has else reduce_sum(x, (0,)) for x, has in zip(batch, out_flags, strict=True)
            ]
            return pullback.evaluate(*values[:count], *pulled)

        traced = self.traced(apply, size, flags)
        return traced, (True,) * len(traced.outputs)


class InnerRule(DerivedRule):
    """The rule of a function that was vectorized before its rule saw a batch.

    Args:
        base: The rule of the vectorized function: a derivative, or a function that devices run.
        frame: The axis over which it was vectorized.
        flags, out_flags: Which operands and results have that axis, in front.
        one: The vectorized function, for one element of a further axis.
    """

    def __init__(
        self, base: VmapRule, frame: BatchFrame, flags: Marks, out_flags: Marks, one: Function
    ):
        super().__init__(str(base), batched_types(base.types, _axes(flags), frame.size), base, one)
        self.frame = frame
        self.flags, self.out_flags = flags, out_flags

    def asks(self, flags: Marks) -> bool:
        """Tells whether the user's rule is used for a batch axis of some operands."""
        return self.base.asks(flags)

    def _asked(self, size: int, flags: Marks) -> Batched:
        function, found = self.base.batched(size, flags)
        # If a value has both axes, the axis of the rule stands first.
        axes, out_axes = (
            tuple(int(outer) if has else None for outer, has in zip(*marks, strict=True))
            for marks in ((flags, self.flags), (found, self.out_flags))
        )
        return batched_rule(function, self.frame, axes, out_axes), found


def _axes(flags: Marks) -> tuple[int | None, ...]:
    return tuple(0 if has else None for has in flags)


def spread_over(
    size: int, values: Sequence[Value], flags: Sequence[bool], wanted: Sequence[bool]
) -> list[Value]:
    """Broadcasts values without the axis along a new axis in front, where wanted."""
    return [
        move_batch_axis(x, None, size, 0) if wants and not has else x
        for x, has, wants in zip(values, flags, wanted, strict=True)
    ]


def vectorized(function: Function, frame: BatchFrame, flags: Marks) -> Batched:
    """Vectorizes a function of one element, by the rules of its ops, over axes in front."""
    axes = (*_axes(flags), *(None for _ in function.captures))
    key = (frame.size, axes, None, frame.name, frame.mesh_axes, frame.maps_devices)
    found = derive(function, "vmap", *key).axes
    out_flags = tuple(axis is not None for axis in found)
    return batched_rule(function, frame, _axes(flags), _axes(out_flags)), out_flags


def vectorized_inside(
    rule: VmapRule, one: Function, frame: BatchFrame, flags: Marks
) -> tuple[Function, Marks, VmapRule]:
    """Vectorizes a function by the rules of its ops, and keeps its rule for further axes.

    Args:
        rule: The rule of the function.
        one: The function of one element; it captures nothing.
        frame: The axis over which it is vectorized without the user's rule.
        flags: Which operands have it, in front.

    Returns:
        The function, which of its results have the axis, and its rule.
    """
    function, out_flags = vectorized(one, frame, flags)
    inner = InnerRule(rule, frame, flags, out_flags, function)
    return function, out_flags, inner.for_operands(function.in_avals)
