"""`linear_call`: a call of a linear function whose transpose is a user's function.

It is linear in the operands after the first `num_res` and is its own derivative in them; the
transpose calls the function given for it, whose transpose in turn is the function itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...axes import current_frame
from ...errors import UnsupportedRuleError
from ...function import Function
from ...primitive import Sample
from ...symbolic import is_undefined_primal
from ...trace import trace_function
from ...types import ShapedArray
from ..family import instantiate
from ..table import declare
from .bodies import batched_body, check_call, evaluate_body, is_moving


def _infer(
    *types: ShapedArray, callee: Function, transpose: Function, num_res: int, num_consts: int
) -> list[ShapedArray]:
    consts = types[len(types) - num_consts :]
    callee_consts = consts[: _constants(callee, types, num_consts)]
    arguments = types[: len(types) - num_consts]
    check_call("linear_call", callee, [*arguments, *callee_consts])
    rest = consts[len(callee_consts) :]
    check_call(
        "linear_call: transpose", transpose, [*types[:num_res], *callee.output_types, *rest]
    )
    return callee.output_types


def _constants(callee: Function, operands: Sequence[Any], num_consts: int) -> int:
    taken = len(callee.inputs) + len(callee.captures)
    return taken - (len(operands) - num_consts)


def _own(callee: Function, operands: Sequence[Any], num_consts: int) -> Sequence[Any]:
    """Returns the operands of the function itself."""
    return operands[: len(callee.inputs) + len(callee.captures)]


def _evaluate(
    *operands: np.ndarray, callee: Function, num_consts: int, **params: Any
) -> list[np.ndarray]:
    return evaluate_body(callee, _own(callee, operands, num_consts))


def _implement(*operands: Any, callee: Function, num_consts: int, **params: Any) -> list[Any]:
    return callee.interpret(_own(callee, operands, num_consts))


def _jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    outs: Sequence[Any],
    *,
    num_res: int,
    num_consts: int,
    **params: Any,
) -> list[Any]:
    last = len(primals) - num_consts
    if any(map(is_moving, (*tangents[:num_res], *tangents[last:]))):
        raise UnsupportedRuleError(
            "linear_call is not differentiable in its residual_args.",
            "Pass them through axir.lax.stop_gradient.",
        )
    moving = [instantiate(t) for t in tangents[num_res:last]]
    params = {"num_res": num_res, "num_consts": num_consts, **params}
    return linear_call_primitive.bind(*primals[:num_res], *moving, *primals[last:], **params)


def _transpose(
    cotangents: Sequence[Any],
    *operands: Any,
    callee: Function,
    transpose: Function,
    num_res: int,
    num_consts: int,
) -> list[Any]:
    last = len(operands) - num_consts
    consts = operands[last:]
    own = _constants(callee, operands, num_consts)
    results = linear_call_primitive.bind(
        *operands[:num_res],
        *map(instantiate, cotangents),
        *consts[own:],
        *consts[:own],
        callee=transpose,
        transpose=callee,
        num_res=num_res,
        num_consts=num_consts,
    )
    linear = operands[num_res:last]
    return [
        *(None for _ in range(num_res)),
        *(ct if is_undefined_primal(x) else None for x, ct in zip(linear, results, strict=True)),
        *(None for _ in consts),
    ]


def _batch(
    operands: Sequence[Any],
    axes: Sequence[int | None],
    *,
    callee: Function,
    transpose: Function,
    num_res: int,
    num_consts: int,
) -> tuple[list[Any], list[int | None]]:
    from .custom_lin import to_front

    size = current_frame().size
    last = len(operands) - num_consts
    own = _constants(callee, operands, num_consts)
    pairs = zip(operands[num_res:last], axes[num_res:last], strict=True)
    linear = [to_front(x, axis, size) for x, axis in pairs]
    fixed, const_axes = axes[:num_res], axes[last:]
    body = batched_body(
        callee, [*fixed, *(0 for _ in linear), *const_axes[:own]], (0,) * len(callee.outputs)
    ).function
    turned = batched_body(
        transpose,
        [*fixed, *(0 for _ in callee.outputs), *const_axes[own:]],
        (0,) * len(transpose.outputs),
    ).function
    consts = [
        *operands[last : last + own], *body.captured, *operands[last + own :], *turned.captured
    ]
    results = linear_call_primitive.bind(
        *operands[:num_res],
        *linear,
        *consts,
        callee=body,
        transpose=turned,
        num_res=num_res,
        num_consts=len(consts),
    )
    return results, [0] * len(results)


def _lower(
    context: Any, *values: Any, callee: Function, num_consts: int, **params: Any
) -> list[Any]:
    return context.inline(callee, *_own(callee, values, num_consts))


def _samples() -> list[Sample]:
    from ..elementwise import div

    vector, count = ShapedArray((3,), np.float32), ShapedArray((3,), np.int32)

    def divide(r: Any, x: Any) -> list[Any]:
        from ..conversion import convert_element_type

        return [div(x, convert_element_type(r, np.dtype(np.float32)))]

    function = trace_function(divide, [count, vector], name="divide")
    r, x = np.array([1, 2, 4], np.int32), np.array([1, 2, 3], np.float32)
    params = {"callee": function, "transpose": function, "num_res": 1, "num_consts": 0}
    return [Sample((r, x), params)]


linear_call_primitive = declare(
    "linear_call",
    takes_keys=True,
    multiple_results=True,
    is_memoized=False,
    infer=_infer,
    evaluate=_evaluate,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    lower=_lower,
    samples=_samples,
)
linear_call_primitive.implementation = _implement


def call_linear(
    function: Function, transpose: Function, arguments: Sequence[Any], num_res: int
) -> list[Any]:
    """Calls a function that is linear after its first arguments, and whose transpose is given.

    Args:
        function: What is computed.
        transpose: From the first arguments and cotangents of the results to those of the others.
        arguments: Values of the inputs.
        num_res: How many arguments come first, in which it is not linear.
    """
    return linear_call_primitive.bind(
        *arguments,
        *function.captured,
        *transpose.captured,
        callee=function,
        transpose=transpose,
        num_res=num_res,
        num_consts=len(function.captured) + len(transpose.captured),
    )


