"""`custom_vjp_call`: a call of a function whose reverse-mode derivative is a user's pair of rules.

The forward rule gives the results and residuals, the backward rule maps residuals and cotangents of
the results to cotangents of the arguments. Results and lowering are those of the function itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...axes import current_frame
from ...deferred import DeferredFunction, resolved
from ...errors import ParameterError
from ...function import Function
from ...primitive import Sample
from ...trace import trace_function
from ...types import ShapedArray
from ..family import instantiate
from ..table import declare
from .bodies import (
    batch_rule,
    batched_body,
    check_call,
    check_rule,
    closed_over_error,
    evaluate_body,
    inexact,
    is_moving,
    spread,
)
from .custom_lin import Backward, apply_backward, batched_backward
from .rules import Flags, Rule, derived_rule, for_active, wants_zeros


class Rules:
    """A pair of rules for arguments and results of known types.

    Args:
        fwd_name, bwd_name: What the user calls them.
        forward: From the arguments and the flags of active ones to results, residuals, and
            whatever `backward` needs to know about the residuals.
        backward: From that, the residuals, and cotangents of the results (perhaps `Zero`; those of
            the float and complex ones) to cotangents of the float and complex arguments.
        argument_types: Types of the arguments.
        result_types: Types of the results.
        is_specialized: Whether the rules want to know which arguments and cotangents are zero.

    Attributes:
        fwd: From the arguments to the results and residuals.
        bwd: From the residuals of `fwd` and cotangents to cotangents.
    """

    def __init__(
        self,
        fwd_name: str,
        bwd_name: str,
        forward: Callable[[Sequence[Any], Flags], tuple[list[Any], list[Any], Any]],
        backward: Callable[[Any, Sequence[Any], Sequence[Any]], list[Any]],
        argument_types: Sequence[ShapedArray],
        result_types: Sequence[ShapedArray],
        is_specialized: bool,
    ):
        self.bwd_name = bwd_name
        self.backward = backward
        self.argument_types = list(argument_types)
        self.result_types = list(result_types)
        self._forward = forward
        self._contexts: dict[Flags, Any] = {}
        everything = tuple(inexact(argument_types))
        self.fwd = Rule(fwd_name, self._traced, everything, is_specialized)
        self.bwd = DeferredBackward(self, everything)

    @property
    def is_tied(self) -> bool:
        """Whether a traced form uses values of a trace, so that it serves there only."""
        return self.fwd.is_tied

    def _traced(self, active: Flags) -> Function:
        def apply(*values: Any) -> list[Any]:
            outs, residuals, context = self._forward(values, active)
            self._contexts[active] = context
            return [*outs, *residuals]

        return trace_function(apply, self.argument_types, name=self.fwd.name, kind="Vjp")

    def backward_for(self, active: Flags) -> Backward:
        """Returns the backward rule that fits the residuals for given active arguments."""
        function = self.fwd.for_active(active)
        key = active if self.fwd.is_specialized else self.fwd.everything
        context = self._contexts[key]
        return Backward(
            self.bwd_name,
            lambda residuals, cotangents: self.backward(context, residuals, cotangents),
            function.output_types[len(self.result_types) :],
            _inexact_only(self.result_types),
            _inexact_only(self.argument_types),
            self.fwd.is_specialized,
        )


class DeferredBackward(DeferredFunction):
    """The backward rule before anybody knows the residuals; written for all arguments active."""

    def __init__(self, rules: Any, everything: Flags):
        super().__init__(rules.bwd_name, lambda: self.backward_for(everything).function)
        self.rules = rules

    def backward_for(self, active: Flags) -> Backward:
        """Returns the backward rule that fits the residuals for given active arguments."""
        with self.surroundings():
            return self.rules.backward_for(active)


def backward_of(bwd: Any, active: Flags) -> Any:
    """Returns the backward rule for given active arguments: a `Backward`, or a function."""
    return bwd.backward_for(active) if isinstance(bwd, DeferredBackward) else resolved(bwd)


class BatchedRules:
    """A pair of rules vectorized: results and cotangents along axis 0."""

    def __init__(self, fwd: Any, bwd: Any, axes: Sequence[int | None], frame: Any, body: Function):
        count = len(body.outputs)
        arguments = [v.type for v in (*body.inputs, *body.captures)][: len(axes)]
        everything = tuple(inexact(arguments))
        self.bwd_name = f"{bwd.name}_vmap"

        def make(active: Flags) -> Function:
            function = for_active(fwd, active)
            return batch_rule(function, frame.size, frame.name, axes, len(function.outputs))

        def backward(active: Flags) -> Backward:
            one = backward_of(bwd, active)
            residuals = len(for_active(fwd, active).outputs) - count
            # Residuals come along axis 0, as all that the vectorized forward rule returns; so do
            # the arguments' cotangents, whose axes are then put where the arguments have theirs.
            rule = batched_backward(one, residuals, [0] * residuals, frame.size, frame.name)
            return _placed(rule, [a for a, has in zip(axes, everything, strict=True) if has])

        self.backward_for = backward
        self.fwd = Rule(f"{fwd.name}_vmap", make, everything, wants_zeros(fwd))
        self.bwd = DeferredBackward(self, everything)


def _placed(rule: Backward, axes: Sequence[int | None]) -> Backward:
    """Returns a vectorized rule whose cotangents have the axes that the arguments have."""
    from ..reduce import reduce_sum
    from ..shape import moveaxis

    def place(cotangent: Any, axis: int | None) -> Any:
        value = instantiate(cotangent)
        return reduce_sum(value, (0,)) if axis is None else moveaxis(value, 0, axis)

    def shape(t: ShapedArray, axis: int | None) -> ShapedArray:
        size, *rest = t.shape
        return t.update(shape=rest if axis is None else (*rest[:axis], size, *rest[axis:]))

    return Backward(
        rule.name,
        lambda residuals, cotangents: list(map(place, rule(residuals, cotangents), axes)),
        rule.residual_types,
        rule.result_types,
        list(map(shape, rule.argument_types, axes)),
        False,
    )


def _inexact_only(types: Sequence[ShapedArray]) -> list[ShapedArray]:
    return [t for t, has in zip(types, inexact(types), strict=True) if has]


def _infer(
    *types: ShapedArray,
    call_jaxpr: Function,
    fwd_jaxpr_thunk: Any,
    bwd: Any,
    num_consts: int,
    symbolic_zeros: bool,
    name: str,
) -> list[ShapedArray]:
    check_call("custom_vjp_call", call_jaxpr, types)
    if not 0 <= num_consts <= len(types):
        raise ParameterError(
            f"custom_vjp_call: {num_consts} of {len(types)} operands cannot be constants."
        )
    arguments = types[: len(types) - num_consts]
    results = call_jaxpr.output_types
    check_rule("custom_vjp_call", fwd_jaxpr_thunk, arguments, results)
    if type(fwd_jaxpr_thunk) is Function and type(bwd) is Function:
        residuals = fwd_jaxpr_thunk.output_types[len(results) :]
        taken = [*residuals, *_inexact_only(results)]
        check_rule("custom_vjp_call", bwd, taken, _inexact_only(arguments))
    return results


def _evaluate(*operands: np.ndarray, call_jaxpr: Function, **params: Any) -> list[np.ndarray]:
    return evaluate_body(call_jaxpr, operands)


def _implement(*operands: Any, call_jaxpr: Function, **params: Any) -> list[Any]:
    return call_jaxpr.interpret(operands)


def _value_and_jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    call_jaxpr: Function,
    fwd_jaxpr_thunk: Any,
    bwd: Any,
    num_consts: int,
    name: str,
    **params: Any,
) -> tuple[list[Any], list[Any]]:
    count = len(primals) - num_consts
    if any(is_moving(t) for t in tangents[count:]):
        raise closed_over_error("custom_vjp", name)
    has_tangent = inexact([x.type for x in primals[:count]])
    active = tuple(has_tangent)
    if wants_zeros(fwd_jaxpr_thunk):
        active = tuple(map(is_moving, tangents[:count]))
    results = call_jaxpr.output_types
    values = for_active(fwd_jaxpr_thunk, active).evaluate(*primals[:count])
    rule = backward_of(bwd, active)
    moving = [instantiate(t) for t, has in zip(tangents, has_tangent, strict=False) if has]
    out_tangents = apply_backward(rule, values[len(results) :], moving, name)
    return values[: len(results)], spread(results, out_tangents)


def _batch(
    operands: Sequence[Any],
    axes: Sequence[int | None],
    *,
    call_jaxpr: Function,
    fwd_jaxpr_thunk: Any,
    bwd: Any,
    num_consts: int,
    **params: Any,
) -> tuple[list[Any], list[int | None]]:
    out_axes = (0,) * len(call_jaxpr.outputs)
    body = batched_body(call_jaxpr, axes, out_axes).function
    count = len(operands) - num_consts
    frame = current_frame()
    rules = derived_rule(
        fwd_jaxpr_thunk,
        ("batched rules", tuple(axes[:count]), frame),
        lambda: BatchedRules(fwd_jaxpr_thunk, bwd, axes[:count], frame, call_jaxpr),
    )
    results = custom_vjp_call.bind(
        *operands,
        *body.captured,
        call_jaxpr=body,
        fwd_jaxpr_thunk=rules.fwd,
        bwd=rules.bwd,
        num_consts=num_consts + len(body.captured),
        **params,
    )
    return results, list(out_axes)


def _lower(context: Any, *values: Any, call_jaxpr: Function, **params: Any) -> list[Any]:
    return context.inline(call_jaxpr, *values)


def _samples() -> list[Sample]:
    from ..elementwise import add, mul

    vector = ShapedArray((3,), np.int32)

    def body(x: Any, y: Any) -> list[Any]:
        return [mul(x, y), y]

    def fwd(x: Any, y: Any) -> list[Any]:
        return [*body(x, y), add(x, y)]

    # Integers, since float samples are differentiated in forward mode by the tests.
    params = {
        "call_jaxpr": trace_function(body, [vector] * 2, name="f"),
        "fwd_jaxpr_thunk": trace_function(fwd, [vector] * 2, name="f_fwd"),
        "bwd": trace_function(lambda residual: [], [vector], name="f_bwd"),
        "num_consts": 0,
        "symbolic_zeros": False,
        "name": "f",
    }
    return [Sample((np.array([1, 2, 3], np.int32), np.array([4, 5, 6], np.int32)), params)]


custom_vjp_call = declare(
    "custom_vjp_call",
    takes_keys=True,
    multiple_results=True,
    is_memoized=False,
    infer=_infer,
    evaluate=_evaluate,
    value_and_jvp=_value_and_jvp,
    batch=_batch,
    lower=_lower,
    body=lambda *, call_jaxpr, **params: call_jaxpr,
    deferred_params=("fwd_jaxpr_thunk", "bwd"),
    samples=_samples,
    unsupported={
        "transpose": "a custom_vjp function is transposed after differentiation, which replaces it "
        "by its rules."
    },
)
custom_vjp_call.implementation = _implement


def call_with_vjp(
    function: Function, rules: Rules, arguments: Sequence[Any], symbolic_zeros: bool, name: str
) -> list[Any]:
    """Calls a function whose derivative is a pair of rules; captures take the values captured.

    Args:
        function: What is computed.
        rules: Its rules.
        arguments: Values of the inputs.
        symbolic_zeros: Whether the rules want to know which values are active.
        name: What the user calls the function.
    """
    return custom_vjp_call.bind(
        *arguments,
        *function.captured,
        call_jaxpr=function,
        fwd_jaxpr_thunk=rules.fwd,
        bwd=rules.bwd,
        num_consts=len(function.captured),
        symbolic_zeros=symbolic_zeros,
        name=name,
    )


