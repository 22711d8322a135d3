"""Derivatives and batching of `conv_general_dilated`.

A convolution is linear in each operand; both adjoints are convolutions again. With stride s, kernel
dilation d, operand dilation e and low padding l, along one spatial dimension

    out[p] = sum over k of lhs[i] rhs[k]    where  i e = p s + k d - l,

so that a sum over p or k in place of the other is a convolution with exchanged stride, dilations
and padding. Elsewhere: the primitive itself (`conv_general_dilated.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import DTypeLike, Param, PrecisionLike
from axir.dialect.core.symbolic_zeros import Zero, is_undefined_primal
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.elementwise.family import add_tangents, full
from axir.dialect.ops.shape.movement import batch_size
from axir.dialect.ops.shape.rearranging import moveaxis, reshape, rev
from axir.dialect.program.op_table import OPS
from axir.dialect.program.rules import (
    Cotangent,
    ResultAxes,
    Results,
    Tangent,
    Tangents,
    Value,
)

from .types import ConvDimensionNumbers, Padding, dilate, result_shape


def _bind(lhs: Value, rhs: Value, **params: object) -> Value:
    return OPS["conv_general_dilated"].bind(lhs, rhs, **params)


# Derivatives -----------------------------------------------------------------------------------


def jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], out: Value, **params: object
) -> Tangents:
    """Differentiates the convolution, which is linear in each operand."""
    (lhs, rhs), (lhs_tangent, rhs_tangent) = primals, tangents
    if not dtypes.is_inexact(out.dtype) or not dtypes.is_inexact(lhs.dtype):
        return Zero(out.aval.to_tangent_aval())
    total: Tangent | None = None
    if type(lhs_tangent) is not Zero:
        total = _bind(lhs_tangent, rhs, **params)
    if type(rhs_tangent) is not Zero:
        total = add_tangents(total, _bind(lhs, rhs_tangent, **params))
    return Zero(out.aval.to_tangent_aval()) if total is None else total


def transpose(ct: Value, lhs: Param, rhs: Param, **params: Param) -> Sequence[Cotangent | None]:
    """Transposes the convolution in one of the operands."""
    is_lhs = is_undefined_primal(lhs)
    operand, other = (lhs, rhs) if is_lhs else (rhs, lhs)
    if 0 in (*ct.shape, *operand.shape, *other.shape):
        result = full(operand.shape, 0, operand.dtype)
        return [result, None] if is_lhs else [None, result]
    if other.dtype != ct.dtype:
        other = convert_element_type(other, ct.dtype)
    rule: Callable[..., Value] = _transpose_lhs if is_lhs else _transpose_rhs
    params.pop("preferred_element_type")
    result = rule(ct, operand.shape, other, **params)
    if result.dtype != operand.dtype:
        result = convert_element_type(result, operand.dtype)
    return [result, None] if is_lhs else [None, result]


def _transpose_lhs(
    ct: Value, shape: tuple[int, ...], rhs: Value, *, window_strides: tuple[int, ...],
    padding: Padding, lhs_dilation: tuple[int, ...], rhs_dilation: tuple[int, ...],
    dimension_numbers: ConvDimensionNumbers, feature_group_count: int, batch_group_count: int,
    precision: PrecisionLike,
) -> Value:  # fmt: skip
    """Convolves the cotangent, dilated by the stride, with the reversed kernel.

    Groups of features and groups of the batch become groups of the cotangent's features.
    """
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    kernel = rev(rhs, rhs_spec[2:]) if rhs_spec[2:] else rhs
    groups = feature_group_count * batch_group_count
    if groups > 1:
        # The features of lhs become output features: all of them, not only one group.
        kernel = _move_groups(kernel, groups, rhs_spec[0], rhs_spec[1])
    pads = []
    for axis, (low, _) in enumerate(padding):
        size = dilate(shape[lhs_spec[axis + 2]], lhs_dilation[axis])
        window = dilate(rhs.shape[rhs_spec[axis + 2]], rhs_dilation[axis])
        spread = dilate(ct.shape[out_spec[axis + 2]], window_strides[axis])
        pads.append((window - 1 - low, size + low - spread))
    result = _bind(
        ct,
        kernel,
        window_strides=lhs_dilation,
        padding=tuple(pads),
        lhs_dilation=window_strides,
        rhs_dilation=rhs_dilation,
        dimension_numbers=ConvDimensionNumbers(out_spec, _exchanged(rhs_spec), lhs_spec),
        feature_group_count=groups,
        batch_group_count=1,
        precision=precision,
        preferred_element_type=None,
    )
    if batch_group_count > 1:
        result = _move_groups(result, batch_group_count, lhs_spec[1], lhs_spec[0])
    return result


def _transpose_rhs(
    ct: Value, shape: tuple[int, ...], lhs: Value, *, window_strides: tuple[int, ...],
    padding: Padding, lhs_dilation: tuple[int, ...], rhs_dilation: tuple[int, ...],
    dimension_numbers: ConvDimensionNumbers, feature_group_count: int, batch_group_count: int,
    precision: PrecisionLike,
) -> Value:  # fmt: skip
    """Convolves lhs with the cotangent as the kernel; sums over the batch.

    The features of lhs take the role of its batch, so groups of features become groups of the
    batch, and the other way around.
    """
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    pads = []
    for axis, (low, _) in enumerate(padding):
        size = dilate(lhs.shape[lhs_spec[axis + 2]], lhs_dilation[axis])
        window = dilate(shape[rhs_spec[axis + 2]], rhs_dilation[axis])
        spread = dilate(ct.shape[out_spec[axis + 2]], window_strides[axis])
        pads.append((low, window + spread - 1 - size - low))
    numbers = ConvDimensionNumbers(_exchanged(lhs_spec), _exchanged(out_spec), _exchanged(rhs_spec))
    return _bind(
        lhs,
        ct,
        window_strides=rhs_dilation,
        padding=tuple(pads),
        lhs_dilation=lhs_dilation,
        rhs_dilation=window_strides,
        dimension_numbers=numbers,
        feature_group_count=batch_group_count,
        batch_group_count=feature_group_count,
        precision=precision,
        preferred_element_type=None,
    )


def _exchanged(spec: tuple[int, ...]) -> tuple[int, ...]:
    return (spec[1], spec[0], *spec[2:])


# Axes ------------------------------------------------------------------------------------------


def _split(x: Value, axis: int, outer: int) -> Value:
    """Splits an axis into an outer one of the given size and the rest."""
    inner = x.shape[axis] // outer
    return reshape(x, (*x.shape[:axis], outer, inner, *x.shape[axis + 1 :]))


def _merge(x: Value, axis: int) -> Value:
    """Merges an axis and the next."""
    size = x.shape[axis] * x.shape[axis + 1]
    return reshape(x, (*x.shape[:axis], size, *x.shape[axis + 2 :]))


def _move(x: Value, source: int, destination: int) -> Value:
    return moveaxis(x, source, destination)


def _move_groups(x: Value, groups: int, source: int, destination: int) -> Value:
    """Moves groups, the outer part of one axis, to be the outer part of another."""
    split = _split(x, source, groups)
    # Without the axis of groups, `destination` stands where it did.
    return _merge(_move(split, source, destination), destination)


def _fold(x: Value, batch_axis: int, axis: int, groups: int = 1) -> Value:
    """Merges the batch axis into another axis: within its groups, before their elements.

    Args:
        x: Array.
        batch_axis: Where the batch is.
        axis: The other axis, counted without the batch axis.
        groups: How many groups the other axis consists of.
    """
    if groups == 1:
        return _merge(_move(x, batch_axis, axis), axis)
    front = _split(_move(x, batch_axis, 0), axis + 1, groups)
    return _merge(_merge(_move(front, 0, axis + 1), axis + 1), axis)


def _unfold(x: Value, size: int, axis: int, groups: int = 1) -> tuple[Value, int]:
    """Undoes `_fold`; returns the array and where the batch axis is."""
    if groups == 1:
        return _split(x, axis, size), axis
    split = _split(_split(x, axis, groups), axis + 1, size)
    return _merge(_move(split, axis + 1, 0), axis + 1), 0


# Batching --------------------------------------------------------------------------------------


def batch(
    operands: Sequence[Value], axes: Sequence[int | None], **params: Param
) -> tuple[Results, ResultAxes]:
    """Batches the convolution: the new axis joins the batch, the output features, or the groups.

    A batch of both operands multiplies the number of groups.
    """
    (lhs, rhs), (lhs_axis, rhs_axis) = operands, axes
    lhs_spec, rhs_spec, out_spec = params["dimension_numbers"]
    feature_groups, batch_groups = params["feature_group_count"], params["batch_group_count"]
    size = batch_size(operands, axes)
    if size == 0:
        return _empty(operands, axes, **params), 0
    if rhs_axis is None:
        assert lhs_axis is not None
        merged = _fold(lhs, lhs_axis, lhs_spec[0], batch_groups)
        return _unfold(_bind(merged, rhs, **params), size, out_spec[0])
    if lhs_axis is None:
        groups = feature_groups * batch_groups
        merged = _fold(rhs, rhs_axis, rhs_spec[0], groups)
        return _unfold(_bind(lhs, merged, **params), size, out_spec[1], groups)
    kernel = _fold(rhs, rhs_axis, rhs_spec[0])
    if batch_groups > 1:
        operand = _fold(lhs, lhs_axis, lhs_spec[0])
        params["batch_group_count"] = size * batch_groups
    else:
        operand = _fold(lhs, lhs_axis, lhs_spec[1])
        params["feature_group_count"] = size * feature_groups
    return _unfold(_bind(operand, kernel, **params), size, out_spec[1])


def _empty(
    operands: Sequence[Value], axes: Sequence[int | None], *, precision: PrecisionLike,
    preferred_element_type: DTypeLike, **geometry: object,
) -> Value:  # fmt: skip
    """Returns the result for an empty batch, because a convolution needs at least one group."""
    shapes = (
        x.shape if axis is None else x.shape[:axis] + x.shape[axis + 1 :]
        for x, axis in zip(operands, axes, strict=True)
    )
    shape = (0, *result_shape(*shapes, **geometry))
    return full(shape, 0, preferred_element_type or operands[0].dtype)
