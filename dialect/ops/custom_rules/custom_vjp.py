"""`custom_vjp_call`: a call of a function with a user's pair of reverse-mode rules.

The forward rule gives the results and residuals, the backward rule maps residuals and cotangents of
the results to cotangents of the arguments. The function itself defines the results and the
lowering.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from axir.dialect.core.annotations import Param
from axir.dialect.core.memo import derived
from axir.dialect.core.state import BatchFrame
from axir.dialect.core.symbolic_zeros import Marks, chosen, inexact, moving, spread
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.calls.jit_call import declare_call
from axir.dialect.ops.elementwise.arithmetic import add, mul
from axir.dialect.ops.elementwise.family import instantiate
from axir.dialect.program.effects import current_frame
from axir.dialect.program.function import DeferredFunction, Function
from axir.dialect.program.function_tracing import trace_function
from axir.dialect.program.operation import Sample
from axir.dialect.program.parameters import Deferrable
from axir.dialect.program.rules import Tangent, Value

from .bodies import (
    Axes,
    argument_types,
    batched_in_front,
    batched_rule,
    bind_call,
    check_rule,
    closed_over_error,
    inexact_only,
)
from .custom_lin import Backward, apply_backward
from .rules import Rule, active_arguments, for_active, wants_zeros

Traced = Callable[[Marks], tuple[Function, Backward]]
"""From marks of active arguments to a forward rule, and the backward rule for its residuals."""


class Rules(DeferredFunction):
    """A forward and a backward rule; as a parameter of ops, the pair is the backward rule.

    The backward rule is traced once the residuals are known. Modules show it for all arguments
    active.

    Args:
        fwd_name, bwd_name: Names of the user's rules.
        trace: Traces both.
        everything: Which arguments may be active: the float and complex ones.
        is_specialized: Whether the rules depend on which arguments and cotangents are zero.

    Attributes:
        fwd: From the arguments to the results and residuals.
    """

    def __init__(
        self, fwd_name: str, bwd_name: str, trace: Traced, everything: Marks, is_specialized: bool
    ):
        super().__init__(bwd_name, lambda: self.backward_for(everything).function)
        self.fwd = Rule(fwd_name, self._traced, everything, is_specialized)
        self._trace_both = trace
        self._backward: dict[Marks, Backward] = {}

    @property
    def is_tied(self) -> bool:
        """Whether a traced form uses values of a trace, so that it is valid there only."""
        return self.fwd.is_tied

    def _traced(self, active: Marks) -> Function:
        function, self._backward[active] = self._trace_both(active)
        return function

    def traced_anew(self, active: Marks) -> tuple[Function, Backward]:
        """Returns both rules for given active arguments, traced for this call only."""
        with self.surroundings():
            return self._trace_both(self.fwd.key_of(active))

    def backward_for(self, active: Marks) -> Backward:
        """Returns the backward rule that fits the residuals for given active arguments."""
        self.fwd.for_active(active)
        return self._backward[self.fwd.key_of(active)]


def _backward_of(bwd: Param, active: Marks, num_res: int) -> Backward:
    """Returns the backward rule of a parameter for given active arguments."""
    if isinstance(bwd, Rules):
        with bwd.surroundings():
            return bwd.backward_for(active)
    return Backward.of(bwd, num_res)


def _check(
    types: Sequence[ShapedArray],
    *,
    call_jaxpr: Function,
    fwd_jaxpr_thunk: Param,
    bwd: Param,
    num_consts: int,
    symbolic_zeros: bool,
    name: str,
) -> None:
    arguments = argument_types("custom_vjp_call", types, num_consts)
    if type(fwd_jaxpr_thunk) is Function:
        results = call_jaxpr.output_types
        check_rule("custom_vjp_call", fwd_jaxpr_thunk, arguments, results)
        residuals = fwd_jaxpr_thunk.output_types[len(results) :]
        taken = [*residuals, *inexact_only(results)]
        if type(bwd) is Function:
            check_rule("custom_vjp_call", bwd, taken, inexact_only(arguments))


def _value_and_jvp(
    primals: Sequence[Value],
    tangents: Sequence[Tangent],
    *,
    call_jaxpr: Function,
    fwd_jaxpr_thunk: Param,
    bwd: Param,
    num_consts: int,
    name: str,
    **params: Param,
) -> tuple[Sequence[Value], Sequence[Tangent]]:
    count = len(primals) - num_consts
    primals, tangents, fixed = primals[:count], tangents[:count], tangents[count:]
    if any(moving(fixed)):
        raise closed_over_error("custom_vjp", name)
    active = active_arguments(fwd_jaxpr_thunk, primals, tangents)
    types = call_jaxpr.output_types
    values = for_active(fwd_jaxpr_thunk, active).evaluate(*primals)
    outs, residuals = values[: len(types)], values[len(types) :]
    rule = _backward_of(bwd, active, len(residuals))
    taken = map(instantiate, chosen(tangents, inexact([x.type for x in primals])))
    out_tangents = apply_backward(rule, residuals, list(taken), name)
    return outs, spread(out_tangents, inexact(types), types)


@derived
def _batched(
    fwd: Param,
    bwd: Param,
    axes: tuple[int | None, ...],
    frame: BatchFrame,
    everything: Marks,
    count: int,
) -> Rules:
    """Returns a vectorized pair of rules, made once, because rules may use themselves.

    The `count` results and the residuals have the axis in front; cotangents of the arguments have
    it where the arguments do.
    """

    def trace(active: Marks) -> tuple[Function, Backward]:
        one = for_active(fwd, active)
        residuals = len(one.outputs) - count
        backward = _backward_of(bwd, active, residuals)
        return (
            batched_rule(one, frame, axes),
            backward.vectorized(frame, (0,) * residuals, chosen(axes, everything)),
        )

    fwd_name, bwd_name = f"{fwd.name}_vmap", f"{bwd.name}_vmap"
    return Rules(fwd_name, bwd_name, trace, everything, wants_zeros(fwd))


def _batch(
    operands: Sequence[Value],
    axes: Axes,
    *,
    call_jaxpr: Function,
    fwd_jaxpr_thunk: Param,
    bwd: Param,
    num_consts: int,
    **params: Param,
) -> tuple[list[Value], list[int | None]]:
    count, outputs = len(operands) - num_consts, len(call_jaxpr.outputs)
    everything = inexact(call_jaxpr.in_avals[:count])
    argument_axes = tuple(axes[:count])
    rules = _batched(fwd_jaxpr_thunk, bwd, argument_axes, current_frame(), everything, outputs)
    params = {"fwd_jaxpr_thunk": rules.fwd, "bwd": rules, **params}
    body = batched_in_front(call_jaxpr, axes)
    results = bind_call(custom_vjp_call, body, operands, num_consts, **params)
    return results, [0] * len(results)


def _samples() -> list[Sample]:
    vector = ShapedArray((3,), np.int32)

    def body(x: Value, y: Value) -> list[Value]:
        return [mul(x, y), y]

    def fwd(x: Value, y: Value) -> list[Value]:
        return [*body(x, y), add(x, y)]

    # Integers, because the tests differentiate float samples in forward mode.
    params = {
        "call_jaxpr": trace_function(body, [vector] * 2, name="f"),
        "fwd_jaxpr_thunk": trace_function(fwd, [vector] * 2, name="f_fwd"),
        "bwd": trace_function(lambda residual: [], [vector], name="f_bwd"),
        "num_consts": 0,
        "symbolic_zeros": False,
        "name": "f",
    }
    return [Sample((np.array([1, 2, 3], np.int32), np.array([4, 5, 6], np.int32)), params)]


custom_vjp_call = declare_call(
    "custom_vjp_call",
    "call_jaxpr",
    parameters={
        "call_jaxpr": Function,
        "fwd_jaxpr_thunk": Deferrable,
        "bwd": Deferrable,
        "num_consts": int,
        "symbolic_zeros": bool,
        "name": str,
    },
    check=_check,
    value_and_jvp=_value_and_jvp,
    batch=_batch,
    body=lambda *, call_jaxpr, **params: call_jaxpr,
    samples=_samples,
    unsupported={
        "transpose": "a custom_vjp function is transposed after differentiation, which replaces it "
        "by its rules."
    },
)


def call_with_vjp(
    function: Function, rules: Rules, arguments: Sequence[Value], symbolic_zeros: bool, name: str
) -> list[Value]:
    """Calls a function with a pair of rules as its derivative; captures take the captured values.

    Args:
        function: The function to call.
        rules: Its rules.
        arguments: Values of the inputs.
        symbolic_zeros: Whether the rules depend on which values are active.
        name: Name of the user's function.
    """
    params = {"symbolic_zeros": symbolic_zeros, "name": name, "bwd": rules}
    return bind_call(custom_vjp_call, function, arguments, 0, fwd_jaxpr_thunk=rules.fwd, **params)
