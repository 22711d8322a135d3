"""Collectives: ops that combine the values along a mapped axis.

Inside `vmap(f, axis_name="i")` each op keeps the axis's name until vectorization over that axis
replaces it by ops along the batch axis (`batch_named`). So nothing is left to evaluate: a
collective over an unmapped axis is an error. In a program that the devices of a mesh run on their
parts it becomes communication (`communicating.py`). Here: the collectives that reduce. Those that
move data are in `axis_exchanges.py`. Elsewhere: the functions that users call, with trees and
negative axes (`axir.lax.parallel`), and the scope of names (`dialect/program/effects.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from axir.dialect.core.errors import ParameterError
from axir.dialect.core.state import BatchFrame
from axir.dialect.core.symbolic_zeros import Zero
from axir.dialect.core.types import ShapedArray, in_order
from axir.dialect.ops.elementwise.arithmetic import div, mul
from axir.dialect.ops.elementwise.comparison import eq, select_n
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.elementwise.family import zero_tangent
from axir.dialect.ops.indexing.gather import GatherDimensionNumbers, gather
from axir.dialect.ops.indexing.static_slicing import index_in_dim
from axir.dialect.ops.reductions.reduce import reduce_max, reduce_min, reduce_sum
from axir.dialect.ops.shape.constants import full_like, iota
from axir.dialect.ops.shape.rearranging import broadcast, broadcast_in_dim, moveaxis, reshape
from axir.dialect.program.dimensions import position_wise
from axir.dialect.program.op_table import declare
from axir.dialect.program.operation import Sample
from axir.dialect.program.parameters import AxisName
from axir.dialect.program.primitive import Primitive
from axir.dialect.program.rules import (
    Cotangent,
    OperandTangents,
    ResultAxes,
    Results,
    Rule,
    Tangent,
    Tangents,
    TransposeOperand,
    Value,
)

from .communicating import lower_axis_index, lower_collective, lower_same

Groups = tuple[tuple[int, ...], ...] | None
Axes = Sequence[int | None]

_UNMAPPED = (
    "it communicates over a named axis, which vectorization resolves; map the axis with "
    "axir.vmap(..., axis_name=...)"
)


def declare_collective(name: str, **rules: Rule) -> Primitive:
    """Declares a primitive that communicates over a named axis."""
    unsupported = {"evaluate": _UNMAPPED, **rules.pop("unsupported", {})}
    rules = {"lower": lower_collective, **rules}
    return declare(name, is_staged=True, unsupported=unsupported, samples=_no_samples, **rules)


def _no_samples() -> list[Sample]:
    return []


def to_front(x: Value, axis: int | None, size: int) -> Value:
    """Returns a value with its mapped axis in front; repeats a value without a mapped axis."""
    return broadcast(x, (size,)) if axis is None else moveaxis(x, axis, 0)


def take(x: Value, rows: Sequence[int]) -> Value:
    """Returns the given rows of a value, in that order."""
    if tuple(rows) == tuple(range(x.shape[0])):
        return x
    dimensions = GatherDimensionNumbers(
        offset_dims=tuple(range(1, x.ndim)), collapsed_slice_dims=(0,), start_index_map=(0,)
    )
    indices = np.array(rows, np.int32)[:, None]
    return gather(x, indices, dimensions, (1, *x.shape[1:]), mode="promise_in_bounds")


def by_group(x: Value, groups: Groups, apply: Callable[[Value], Value]) -> Value:
    """Applies a function of `[group, member, ...]` to a value with its mapped axis in front.

    Without groups all elements are one group.
    """
    size = x.shape[0]
    members = groups or (tuple(range(size)),)
    order = [row for group in members for row in group]
    if sorted(order) != list(range(size)) or len({len(group) for group in members}) != 1:
        raise ParameterError(
            f"axis_index_groups {members} do not partition an axis of extent {size} into groups of "
            "one size.",
            "List every index from 0 to the extent exactly once, in groups of equal length.",
        )
    split = reshape(take(x, order), (len(members), len(members[0]), *x.shape[1:]))
    result = apply(split)
    inverse = np.argsort(order).tolist()
    return take(reshape(result, (size, *result.shape[2:])), inverse)


# psum, pmax, pmin -------------------------------------------------------------------------------


def infer_same(x: ShapedArray, **params: object) -> ShapedArray:
    """Infers a result of the operand's type."""
    return x


def _axes_of(*, axes: tuple[AxisName, ...], axis_index_groups: Groups) -> tuple[AxisName, ...]:
    return axes


def _same_along(
    given: Sequence[frozenset[AxisName]], *, axes: tuple[AxisName, ...], axis_index_groups: Groups
) -> list[frozenset[AxisName]]:
    return [own if axis_index_groups else own.difference(axes) for own in given]


