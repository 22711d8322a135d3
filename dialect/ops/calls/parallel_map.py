"""The call that `pmap` leaves: one function for every element of a mapped axis.

Here all elements are computed together, on one device: `pmap` is its function vectorized over the
axis, under every transformation. What does not live here: which devices there are, and the check
that they suffice (`axir.pmap`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from iree.compiler import ir

from axir.dialect.core.annotations import Param, Params, UserFunction
from axir.dialect.core.errors import ParameterError
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.collectives.axis_reductions import psum_primitive
from axir.dialect.ops.elementwise.arithmetic import mul
from axir.dialect.ops.elementwise.transcendental import sin
from axir.dialect.program.derived_functions import derive
from axir.dialect.program.function import Function
from axir.dialect.program.function_tracing import trace_function
from axir.dialect.program.named_axes import axis_names_of
from axir.dialect.program.op_table import declare
from axir.dialect.program.parameters import AxisName
from axir.dialect.program.primitive import Sample
from axir.dialect.program.rules import (
    Cotangent,
    LoweringContext,
    Operand,
    ResultAxes,
    Results,
    Tangent,
    Tangents,
    TransposeOperand,
    Value,
)

from . import jit_call as call


def vectorized(
    jaxpr: Function,
    axis_name: AxisName,
    axis_size: int,
    in_axes: tuple[int | None, ...],
    out_axes: tuple[int | None, ...],
) -> Function:
    """Returns the function of a `pmap` as one over its whole arguments."""
    return derive(jaxpr, "vmap", axis_size, in_axes, out_axes, axis_name).function


def _whole(jaxpr: Function, params: Params) -> Function:
    return vectorized(
        jaxpr, params["axis_name"], params["axis_size"], params["in_axes"], params["out_axes"]
    )


def _rule(name: str) -> UserFunction:
    """Returns a rule of calls, which a `pmap` is once it is vectorized."""
    return getattr(call.jit_primitive, name)


def _infer(*types: ShapedArray, jaxpr: Function, **params: Param) -> list[ShapedArray]:
    if len(params["in_axes"]) != len(types):
        raise ParameterError(
            f"pmap: in_axes has {len(params['in_axes'])} entries for {len(types)} operands."
        )
    return _rule("infer")(*types, jaxpr=_whole(jaxpr, params))


def _evaluate(*operands: np.ndarray, jaxpr: Function, **params: Param) -> list[np.ndarray]:
    return _rule("evaluate")(*operands, jaxpr=_whole(jaxpr, params))


def _implement(*operands: Value, jaxpr: Function, **params: Param) -> list[Value]:
    return call.call(_whole(jaxpr, params), *operands)


def _value_and_jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], *, jaxpr: Function, **params: Param
) -> tuple[Results, Tangents]:
    return _rule("value_and_jvp")(primals, tangents, jaxpr=_whole(jaxpr, params))


def _linearize(
    primals: Sequence[Value], tangents: Sequence[Tangent], *, jaxpr: Function, **params: Param
) -> tuple[Results, Tangents]:
    return _rule("linearize")(primals, tangents, jaxpr=_whole(jaxpr, params))


def _transpose(
    cotangents: Sequence[Cotangent], *operands: TransposeOperand, jaxpr: Function, **params: Param
) -> Sequence[Cotangent | None]:
    return _rule("transpose")(cotangents, *operands, jaxpr=_whole(jaxpr, params))


def _batch(
    operands: Sequence[Value], axes: Sequence[int | None], *, jaxpr: Function, **params: Param
) -> tuple[Results, ResultAxes]:
    return _rule("batch")(operands, axes, jaxpr=_whole(jaxpr, params))


def _lower(
    context: LoweringContext, *values: ir.Value, jaxpr: Function, **params: Param
) -> list[ir.Value]:
    return context.call(_whole(jaxpr, params), *values)


def _free_names(*, jaxpr: Function, axis_name: AxisName, **params: Param) -> tuple:
    return tuple(axis_names_of(jaxpr) - {axis_name})


def _samples() -> list[Sample]:
    types = [ShapedArray((3,), np.float32), ShapedArray((), np.float32)]

    def body(x: Operand, y: Operand) -> list[Value]:
        total = psum_primitive.bind(x, axes=("i",), axis_index_groups=None)
        return [mul(sin(total), y), mul(x, 2.0)]

    function = trace_function(body, types, name="body")
    x, y = np.array([[0.1, 0.2, 0.3], [1, 2, 3]], np.float32), np.array(0.5, np.float32)
    return [Sample((x.T, y), _parameters(function, "i", 2, (1, None), (0, 0)))]


def _parameters(
    function: Function,
    axis_name: AxisName,
    axis_size: int,
    in_axes: tuple[int | None, ...],
    out_axes: tuple[int | None, ...],
) -> Params:
    return {
        "axis_name": axis_name,
        "axis_size": axis_size,
        "in_axes": in_axes,
        "jaxpr": function,
        "name": function.name,
        "out_axes": out_axes,
    }


pmap_primitive = declare(
    "pmap",
    parameters={
        "axis_name": AxisName,
        "axis_size": int,
        "in_axes": tuple[int | None, ...],
        "jaxpr": Function,
        "name": str,
        "out_axes": tuple[int | None, ...],
    },
    takes_keys=True,
    multiple_results=True,
    is_memoized=False,
    infer=_infer,
    evaluate=_evaluate,
    value_and_jvp=_value_and_jvp,
    linearize=_linearize,
    transpose=_transpose,
    batch=_batch,
    lower=_lower,
    axis_names=_free_names,
    samples=_samples,
)
pmap_primitive.implementation = _implement


def parallel_map(
    function: Function,
    arguments: Sequence[Value],
    axis_name: AxisName,
    axis_size: int,
    in_axes: Sequence[int | None],
    out_axes: Sequence[int | None],
) -> list[Value]:
    """Applies a function to every element of an axis of its arguments."""
    captured_axes = (None,) * len(function.captured)
    params = _parameters(
        function, axis_name, axis_size, (*in_axes, *captured_axes), tuple(out_axes)
    )
    return pmap_primitive.bind(*arguments, *function.captured, **params)
