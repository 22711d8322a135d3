"""`custom_jvp`: functions with a forward-mode rule of their own, which serves both modes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from axir import tree
from axir.arguments import Value
from axir.custom_derivatives.calls import (
    Applying,
    Call,
    Recorded,
    closes_over_abstract,
    flatten_result,
    forwarded,
    leaked_in_rule,
    numbers_of,
    positional,
    recorded,
)
from axir.custom_derivatives.enclosed import enclosed
from axir.custom_derivatives.zeros import SymbolicZero, shown
from axir.dialect import dtypes
from axir.dialect.errors import CustomRuleError, UndefinedRuleError, UnexpectedTracerError
from axir.dialect.function import Function
from axir.dialect.ops.conversion import convert_element_type, stop_gradient
from axir.dialect.ops.custom_rules.applied import (
    Applied,
    LinearPart,
    moving_operands,
    outside_values,
    record_applied,
    values_of,
)
from axir.dialect.ops.custom_rules.bodies import inexact
from axir.dialect.ops.custom_rules.custom_jvp import call_with_jvp
from axir.dialect.ops.custom_rules.perturbed import reached
from axir.dialect.ops.custom_rules.rules import Rule, jvp_rule
from axir.dialect.ops.family import instantiate
from axir.dialect.symbolic import Zero
from axir.dialect.trace import function_name, trace_function
from axir.dialect.tracer import Trace, Tracer
from axir.dialect.types import ShapedArray

JvpRule = Callable[..., tuple[Any, Any]]


class custom_jvp:
    """A function whose derivative is a rule that you give.

    The rule is called when the function is differentiated, in forward or in reverse mode, and then
    in place of the function. It must be linear in the tangents.

    Args:
        fun: Function of arrays or trees of arrays. Keyword arguments are resolved to positions.
        nondiff_argnums: Positional arguments that are passed to the rule as they are, before
            primals and tangents: functions, and other values that are not differentiated in.
        nondiff_argnames: The same, by name.

    Raises:
        UndefinedRuleError: by a call before a rule was defined.
        CustomRuleError: if the rule returns something else than primal and tangent outputs of
            equal structures, shapes and dtypes.
        UnexpectedTracerError: if the function is differentiated in a value that it closes over.

    >>> import axir, axir.numpy as jnp
    >>> @axir.custom_jvp
    ... def log1pexp(x):
    ...     return jnp.log(1 + jnp.exp(x))
    >>> @log1pexp.defjvp
    ... def log1pexp_jvp(primals, tangents):
    ...     (x,), (dx,) = primals, tangents
    ...     return log1pexp(x), (1 - 1 / (1 + jnp.exp(x))) * dx
    >>> float(axir.grad(log1pexp)(100.0))
    1.0
    """

    def __init__(
        self,
        fun: Callable[..., Any],
        nondiff_argnums: int | Sequence[int] = (),
        nondiff_argnames: str | Sequence[str] = (),
    ):
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.nondiff_argnums = numbers_of(fun, nondiff_argnums, nondiff_argnames)
        self.jvp: JvpRule | None = None
        self.symbolic_zeros = False
        self.recorded: dict[Any, Recorded] = {}
        # Calls whose rules are being traced because they close over traced values.
        self.enclosing: set[Any] = set()

    def __repr__(self) -> str:
        return f"<axir.custom_jvp of {self.fun!r}>"

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __getattr__(self, name: str) -> Any:
        return forwarded(self, name)

    def defjvp(self, jvp: JvpRule, symbolic_zeros: bool = False) -> JvpRule:
        """Defines the rule (usable as a decorator).

        Args:
            jvp: `(*nondiff arguments, primals, tangents) -> (outputs, tangents of the outputs)`,
                where primals and tangents are tuples with an entry for each argument. Integers and
                bools have tangents of dtype float0.
            symbolic_zeros: Whether tangents that are known to be zero are passed as `SymbolicZero`
                in place of arrays of zeros; the rule may return such, too.

        Returns:
            The rule.
        """
        self.jvp = jvp
        self.symbolic_zeros = symbolic_zeros
        self.recorded.clear()
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Defines the tangent as a sum over arguments.

        Args:
            *jvps: For each argument `(tangent, output, *primals) -> tangent of the output`, or
                None if it contributes nothing.

        >>> import axir
        >>> f = axir.custom_jvp(lambda x, y: x * y)
        >>> f.defjvps(lambda dx, out, x, y: 5 * dx, None)
        >>> [float(g) for g in axir.grad(f, (0, 1))(2.0, 3.0)]
        [5.0, 0.0]
        """
        if self.nondiff_argnums:
            raise TypeError("Can't use ``defjvps`` with ``nondiff_argnums``.")

        def jvp(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
            out = self(*primals)
            total = tree.map(_zeros_like, out)
            for rule, tangent in zip(jvps, tangents, strict=True):
                if rule is not None:
                    total = tree.map(_add, total, rule(tangent, out, *primals))
            return out, total

        jvp.__name__ = f"{function_name(self.fun)}_jvp"
        self.defjvp(jvp)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function; its rule waits for differentiation."""
        if self.jvp is None:
            name = function_name(self.fun)
            raise UndefinedRuleError(
                f"No JVP defined for custom_jvp function {name} using defjvp.",
                f"Define it with {name}.defjvp(rule).",
            )
        call = Call(self.fun, positional(self.fun, args, kwargs), self.nondiff_argnums)
        applying = _Applying(self, call)
        if call.trace() is not None:
            outs = applying.apply(call.operands)
        else:
            result = self.fun(*call.args)
            if not closes_over_abstract(result, "custom_jvp", call.name):
                return result
            outs = applying.record(call.operands)
        return applying.out_tree.unflatten(outs)


def _zeros_like(x: Any) -> Any:
    return instantiate(Zero.from_primal_value(flatten_result(x, "An output")[0][0]))


def _add(total: Any, tangent: Any) -> Any:
    return total if isinstance(tangent, SymbolicZero) else total + tangent


class _Applying(Applying):
    """A call of a `custom_jvp` function on its way into a trace."""

    def __init__(self, custom: custom_jvp, call: Call):
        assert custom.jvp is not None
        super().__init__(call)
        self.rule = custom.jvp
        self.rule_name = function_name(custom.jvp)
        self.symbolic_zeros = custom.symbolic_zeros
        self.table = custom.recorded
        self.enclosing = custom.enclosing

    # Values known -------------------------------------------------------------------------------

    def _apply_known(self, trace: Trace, operands: Sequence[Value]) -> list[Value]:
        moving = moving_operands(trace, operands)
        moving = (*moving[: self.call.count], *(False for _ in moving[self.call.count :]))
        values = values_of(trace, operands)
        name = self.call.name
        with trace.outside():
            if not any(moving):
                outs = self.apply(values)
                return record_applied(trace, operands, Applied(name, outs, _no_tangents), moving)
            if self.symbolic_zeros:
                moving = reached(trace, operands, moving)
            part = LinearPart(
                self.rule_name,
                lambda tangents: self._linear_rule(values, tangents, moving),
                [x for x, is_moving in zip(operands, moving, strict=True) if is_moving],
            )
        outs = outside_values(trace, part.outs, "custom_jvp", name)
        residuals = outside_values(trace, part.linear.captured, "custom_jvp", name)
        applied = Applied(
            name, outs, lambda tangents: part.linear.interpret([*tangents, *residuals])
        )
        return record_applied(trace, operands, applied, moving)

    def _linear_rule(
        self, values: Sequence[Value], moving: Sequence[Value], flags: Sequence[bool]
    ) -> tuple[list[Value], list[Value]]:
        remaining = iter(moving)
        tangents = [
            next(remaining) if flag else Zero(x.type.to_tangent_aval())
            for x, flag in zip(values, flags, strict=True)
        ]
        outs, out_tangents = self._call_rule(values, tangents)
        pairs = zip(out_tangents, inexact([x.type for x in outs]), strict=True)
        return outs, [instantiate(t) for t, has in pairs if has]

    # Types known --------------------------------------------------------------------------------

    def record(self, operands: Sequence[Value]) -> list[Value]:
        """Records a call whose rule waits until a transformation asks for it."""
        count = self.call.count
        operands = [*operands[:count], *(stop_gradient(x) for x in operands[count:])]
        found = recorded(self.table, self.call, lambda: self._trace([x.type for x in operands]))
        self.out_tree = found.out_tree
        function, rule = found.function, found.rules
        if any(type(x) is Tracer for x in function.captured):
            function, rule, operands = self._enclose(function, rule, operands)
        return call_with_jvp(function, rule, operands, self.symbolic_zeros, self.call.name)

    def _enclose(
        self, function: Function, rule: Rule, operands: list[Value]
    ) -> tuple[Function, Rule, list[Value]]:
        """Makes traced values that function and rule close over operands."""
        key = self.call.key
        if key in self.enclosing:  # the rule calls its function
            return function, rule, operands
        self.enclosing.add(key)
        try:
            function, rule, values = enclosed(function, rule, self.call.name)
        finally:
            self.enclosing.discard(key)
        return function, rule, [*operands, *values]

    def _trace(self, types: Sequence[ShapedArray]) -> Recorded:
        function = trace_function(self._run, types, name=self.call.name, kind="Jvp")
        expected, structure = function.output_types, self.out_tree

        def apply(primals: Sequence[Value], tangents: Sequence[Any]) -> tuple[Any, Any]:
            try:
                outs, out_tangents = self._call_rule(primals, tangents)
            except UnexpectedTracerError as error:
                raise leaked_in_rule("custom_jvp", self.rule_name, error) from error
            self._check_primal_output(outs, expected, structure)
            return outs, out_tangents

        rule = jvp_rule(self.rule_name, apply, types, self.symbolic_zeros)
        return Recorded(self.call, function, rule, structure)

    # The user's rule ----------------------------------------------------------------------------

    def _call_rule(
        self, values: Sequence[Value], tangents: Sequence[Any]
    ) -> tuple[list[Value], list[Any]]:
        """Calls the rule on flat values; returns flat results and tangents (perhaps `Zero`)."""
        call = self.call
        shown_tangents = [shown(t, self.symbolic_zeros) for t in tangents[: call.count]]
        result = self.rule(
            *call.fixed_arguments(values),
            call.moving_arguments(values),
            call.moving_arguments(shown_tangents),
        )
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise CustomRuleError(
                f"Custom JVP rule {self.rule_name} for function {call.name} must produce a pair "
                "(list or tuple of length two) representing primal and tangent outputs, but got "
                f"{result}.",
                "Return (outputs, tangents of the outputs).",
            )
        outs, self.out_tree = flatten_result(result[0], f"Primal output of {self.rule_name!r} ")
        leaves, tangent_tree = tree.flatten(result[1])
        if tangent_tree != self.out_tree:
            raise CustomRuleError(
                f"Custom JVP rule {self.rule_name} for function {call.name} must produce primal "
                "and tangent outputs with equal container (pytree) structures, but got "
                f"{self.out_tree} and {tangent_tree} respectively.",
                "Return a tangent for each output: zeros where there is none.",
            )
        return outs, [self._tangent(x, t) for x, t in zip(outs, leaves, strict=True)]

    def _tangent(self, out: Value, tangent: Any) -> Any:
        """Checks a tangent that the rule returned against its output."""
        expected = out.type.to_tangent_aval()
        if isinstance(tangent, SymbolicZero):
            found = tangent.aval
        elif getattr(tangent, "dtype", None) == dtypes.float0:
            found = expected.update(shape=tangent.shape, dtype=dtypes.float0)
        else:
            tangent = flatten_result(tangent, f"Tangent output of {self.rule_name!r} ")[0][0]
            found = tangent.type
            if found.weak_type and not expected.shape and _can_become(found, expected):
                tangent = convert_element_type(tangent, expected.dtype, expected.weak_type)
                found = tangent.type
        if (found.shape, found.dtype) != (expected.shape, expected.dtype):
            raise CustomRuleError(
                "Custom JVP rule must produce primal and tangent outputs with corresponding shapes "
                f"and dtypes. Expected {expected} (tangent type of {out.type}) but got {found}.",
                f"Correct the tangents that {self.rule_name!r} returns, the rule of "
                f"{self.call.name!r}.",
            )
        is_zero = isinstance(tangent, SymbolicZero) or expected.dtype == dtypes.float0
        return Zero(expected) if is_zero else tangent

    def _check_primal_output(
        self, outs: Sequence[Value], expected: Sequence[Any], structure: tree.TreeDef
    ) -> None:
        what = (
            f"Custom JVP rule {self.rule_name} for function {self.call.name} must produce a pair "
            "(list or tuple of length two) where the first element represents the primal output "
            f"(equal in value to the output of {self.call.name})"
        )
        if self.out_tree != structure:
            raise CustomRuleError(
                f"{what}, but its structure is {self.out_tree}, and that of the function's output "
                f"is {structure}.",
                f"Return {self.call.name}(*primals) as primal output.",
            )
        found = [x.type for x in outs]
        for mine, theirs in zip(found, expected, strict=True):
            if (mine.shape, mine.dtype) != (theirs.shape, theirs.dtype):
                raise CustomRuleError(
                    f"{what}, but it is of type {mine}, and the function's output of {theirs}.",
                    f"Return {self.call.name}(*primals) as primal output.",
                )


def _can_become(found: Any, expected: Any) -> bool:
    return bool(
        dtypes.promote([(found.dtype, True), (expected.dtype, expected.weak_type)])[0]
        == expected.dtype
    )


def _no_tangents(tangents: Sequence[Any]) -> list[Any]:
    return []