def _reduction(name: str, reduce: Callable[..., Value], **rules: Rule) -> Primitive:
    def batch(
        operands: Sequence[Value], operand_axes: Axes, **params: object
    ) -> tuple[Results, ResultAxes]:
        return primitive.bind(*operands, **params), operand_axes[0]

    def batch_named(
        operands: Sequence[Value],
        operand_axes: Axes,
        frame: BatchFrame,
        *,
        axes: tuple[AxisName, ...],
        axis_index_groups: Groups,
    ) -> tuple[Results, ResultAxes]:
        (x,), (axis,) = operands, operand_axes
        rest = tuple(other for other in axes if other != frame.name)
        if axis_index_groups is not None and len(axes) > 1:
            raise ParameterError(
                f"{name}: axis_index_groups with the axes {axes}.",
                "Groups partition one axis; reduce over the others separately.",
            )
        stacked = to_front(x, axis, frame.size)
        if axis_index_groups is None:
            result, result_axis = reduce(stacked, (0,)), None
        else:
            result = by_group(stacked, axis_index_groups, lambda g: _keep(reduce, g))
            result_axis = 0
        if rest:
            result = primitive.bind(result, axes=rest, axis_index_groups=None)
        return result, result_axis

    primitive = declare_collective(
        name,
        parameters={"axes": tuple[AxisName, ...], "axis_index_groups": Groups},
        infer=infer_same,
        batch=batch,
        batch_named=batch_named,
        axis_names=_axes_of,
        varying=_same_along,
        dimensions=position_wise,
        **rules,
    )
    return primitive


def _keep(reduce: Callable[..., Value], grouped: Value) -> Value:
    """Reduces the members of each group and gives the result to each of them."""
    dimensions = (0, *range(2, grouped.ndim))
    return broadcast_in_dim(reduce(grouped, (1,)), grouped.shape, dimensions)


def _psum_jvp(
    primals: Sequence[Value], tangents: OperandTangents, out: Value, **params: object
) -> Tangents:
    return psum_primitive.bind(tangents[0], **params)


def _psum_invariant_jvp(
    primals: Sequence[Value], tangents: OperandTangents, out: Value, **params: object
) -> Tangents:
    return psum_invariant_primitive.bind(tangents[0], **params)


def _psum_invariant_transpose(
    ct: Value, x: TransposeOperand, *, axes: tuple[AxisName, ...], **params: object
) -> Sequence[Cotangent | None]:
    return [pvary(ct, axes)]


def _psum_transpose(ct: Value, x: TransposeOperand, **params: object) -> Sequence[Cotangent | None]:
    return [psum_primitive.bind(ct, **params)]


def _extremum_jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], out: Value, **params: object
) -> Tangents:
    (x,), (tangent,) = primals, tangents
    if type(tangent) is Zero:
        return zero_tangent(primals, tangents, out)
    # The tangent of the extremum is the mean of the tangents of the elements equal to it.
    chosen = convert_element_type(eq(x, out), x.dtype)
    is_tracked = bool(x.type.varying - out.type.varying)
    psum = psum_invariant_primitive if is_tracked else psum_primitive
    return div(psum.bind(mul(tangent, chosen), **params), psum.bind(chosen, **params))


_NOT_LINEAR = {"transpose": "the largest and the smallest element are no linear functions"}
psum_primitive = _reduction("psum", reduce_sum, jvp=_psum_jvp, transpose=_psum_transpose)
pmax_primitive = _reduction("pmax", reduce_max, jvp=_extremum_jvp, unsupported=_NOT_LINEAR)
pmin_primitive = _reduction("pmin", reduce_min, jvp=_extremum_jvp, unsupported=_NOT_LINEAR)
# The sum along axes that types track: the operand varies along all of them, the result along none.
# So a cotangent is equal for all positions, and each position gets it unchanged.
psum_invariant_primitive = _reduction(
    "psum_invariant", reduce_sum, jvp=_psum_invariant_jvp, transpose=_psum_invariant_transpose
)


# pvary ------------------------------------------------------------------------------------------


def pvary(x: Value, axes: Iterable[AxisName]) -> Value:
    """Returns a value of a type that varies along further axes.

    Its transpose sums, because each position has used the equal value.
    """
    missing = in_order(set(axes) - x.type.varying)
    return pvary_primitive.bind(x, axes=missing) if missing else x


def _more_varying(
    given: Sequence[frozenset[AxisName]], *, axes: tuple[AxisName, ...]
) -> list[frozenset[AxisName]]:
    return [own.union(axes) for own in given]


