"""Partially known programs, under the names of `jax.interpreters.partial_eval`.

While axir traces a function, it computes operations on known values at once. So splitting off the
known part of a program is tracing it with some arguments known (`trace_to_jaxpr_nounits`).

>>> import axir.numpy as jnp
>>> from axir.core import ShapedArray
>>> from axir.extend import linear_util
>>> fun = linear_util.wrap_init(lambda x, y: [x + 1, x * y])
>>> known, unknown = PartialVal.known(2.0), PartialVal.unknown(ShapedArray((), jnp.float32))
>>> jaxpr, results, consts = trace_to_jaxpr_nounits(fun, [known, unknown])
>>> results
[(None, 3.0), (ShapedArray(float32[]), None)]
>>> jaxpr
{ lambda ; a:f32[]. let b:f32[] = mul 2.0:f32[] a in (b,) }
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from axir.api_util import shaped_abstractify
from axir.core import Jaxpr
from axir.dialect.core.annotations import UserFunction, UserObject
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.effects import is_effectful
from axir.dialect.program.equation import Equation, Var
from axir.dialect.program.function_tracing import restricted
from axir.dialect.program.operation import Operation
from axir.dialect.program.rules import Value
from axir.dialect.program.tracer import Trace, Tracer
from axir.dialect.program.walk import backward_slice
from axir.extend.linear_util import WrappedFun

__all__ = [
    "DynamicJaxprTracer", "JaxprTracer", "PartialVal", "Val", "custom_partial_eval_rules",
    "dce_jaxpr", "dce_jaxpr_consts", "dce_rules", "partial_eval_jaxpr_custom_rules",
    "trace_to_jaxpr", "trace_to_jaxpr_dynamic", "trace_to_jaxpr_nounits",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


# There is one class of tracers.
DynamicJaxprTracer = JaxprTracer = Tracer
Val = UserObject

# Rules for primitives with a known part that does not follow from their operands. No primitive here
# needs one. Rules added by programs are stored, and never used.
custom_partial_eval_rules: dict[Operation, UserFunction] = {}
partial_eval_jaxpr_custom_rules: dict[Operation, UserFunction] = {}
# `(used results, equation) -> (used operands, equation or None)`: the remainder of an equation with
# a used result, for `dce_jaxpr`.
dce_rules: dict[Operation, UserFunction] = {}


class _Parts(NamedTuple):
    aval: ShapedArray | None
    value: UserObject


class PartialVal(_Parts):
    """A partially known value: the value itself, or only its type.

    It is a pair of type and value; one of them is None. In 2020 it was made from one.
    """

    __slots__ = ()

    def __new__(
        cls, aval: ShapedArray | tuple[UserObject, UserObject] | None, value: UserObject = None
    ) -> PartialVal:
        """Makes it from a type and a value, or from a pair of them."""
        known_type, known_value = aval if isinstance(aval, tuple) else (aval, value)
        return super().__new__(cls, known_type, known_value)

    @classmethod
    def known(cls, value: object) -> PartialVal:
        """Returns a partial value with a known value."""
        return cls(None, value)

    @classmethod
    def unknown(cls, aval: ShapedArray) -> PartialVal:
        """Returns a partial value with an unknown value of a type."""
        return cls(aval, None)

    def is_known(self) -> bool:
        """Tells whether the value is there."""
        return self.aval is None

    def get_known(self) -> UserObject:
        """Returns the value, or None."""
        return self.value

    def get_aval(self) -> ShapedArray:
        """Returns the type."""
        return shaped_abstractify(self.value) if self.aval is None else self.aval

    def __repr__(self) -> str:
        return f"({self.aval!r}, {self.value!r})"


def trace_to_jaxpr_nounits(
    fun: WrappedFun, pvals: Sequence[PartialVal], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[PartialVal], list[Value]]:
    """Computes the known part of a function, and traces the rest.

    Args:
        fun: A function of flat values that returns a sequence of them.
        pvals: Its arguments as partial values.
        instantiate: Which results to take as unknown in any case.

    Returns:
        The jaxpr of the unknown results as a function of the unknown arguments; the partial values
        of all results; and the values of the jaxpr's constants.
    """
    with Trace(fun.__name__, "Jaxpr", is_ambient=False) as trace:
        arguments = [
            pval.value if pval.aval is None else trace.add_input(pval.aval) for pval in pvals
        ]
        results = list(fun.call_wrapped(*arguments))
        wanted = [instantiate] * len(results) if isinstance(instantiate, bool) else instantiate
        unknown = [
            is_wanted or (type(x) is Tracer and x.owner is trace)
            for x, is_wanted in zip(results, wanted, strict=True)
        ]
        told = [
            PartialVal.unknown(shaped_abstractify(x)) if is_unknown else PartialVal.known(x)
            for x, is_unknown in zip(results, unknown, strict=True)
        ]
        function = trace.finish([x for x, u in zip(results, unknown, strict=True) if u])
    return Jaxpr.of(function), told, list(function.captured)


# Its name of 2020.
trace_to_jaxpr = trace_to_jaxpr_nounits


def trace_to_jaxpr_dynamic(
    fun: WrappedFun, in_avals: Sequence[ShapedArray], *, keep_inputs: Sequence[bool] | None = None
) -> tuple[Jaxpr, list[ShapedArray], list[Value]]:
    """Traces a function of flat values.

    Args:
        fun: The function; it returns a sequence of values.
        in_avals: Types of its arguments.
        keep_inputs: Arguments that are not kept are no inputs of the jaxpr; the function must not
            use them.

    Returns:
        The jaxpr, the types of its results, and the values of its constants.
    """
    with Trace(fun.__name__, "Jaxpr") as trace:
        arguments = [trace.add_input(aval) for aval in in_avals]
        function = trace.finish(list(fun.call_wrapped(*arguments)))
    if keep_inputs is not None:
        kept = [v for v, is_kept in zip(function.inputs, keep_inputs, strict=True) if is_kept]
        function = restricted(function, function.equations, kept, function.outputs, "Jaxpr")
    return Jaxpr.of(function), function.output_types, list(function.captured)


def dce_jaxpr(
    jaxpr: Jaxpr, used_outputs: bool | Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[bool]]:
    """Removes unused equations without effects from a jaxpr; the constants stay.

    Args:
        jaxpr: The jaxpr.
        used_outputs: Which of its results are used.
        instantiate: Which of its inputs to keep even if nothing uses them.

    Returns:
        The jaxpr of the used results as a function of the inputs that are left, and which these
        are.

    >>> import axir, axir.numpy as jnp
    >>> whole = axir.make_jaxpr(lambda x, y: (jnp.sin(x), jnp.cos(y)))(1.0, 2.0).jaxpr
    >>> dce_jaxpr(whole, [False, True])
    ({ lambda ; a:f32[]. let b:f32[] = cos a in (b,) }, [False, True])
    """
    smaller, kept, _ = _smaller(jaxpr, used_outputs, instantiate)
    return smaller, kept


def _smaller(
    jaxpr: Jaxpr, used_outputs: bool | Sequence[bool], instantiate: bool | Sequence[bool]
) -> tuple[Jaxpr, list[bool], list[bool]]:
    """Returns the jaxpr without unused equations, the remaining inputs, and the used constants."""
    marks = _marks(used_outputs, len(jaxpr.outvars))
    outputs = [v for v, is_used in zip(jaxpr.outvars, marks, strict=True) if is_used]
    reached = backward_slice(jaxpr.eqns, outputs, is_kept=is_effectful, enter=_reduced)
    forced = _marks(instantiate, len(jaxpr.invars))
    kept = [x or y for x, y in zip(reached.marks(jaxpr.invars), forced, strict=True)]
    left = [v for v, is_kept in zip(jaxpr.invars, kept, strict=True) if is_kept]
    smaller = jaxpr.replace(invars=left, outvars=outputs, eqns=reached.equations)
    return smaller, kept, list(reached.marks(jaxpr.constvars))


def _marks(marks: bool | Sequence[bool], count: int) -> list[bool]:
    return [marks] * count if isinstance(marks, bool) else list(marks)


def _reduced(equation: Equation, wanted: set[Var]) -> Equation | None:
    """Returns the remainder of an equation by its primitive's rule, if it has a rule."""
    rule = dce_rules.get(equation.primitive)
    if rule is None:
        return equation
    _, reduced = rule([v in wanted for v in equation.results], equation)
    return reduced


def dce_jaxpr_consts(
    jaxpr: Jaxpr, used_outputs: Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[bool], list[bool]]:
    """Removes unused equations and constants from a jaxpr; see `dce_jaxpr`.

    Returns:
        The jaxpr, which of its constants are left, and which of its inputs.
    """
    smaller, kept, used = _smaller(jaxpr, used_outputs, instantiate)
    left = [v for v, is_used in zip(smaller.constvars, used, strict=True) if is_used]
    return smaller.replace(constvars=left), used, kept
