"""`linear_call`: a call of a linear function with a user's function as its transpose.

It is linear in the operands after the first `num_res` and is its own derivative in them; the
transpose calls the function given for it. The transpose of that is the function itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from axir.dialect.core.annotations import Param
from axir.dialect.core.errors import UnsupportedRuleError
from axir.dialect.core.symbolic_zeros import is_undefined_primal, moving
from axir.dialect.core.types import Axes as VaryingAxes
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.calls.jit_call import check_call, declare_call
from axir.dialect.ops.elementwise.arithmetic import div
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.elementwise.family import instantiate
from axir.dialect.ops.shape.rearranging import move_batch_axis
from axir.dialect.program.effects import current_frame
from axir.dialect.program.function import Function
from axir.dialect.program.function_tracing import trace_function
from axir.dialect.program.meshes.varying_axes import varying_axes
from axir.dialect.program.operation import Sample
from axir.dialect.program.rules import Cotangent, Operand, Tangent, Value

from .bodies import Axes, batched_in_front

_Part = TypeVar("_Part")


def _parts(
    operands: Sequence[_Part], callee: Function, num_res: int, num_consts: int
) -> tuple[Sequence[_Part], ...]:
    """Returns residuals, linear operands, and captured values of the function and its transpose."""
    last, end = len(operands) - num_consts, len(callee.in_avals)
    return operands[:num_res], operands[num_res:last], operands[last:end], operands[end:]


def _called(
    *operands: Value, callee: Function, **params: object
) -> tuple[Function, Sequence[Value]]:
    return callee, operands[: len(callee.in_avals)]


def _check(
    types: Sequence[ShapedArray], *, callee: Function, transpose: Function, **params: int
) -> None:
    residuals, _, _, consts = _parts(types, callee, **params)
    taken = [*residuals, *callee.output_types, *consts]
    check_call("linear_call: transpose", transpose, taken)


def _varying(
    given: Sequence[VaryingAxes], *, callee: Function, **params: object
) -> list[VaryingAxes]:
    return varying_axes(callee, tuple(given[: len(callee.in_avals)]))


def _jvp(
    primals: Sequence[Value],
    tangents: Sequence[Tangent],
    outs: Sequence[Value],
    *,
    num_res: int,
    num_consts: int,
    **params: object,
) -> Sequence[Tangent]:
    last = len(primals) - num_consts
    if any(moving((*tangents[:num_res], *tangents[last:]))):
        raise UnsupportedRuleError(
            "linear_call is not differentiable in its residual_args.",
            "Pass them through axir.lax.stop_gradient.",
        )
    operands = [*primals[:num_res], *map(instantiate, tangents[num_res:last]), *primals[last:]]
    params = {"num_res": num_res, "num_consts": num_consts, **params}
    return linear_call_primitive.bind(*operands, **params)


def _transpose(
    cotangents: Sequence[Cotangent],
    *operands: Param,
    callee: Function,
    transpose: Function,
    **params: int,
) -> Sequence[Cotangent | None]:
    residuals, linear, consts, other_consts = _parts(operands, callee, **params)
    taken = [*residuals, *map(instantiate, cotangents), *other_consts, *consts]
    results = linear_call_primitive.bind(*taken, callee=transpose, transpose=callee, **params)
    return [
        *(None for _ in residuals),
        *(ct if is_undefined_primal(x) else None for x, ct in zip(linear, results, strict=True)),
        *(None for _ in (*consts, *other_consts)),
    ]


def _batch(
    operands: Sequence[Value],
    axes: Axes,
    *,
    callee: Function,
    transpose: Function,
    num_res: int,
    num_consts: int,
) -> tuple[list[Value], list[int | None]]:
    size = current_frame().size
    residuals, linear, consts, other_consts = _parts(operands, callee, num_res, num_consts)
    fixed, moved, axes_of_consts, other_axes = _parts(axes, callee, num_res, num_consts)
    linear = [move_batch_axis(x, axis, size, 0) for x, axis in zip(linear, moved, strict=True)]
    body = batched_in_front(callee, [*fixed, *(0 for _ in linear), *axes_of_consts])
    turned = batched_in_front(transpose, [*fixed, *(0 for _ in callee.outputs), *other_axes])
    consts = [*consts, *body.captured, *other_consts, *turned.captured]
    params = {"num_res": num_res, "num_consts": len(consts)}
    results = linear_call_primitive.bind(
        *residuals, *linear, *consts, callee=body, transpose=turned, **params
    )
    return results, [0] * len(results)


def _samples() -> list[Sample]:
    vector, count = ShapedArray((3,), np.float32), ShapedArray((3,), np.int32)

    def divide(r: Operand, x: Operand) -> list[Value]:
        return [div(x, convert_element_type(r, np.dtype(np.float32)))]

    function = trace_function(divide, [count, vector], name="divide")
    r, x = np.array([1, 2, 4], np.int32), np.array([1, 2, 3], np.float32)
    params = {"callee": function, "transpose": function, "num_res": 1, "num_consts": 0}
    return [Sample((r, x), params)]


linear_call_primitive = declare_call(
    "linear_call",
    _called,
    parameters={"callee": Function, "transpose": Function, "num_res": int, "num_consts": int},
    check=_check,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    varying=_varying,
    samples=_samples,
)


def call_linear(
    function: Function, transpose: Function, arguments: Sequence[Value], num_res: int
) -> list[Value]:
    """Calls a function that is linear after its first arguments, with a given transpose.

    Args:
        function: The function to call.
        transpose: From the first arguments and cotangents of the results to cotangents of the other
            arguments.
        arguments: Values of the inputs.
        num_res: Number of the first arguments, in which it is not linear.
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
