"""The op of `pmap`: a `shard_map` with parts of extent 1 along the mapped axis."""

from __future__ import annotations

from collections.abc import Sequence

from axir.dialect.core.memo import derived
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.shape.broadcasting import expand_dims
from axir.dialect.ops.shape.rearranging import squeeze
from axir.dialect.program.function import Function
from axir.dialect.program.function_tracing import trace_function
from axir.dialect.program.meshes.layouts import Layout, replicated
from axir.dialect.program.parameters import AxisName
from axir.dialect.program.rules import Value

from .shard_map import apply_to_parts


def parallel_map(
    function: Function,
    arguments: Sequence[Value],
    axis_name: AxisName,
    axis_size: int,
    in_axes: Sequence[int | None],
    out_axes: Sequence[int | None],
    devices: Sequence[int] = (),
) -> list[Value]:
    """Applies a function to every element of an axis of its arguments.

    Args:
        function: The function of one element.
        arguments: Values of its inputs, with the axis.
        axis_name: Name of the axis for collectives in the function.
        axis_size: Its extent.
        in_axes: Where it stands in each argument; None for an argument that all elements share.
        out_axes: Where it stands in each result; None for a result that is equal for all elements.
        devices: Numbers of the devices, one for each element, or empty.
    """
    part = _of_rows(function, tuple(in_axes), tuple(out_axes))
    results = [v.type.ndim for v in function.outputs]
    return apply_to_parts(
        part,
        [*arguments, *function.captured],
        ((axis_name, axis_size),),
        [
            *(_layout(x.ndim, axis, axis_name) for x, axis in zip(arguments, in_axes, strict=True)),
            *(replicated(x.ndim) for x in function.captured),
        ],
        [
            _layout(ndim + (axis is not None), axis, axis_name)
            for ndim, axis in zip(results, out_axes, strict=True)
        ],
        tuple(devices),
    )


def _layout(ndim: int, axis: int | None, name: AxisName) -> Layout:
    return tuple((name,) if dimension == axis else () for dimension in range(ndim))


@derived
def _of_rows(
    function: Function, in_axes: tuple[int | None, ...], out_axes: tuple[int | None, ...]
) -> Function:
    """Returns a function of one element, including captures, as a function of parts of extent 1."""

    def of_rows(*parts: Value) -> list[Value]:
        elements = [
            x if axis is None else squeeze(x, (axis,))
            for x, axis in zip(parts, (*in_axes, *none), strict=True)
        ]
        return [
            x if axis is None else expand_dims(x, (axis,))
            for x, axis in zip(function.interpret(elements), out_axes, strict=True)
        ]

    none = (None,) * len(function.captures)
    types = [
        v.type if axis is None else _with_row(v.type, axis)
        for v, axis in zip((*function.inputs, *function.captures), (*in_axes, *none), strict=True)
    ]
    return trace_function(of_rows, types, name=function.name, kind="Pmap")


def _with_row(element: ShapedArray, axis: int) -> ShapedArray:
    shape = (*element.shape[:axis], 1, *element.shape[axis:])
    return ShapedArray(shape, element.dtype, element.weak_type)
