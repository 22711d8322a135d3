"""`custom_jvp`: functions with a custom forward-mode rule, which serves both modes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from axir._trees import tree
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import PyTree, Returning, UserObject
from axir.dialect.core.errors import CustomRuleError, UndefinedRuleError, UnexpectedTracerError
from axir.dialect.core.symbolic_zeros import Marks, Zero, chosen, inexact, spread
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.custom_rules.applied import linear_part
from axir.dialect.ops.custom_rules.custom_jvp import call_with_jvp
from axir.dialect.ops.custom_rules.rules import jvp_rule
from axir.dialect.ops.elementwise.conversion import convert_element_type, stop_gradient
from axir.dialect.ops.elementwise.family import instantiate
from axir.dialect.program.function_tracing import function_name, trace_function
from axir.dialect.program.rules import Value

from ._calls import (
    Applying,
    Call,
    CustomFunction,
    Ran,
    Recorded,
    flatten_result,
    leaked_in_rule,
    recorded,
)
from ._enclosed import enclosed, enclosed_call
from ._zeros import SymbolicZero, shown

JvpRule = Returning[tuple[PyTree, PyTree]]


class custom_jvp(CustomFunction):
    """A function with a derivative rule given by the user.

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

    kind, rules = "custom_jvp", ("jvp",)
    jvp: JvpRule | None

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

    def defjvps(self, *jvps: Callable[..., object] | None) -> None:
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

        def jvp(
            primals: tuple[object, ...], tangents: tuple[object, ...]
        ) -> tuple[UserObject, UserObject]:
            out = self(*primals)
            total = tree.map(_zeros_like, out)
            for rule, tangent in zip(jvps, tangents, strict=True):
                if rule is not None:
                    total = tree.map(_add, total, rule(tangent, out, *primals))
            return out, total

        jvp.__name__ = f"{function_name(self.fun)}_jvp"
        self.defjvp(jvp)

    def _check_defined(self) -> None:
        if self.jvp is None:
            name = function_name(self.fun)
            raise UndefinedRuleError(
                f"No JVP defined for custom_jvp function {name} using defjvp.",
                f"Define it with {name}.defjvp(rule).",
            )

    def _applying(self, call: Call) -> Applying:
        return _Applying(self, call)


def _zeros_like(x: object) -> UserObject:
    return instantiate(Zero.from_primal_value(flatten_result(x, "An output")[0][0]))


def _add(total: UserObject, tangent: PyTree) -> UserObject:
    return total if isinstance(tangent, SymbolicZero) else total + tangent


class _Applying(Applying):
    """A call of a `custom_jvp` function on its way into a trace."""

    custom: custom_jvp

    def __init__(self, custom: custom_jvp, call: Call):
        assert custom.jvp is not None
        super().__init__(custom, call)
        self.rule = custom.jvp
        self.rule_name = function_name(custom.jvp)

    # Values known -------------------------------------------------------------------------------

    def _run_rule(self, values: Sequence[Value], operands: Sequence[Value], moving: Marks) -> Ran:
        types = [x.type for x in values]

        def rule(tangents: list[Value]) -> tuple[list[Value], list[Value]]:
            outs, out_tangents = self._call_rule(values, spread(tangents, moving, types))
            marks = inexact([x.type for x in outs])
            return outs, list(map(instantiate, chosen(out_tangents, marks)))

        outs, linear = linear_part(self.rule_name, rule, operands)
        return outs, linear.captured, lambda residuals, ts: linear.interpret([*ts, *residuals])

    # Types known --------------------------------------------------------------------------------

    def record(self, operands: Sequence[Value]) -> list[Value]:
        """Records the call; its rule runs when a transformation needs it."""
        count = self.call.count
        operands = [*operands[:count], *(stop_gradient(x) for x in operands[count:])]
        types = [x.type for x in operands]
        found = recorded(self.custom.recorded, self.call, lambda: self._trace(types))
        self.out_tree = found.out_tree
        function, rule = found.function, found.rules
        known = enclosed_call(self, operands, found, self.rule, enclosed)
        if known is not None:
            function, rule, operands = known.function, known.rules, known.all_operands(operands)
        return call_with_jvp(function, rule, operands, self.symbolic_zeros, self.call.name)

    def _trace(self, types: Sequence[ShapedArray]) -> Recorded:
        function = trace_function(self._run, types, name=self.call.name, kind="Jvp")
        expected, structure = function.output_types, self.out_tree
        name = self.call.name
        what = (
            f"Custom JVP rule {self.rule_name} for function {name} must produce a pair (list or "
            "tuple of length two) where the first element represents the primal output (equal in "
            f"value to the output of {name})"
        )
        way_out = f"Return {name}(*primals) as primal output."

        def apply(
            primals: Sequence[Value], tangents: Sequence[object]
        ) -> tuple[UserObject, UserObject]:
            try:
                outs, out_tangents = self._call_rule(primals, tangents)
            except UnexpectedTracerError as error:
                raise leaked_in_rule("custom_jvp", self.rule_name, error) from error
            self._check_primal_output(outs, expected, structure, what, way_out)
            return outs, out_tangents

        rule = jvp_rule(self.rule_name, apply, types, self.symbolic_zeros)
        return Recorded(self.call, function, rule, structure)

    # The user's rule ----------------------------------------------------------------------------

    def _call_rule(
        self, values: Sequence[Value], tangents: Sequence[object]
    ) -> tuple[list[Value], list[UserObject]]:
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

    def _tangent(self, out: Value, tangent: PyTree) -> UserObject:
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


def _can_become(found: UserObject, expected: UserObject) -> bool:
    return bool(
        dtypes.promote([(found.dtype, True), (expected.dtype, expected.weak_type)])[0]
        == expected.dtype
    )
