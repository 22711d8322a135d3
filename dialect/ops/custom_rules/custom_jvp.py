"""`custom_jvp_call`: a call of a function whose forward-mode derivative is a user's rule.

Results and lowering are those of the function. What does not live here: checking of what the rule
returns (the frontend does that while the rule is traced) and calls while values are known
(`applied.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...axes import current_frame
from ...errors import ParameterError
from ...function import Function
from ...primitive import Sample
from ...trace import trace_function
from ...types import ShapedArray
from ..call import transpose_call
from ..table import declare
from .bodies import (
    batched_body,
    check_call,
    check_rule,
    closed_over_error,
    evaluate_body,
    inexact,
    is_moving,
    spread,
    trace_of_tangents,
)
from .rules import apply_jvp_rule, batched_jvp_rule


def _infer(
    *types: ShapedArray,
    call_jaxpr: Function,
    jvp_jaxpr_fun: Any,
    num_consts: int,
    symbolic_zeros: bool,
    name: str,
) -> list[ShapedArray]:
    check_call("custom_jvp_call", call_jaxpr, types)
    if not 0 <= num_consts <= len(types):
        raise ParameterError(
            f"custom_jvp_call: {num_consts} of {len(types)} operands cannot be constants."
        )
    arguments = types[: len(types) - num_consts]
    results = call_jaxpr.output_types
    check_rule(
        "custom_jvp_call",
        jvp_jaxpr_fun,
        [*arguments, *_with_tangents(arguments)],
        [*results, *_with_tangents(results)],
    )
    return results


def _with_tangents(types: Sequence[ShapedArray]) -> list[ShapedArray]:
    return [t for t, has in zip(types, inexact(types), strict=True) if has]


def _evaluate(*operands: np.ndarray, call_jaxpr: Function, **params: Any) -> list[np.ndarray]:
    return evaluate_body(call_jaxpr, operands)


def _implement(*operands: Any, call_jaxpr: Function, **params: Any) -> list[Any]:
    return call_jaxpr.interpret(operands)


def _differentiate(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    is_split: bool,
    *,
    call_jaxpr: Function,
    jvp_jaxpr_fun: Any,
    num_consts: int,
    name: str,
    **params: Any,
) -> tuple[list[Any], list[Any]]:
    count = len(primals) - num_consts
    if any(is_moving(t) for t in tangents[count:]):
        raise closed_over_error("custom_jvp", name)
    results = call_jaxpr.output_types
    outs, out_tangents = apply_jvp_rule(
        jvp_jaxpr_fun,
        primals[:count],
        tangents[:count],
        len(results),
        trace_of_tangents(tangents) if is_split else None,
    )
    return outs, spread(results, out_tangents)


def _value_and_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], **params: Any
) -> tuple[list[Any], list[Any]]:
    return _differentiate(primals, tangents, False, **params)


def _linearize(
    primals: Sequence[Any], tangents: Sequence[Any], **params: Any
) -> tuple[list[Any], list[Any]]:
    return _differentiate(primals, tangents, True, **params)


def _batch(
    operands: Sequence[Any],
    axes: Sequence[int | None],
    *,
    call_jaxpr: Function,
    jvp_jaxpr_fun: Any,
    num_consts: int,
    **params: Any,
) -> tuple[list[Any], list[int | None]]:
    frame = current_frame()
    out_axes = (0,) * len(call_jaxpr.outputs)
    body = batched_body(call_jaxpr, axes, out_axes).function
    count = len(operands) - num_consts
    types = [v.type for v in (*call_jaxpr.inputs, *call_jaxpr.captures)][:count]
    rule = batched_jvp_rule(jvp_jaxpr_fun, axes[:count], frame.size, frame.name, types)
    results = custom_jvp_call.bind(
        *operands,
        *body.captured,
        call_jaxpr=body,
        jvp_jaxpr_fun=rule,
        num_consts=num_consts + len(body.captured),
        **params,
    )
    return results, list(out_axes)


def _lower(context: Any, *values: Any, call_jaxpr: Function, **params: Any) -> list[Any]:
    return context.inline(call_jaxpr, *values)


def _samples() -> list[Sample]:
    from ..elementwise import mul
    from ..transcendental import cos, sin

    vector, count = ShapedArray((3,), np.float32), ShapedArray((), np.int32)

    def body(x: Any, y: Any, unused: Any) -> list[Any]:
        return [mul(sin(x), y), unused]

    def rule(x: Any, y: Any, unused: Any, dx: Any, dy: Any) -> list[Any]:
        from ..elementwise import add

        return [mul(sin(x), y), unused, add(mul(mul(dx, cos(x)), y), mul(sin(x), dy))]

    params = {
        "call_jaxpr": trace_function(body, [vector, vector, count], name="f"),
        "jvp_jaxpr_fun": trace_function(
            rule, [vector, vector, count, vector, vector], name="f_jvp"
        ),
        "num_consts": 0,
        "symbolic_zeros": False,
        "name": "f",
    }
    x, y = np.array([0.1, 0.2, 0.3], np.float32), np.array([1, 2, 3], np.float32)
    return [Sample((x, y, np.array(4, np.int32)), params)]


def _transpose(
    cotangents: Sequence[Any], *operands: Any, call_jaxpr: Function, **params: Any
) -> list[Any]:
    # Differentiation is over: what is transposed is the function itself, which must be linear.
    return transpose_call(cotangents, *operands, jaxpr=call_jaxpr)


custom_jvp_call = declare(
    "custom_jvp_call",
    takes_keys=True,
    multiple_results=True,
    is_memoized=False,
    infer=_infer,
    evaluate=_evaluate,
    value_and_jvp=_value_and_jvp,
    linearize=_linearize,
    batch=_batch,
    lower=_lower,
    body=lambda *, call_jaxpr, **params: call_jaxpr,
    deferred_params=("jvp_jaxpr_fun",),
    transpose=_transpose,
    samples=_samples,
)
custom_jvp_call.implementation = _implement


def call_with_jvp(
    function: Function, rule: Any, arguments: Sequence[Any], symbolic_zeros: bool, name: str
) -> list[Any]:
    """Calls a function whose derivative is a rule; its captures take the values captured.

    Args:
        function: What is computed.
        rule: Its forward-mode rule; see `rules.jvp_rule`.
        arguments: Values of the inputs.
        symbolic_zeros: Whether the rule wants to know which arguments are active.
        name: What the user calls the function.
    """
    return custom_jvp_call.bind(
        *arguments,
        *function.captured,
        call_jaxpr=function,
        jvp_jaxpr_fun=rule,
        num_consts=len(function.captured),
        symbolic_zeros=symbolic_zeros,
        name=name,
    )