def _pvary_jvp(
    primals: Sequence[Value], tangents: OperandTangents, out: Value, **params: object
) -> Tangents:
    return pvary_primitive.bind(tangents[0], **params)


def _pvary_transpose(
    ct: Value, x: TransposeOperand, *, axes: tuple[AxisName, ...]
) -> Sequence[Cotangent | None]:
    return [psum_invariant_primitive.bind(ct, axes=axes, axis_index_groups=None)]


def _pvary_batch(
    operands: Sequence[Value], operand_axes: Axes, **params: object
) -> tuple[Results, ResultAxes]:
    return pvary_primitive.bind(*operands, **params), operand_axes[0]


def _pvary_batch_named(
    operands: Sequence[Value],
    operand_axes: Axes,
    frame: BatchFrame,
    *,
    axes: tuple[AxisName, ...],
) -> tuple[Results, ResultAxes]:
    return pvary(operands[0], [name for name in axes if name != frame.name]), operand_axes[0]


pvary_primitive = declare_collective(
    "pvary",
    parameters={"axes": tuple[AxisName, ...]},
    moves_elements=True,
    infer=infer_same,
    jvp=_pvary_jvp,
    transpose=_pvary_transpose,
    batch=_pvary_batch,
    batch_named=_pvary_batch_named,
    lower=lower_same,
    axis_names=lambda *, axes: axes,
    varying=_more_varying,
    dimensions=position_wise,
)


# pinvary ----------------------------------------------------------------------------------------


def pinvary(x: Value, axes: Iterable[AxisName]) -> Value:
    """Marks a value in its type as equal along axes.

    The caller guarantees that the value is equal along these axes; this is not checked. The
    transpose gives the cotangent to the first position only, because the one equal value was used
    once.
    """
    known = in_order(x.type.varying.intersection(axes))
    return pinvary_primitive.bind(x, axes=known) if known else x


def _less_varying(
    given: Sequence[frozenset[AxisName]], *, axes: tuple[AxisName, ...]
) -> list[frozenset[AxisName]]:
    return [own.difference(axes) for own in given]


def _pinvary_jvp(
    primals: Sequence[Value], tangents: OperandTangents, out: Value, **params: object
) -> Tangents:
    return pinvary_primitive.bind(tangents[0], **params)


def _pinvary_transpose(
    ct: Value, x: TransposeOperand, *, axes: tuple[AxisName, ...]
) -> Sequence[Cotangent | None]:
    varied = pvary(ct, axes)
    for name in axes:
        place = pvary(axis_index_primitive.bind(axis_name=name), (name,))
        varied = select_n(eq(place, full_like(place, 0)), full_like(varied, 0), varied)
    return [varied]


def _pinvary_batch(
    operands: Sequence[Value], operand_axes: Axes, **params: object
) -> tuple[Results, ResultAxes]:
    return pinvary_primitive.bind(*operands, **params), operand_axes[0]


def _pinvary_batch_named(
    operands: Sequence[Value],
    operand_axes: Axes,
    frame: BatchFrame,
    *,
    axes: tuple[AxisName, ...],
) -> tuple[Results, ResultAxes]:
    first = index_in_dim(to_front(operands[0], operand_axes[0], frame.size), 0, 0, keepdims=False)
    return pinvary(first, [name for name in axes if name != frame.name]), None


pinvary_primitive = declare_collective(
    "pinvary",
    parameters={"axes": tuple[AxisName, ...]},
    moves_elements=True,
    infer=infer_same,
    jvp=_pinvary_jvp,
    transpose=_pinvary_transpose,
    batch=_pinvary_batch,
    batch_named=_pinvary_batch_named,
    lower=lower_same,
    axis_names=lambda *, axes: axes,
    varying=_less_varying,
    dimensions=position_wise,
)


# axis_index -------------------------------------------------------------------------------------


def name_of(*, axis_name: AxisName, **params: object) -> tuple:
    """Returns the axes that the parameter `axis_name` names."""
    return axis_name if isinstance(axis_name, tuple) else (axis_name,)


def _infer_axis_index(*, axis_name: AxisName) -> ShapedArray:
    return ShapedArray((), np.int32)


def _batch_named_axis_index(
    operands: Sequence[Value], axes: Axes, frame: BatchFrame, *, axis_name: AxisName
) -> tuple[Results, ResultAxes]:
    return iota(np.int32, frame.size), 0


axis_index_primitive = declare_collective(
    "axis_index",
    parameters={"axis_name": AxisName},
    infer=_infer_axis_index,
    batch_named=_batch_named_axis_index,
    lower=lower_axis_index,
    axis_names=name_of,
    unsupported={
        "jvp": "it has no operands",
        "transpose": "it has no operands",
        "batch": "it has no operands; over its own axis it becomes an iota",
    },
)
