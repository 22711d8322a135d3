"""Convolutions in NumPy: windows as a strided view, then matrix products.

Elsewhere: types and parameters (`types.py`), the other rules (`conv_general_dilated.py`).
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Param, PrecisionLike
from axir.dialect.program.op_table import OPS

from .types import ConvDimensionNumbers, Padding, computed_dtype, dilate, result_dtype, result_shape

# Windows are copied in pieces of this many elements, because they overlap and would take many times
# the memory of their array.
_PIECE = 1 << 20
# Sums of so many products of two 16-bit integers are exact in float64.
_EXACT_TERMS = 1 << 21


def evaluate(
    lhs: np.ndarray,
    rhs: np.ndarray,
    *,
    precision: PrecisionLike,
    preferred_element_type: np.dtype | None,
    **geometry: Param,
) -> np.ndarray:
    """Evaluates `conv_general_dilated`."""
    dtype = lhs.dtype
    if dtype.char in "fdFD" and (preferred_element_type or dtype) == dtype:
        return _convolve(lhs, rhs, **geometry)
    out = result_dtype(dtype, rhs.dtype, preferred_element_type)
    computed = computed_dtype(dtype, out)
    # Sums of products of narrow integers are exact in float64, where matrix products are fast.
    is_narrow = dtypes.kind(dtype) in "iu" and dtype.itemsize <= 2
    is_exact = is_narrow and computed.kind in "iu" and min(lhs.size, rhs.size) < _EXACT_TERMS
    carrier = dtypes.float64 if is_exact else computed
    result = _convolve(lhs.astype(carrier, copy=False), rhs.astype(carrier, copy=False), **geometry)
    return (result.astype(np.int64) if is_exact else result).astype(out, copy=False)


class _Plan(NamedTuple):
    """Values derived from the shapes and parameters."""

    shape: tuple[int, ...]
    lhs_axes: tuple[int, ...]
    rhs_axes: tuple[int, ...]
    result_axes: tuple[int, ...]
    padding: tuple[tuple[int, int, int], ...] | None
    lhs_split: tuple[int, ...]
    moves_groups: bool
    rhs_split: tuple[int, ...]
    positions: tuple[int, ...]


@functools.lru_cache(maxsize=4096)
def _plan(
    lhs: tuple[int, ...], rhs: tuple[int, ...], window_strides: tuple[int, ...], padding: Padding,
    lhs_dilation: tuple[int, ...], rhs_dilation: tuple[int, ...], numbers: ConvDimensionNumbers,
    feature_groups: int, batch_groups: int,
) -> _Plan:  # fmt: skip
    shape = result_shape(
        lhs, rhs, window_strides=window_strides, padding=padding, lhs_dilation=lhs_dilation,
        rhs_dilation=rhs_dilation, dimension_numbers=numbers, feature_group_count=feature_groups,
        batch_group_count=batch_groups,
    )  # fmt: skip
    lhs_spec, rhs_spec, out_spec = numbers
    batch, feature, *spatial = (lhs[axis] for axis in lhs_spec)
    out_feature, in_feature, *window = (rhs[axis] for axis in rhs_spec)
    groups = feature_groups * batch_groups
    config = None
    if any(low or high for low, high in padding) or any(d > 1 for d in lhs_dilation):
        inner = [(*pads, d - 1) for pads, d in zip(padding, lhs_dilation, strict=True)]
        config = ((0, 0, 0), (0, 0, 0), *inner)
        spatial = [
            dilate(size, d) + sum(pads)
            for size, d, pads in zip(spatial, lhs_dilation, padding, strict=True)
        ]
    if batch_groups > 1:
        lhs_split = (groups, batch // groups, feature, *spatial)
    else:
        lhs_split = (batch, groups, feature // groups, *spatial)
    return _Plan(
        shape,
        lhs_spec,
        rhs_spec,
        tuple(out_spec.index(axis) for axis in range(len(lhs))),
        config,
        lhs_split,
        batch_groups == 1,
        (groups, out_feature // groups, in_feature, *window),
        tuple(shape[axis] for axis in out_spec[2:]),
    )


def _convolve(
    lhs: np.ndarray, rhs: np.ndarray, *, window_strides: tuple[int, ...], padding: Padding,
    lhs_dilation: tuple[int, ...], rhs_dilation: tuple[int, ...],
    dimension_numbers: ConvDimensionNumbers, feature_group_count: int, batch_group_count: int,
) -> np.ndarray:  # fmt: skip
    """Convolves operands of the dtype to compute in.

    1. Pad and dilate lhs, and split the grouped dimensions: lhs (group, batch, feature, *spatial),
       rhs (group, output feature, feature, *window).
    2. View lhs as windows (group, batch, *position, feature, *window), without a copy.
    3. Copy the windows to a matrix for each group, and multiply it with rhs.
    4. Order the result's dimensions.
    """
    plan = _plan(
        lhs.shape, rhs.shape, window_strides, padding, lhs_dilation, rhs_dilation,
        dimension_numbers, feature_group_count, batch_group_count,
    )  # fmt: skip
    if 0 in plan.shape or lhs.size == 0 or rhs.size == 0:
        return np.zeros(plan.shape, lhs.dtype)
    x = lhs.transpose(plan.lhs_axes)
    if plan.padding is not None:
        x = _padded(x, plan.padding)
    x = x.reshape(plan.lhs_split)
    if plan.moves_groups:
        x = x.swapaxes(0, 1)
    kernel = rhs.transpose(plan.rhs_axes).reshape(plan.rhs_split)
    window = kernel.shape[3:]
    is_vector = x.size == x.shape[-1] and kernel.size == kernel.shape[-1]
    if is_vector and window_strides == rhs_dilation == (1,):
        # Copying its windows would cost as much as the products.
        vectors = x.reshape(-1), kernel.reshape(-1)
        result = np.correlate(vectors[0], np.conj(vectors[1]), "valid")
        return result.reshape(plan.shape)
    steps = x.strides[3:]
    windows = as_strided(
        x,
        (*x.shape[:2], *plan.positions, x.shape[2], *window),
        (
            *x.strides[:2],
            *[s * step for s, step in zip(window_strides, steps, strict=True)],
            x.strides[2],
            *[d * step for d, step in zip(rhs_dilation, steps, strict=True)],
        ),
        writeable=False,
    )
    if x.shape[0] > 1 and x.shape[2] == 1:
        result = _multiply_taps(windows, kernel)
    else:
        result = _multiply(windows, kernel)
    # (group, output feature, batch, *position) to (batch, group and output feature, *position)
    result = result.transpose(2, 0, 1, *range(3, result.ndim))
    merged = result.reshape(result.shape[0], -1, *plan.positions)
    return merged.transpose(plan.result_axes)


def _padded(x: np.ndarray, config: tuple[tuple[int, int, int], ...]) -> np.ndarray:
    """Pads with zeros, so that dimensions keep their order in memory."""
    strides = x.strides
    order = sorted(range(x.ndim), key=lambda axis: -abs(strides[axis]))
    rule = OPS["pad"].evaluate
    assert rule is not None
    zero = np.zeros((), x.dtype)
    padded = rule(x.transpose(order), zero, padding_config=tuple([config[a] for a in order]))
    return padded.transpose([order.index(axis) for axis in range(x.ndim)])


def _multiply(windows: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    """Sums products of windows (group, batch, *position, feature, *window) with the kernel.

    Copying the windows takes most of the time. So the free dimensions and the summed dimensions
    keep their order in memory. Those with the fastest dimension among them come last.

    Returns:
        An array (group, output feature, batch, *position).
    """
    first = 2 + kernel.ndim - 3  # the axis of the features
    strides, sizes = windows.strides, windows.shape
    free = sorted(range(1, first), key=lambda axis: -strides[axis])
    summed = sorted(range(first, windows.ndim), key=lambda axis: -strides[axis])
    fastest = min(
        range(1, windows.ndim),
        key=lambda axis: (sizes[axis] == 1, strides[axis], -sizes[axis]),
    )
    is_free_last = fastest < first
    weights = kernel.transpose(0, 1, *[axis - first + 2 for axis in summed])
    weights = weights.reshape(*kernel.shape[:2], -1)
    if is_free_last:
        product = _weights_times_windows(windows.transpose(0, *summed, *free), weights, len(free))
        return product.transpose(0, 1, *[2 + free.index(axis) for axis in range(1, first)])
    product = _windows_times_weights(windows.transpose(0, *free, *summed), weights, len(free))
    return product.transpose(0, first, *[1 + free.index(axis) for axis in range(1, first)])


def _weights_times_windows(windows: np.ndarray, weights: np.ndarray, ndim: int) -> np.ndarray:
    """Multiplies weights (group, output, sum) with windows (group, *summed, *free).

    `ndim` is the number of the free axes.

    Returns:
        An array (group, output, *free).
    """
    groups, outputs, count = weights.shape
    free = windows.shape[windows.ndim - ndim :]
    if windows.size <= _PIECE:
        return np.matmul(weights, windows.reshape(groups, count, -1)).reshape(
            groups, outputs, *free
        )
    result = np.empty((groups, outputs, *free), windows.dtype)
    for piece in _pieces(free, groups * count):
        columns = _at(windows, windows.ndim - ndim, piece)
        product = np.matmul(weights, columns.reshape(groups, count, -1))
        target = _at(result, 2, piece)
        target[...] = product.reshape(target.shape)
    return result


def _windows_times_weights(windows: np.ndarray, weights: np.ndarray, ndim: int) -> np.ndarray:
    """Multiplies windows (group, *free, *summed) with weights (group, output, sum).

    `ndim` is the number of the free axes.

    Returns:
        An array (group, *free, output).
    """
    groups, outputs, count = weights.shape
    free = windows.shape[1 : 1 + ndim]
    weights = weights.swapaxes(1, 2)
    if windows.size <= _PIECE:
        return np.matmul(windows.reshape(groups, -1, count), weights).reshape(
            groups, *free, outputs
        )
    result = np.empty((groups, *free, outputs), windows.dtype)
    for piece in _pieces(free, groups * count):
        rows = _at(windows, 1, piece)
        product = np.matmul(rows.reshape(groups, -1, count), weights)
        target = _at(result, 1, piece)
        target[...] = product.reshape(target.shape)
    return result


def _at(array: np.ndarray, axis: int, index: tuple) -> np.ndarray:
    """Returns the part selected by an index of consecutive axes that begin at `axis`."""
    return array[(slice(None),) * axis + index]


def _pieces(shape: tuple[int, ...], weight: int) -> Iterator[tuple[slice, ...]]:
    """Divides an array into pieces of about `_PIECE`; an element counts as `weight`.

    Divides the first axes, which are far apart in memory.
    """
    remaining = math.prod(shape) * weight
    steps = []
    for size in shape:
        step = min(size, max(1, size * _PIECE // remaining))
        steps.append(range(0, size, step))
        remaining = remaining * step // size
    for starts in itertools.product(*steps):
        yield tuple(
            slice(start, start + step.step) for start, step in zip(starts, steps, strict=True)
        )


def _multiply_taps(windows: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    """Multiplies as `_multiply` does, for groups of a single feature without matrix products.

    Sums the array at each place of the window, multiplied by the kernel's element.
    """
    outputs, window = kernel.shape[1], kernel.shape[3:]
    first = 2 + len(window)
    # The result has the array's order in memory, with the output features last.
    order = sorted(range(first), key=lambda axis: -windows.strides[axis])
    total: np.ndarray | None = None
    product: np.ndarray | None = None
    for place in np.ndindex(*window):
        part = _at(windows, first, (0, *place)).transpose(order)[..., None]
        factor = _at(kernel, 2, (0, *place))
        group = order.index(0)
        factor = factor.reshape(*[1] * group, -1, *[1] * (first - 1 - group), outputs)
        if total is None or product is None:
            total = part * factor
            product = np.empty_like(total)
        else:
            np.multiply(part, factor, out=product)
            np.add(total, product, out=total)
    assert total is not None  # a window has an element
    return total.transpose(order.index(0), first, *[order.index(axis) for axis in range(1, first)])
