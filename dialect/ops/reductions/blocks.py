"""Reductions of NumPy arrays in blocks; the evaluator uses them where rounding adds up.

A sum of `n` numbers one after the other is off by up to `n` roundings. A sum of blocks, and of
their results in turn, is off by the size of a block for each level, and there are `log n` levels
(Higham, "The accuracy of floating point summation", SIAM J. Sci. Comput. 14, 1993). NumPy does so
only in sums along the last axis.

Elsewhere: kernels in blocks (`dialect/builders/kernels/blocks.py`).
"""

from __future__ import annotations

import math

import numpy as np

# Number of elements that are combined one after the other.
_BLOCK = 32
# A line of neighbours stays in the first-level cache; it is combined with the next line.
_LINE = 1024
# The rounding error of so many elements one after the other is small.
_FEW = 128
# A running sum calls NumPy once for all blocks. Each block costs as much as a few elements.
_RUNNING_BLOCK = 128
# Number of elements that are held in double precision.
_WIDE = 1 << 15


def reduce_in_blocks(
    ufunc: np.ufunc, x: np.ndarray, axes: tuple[int, ...], *, keepdims: bool = False
) -> np.ndarray:
    """Returns `ufunc.reduce(x, axes)`, rounded as often as a logarithm of the extents.

    Args:
        ufunc: `np.add`, or `np.multiply`, which multiplies in double precision.
        x: An array of any shape and dtype.
        axes: Different axes, counted from the first one.
        keepdims: Whether the axes stay, with an extent of 1.
    """
    if x.size <= _FEW or _is_exact(ufunc, x, axes):
        return ufunc.reduce(x, axis=axes, dtype=x.dtype, keepdims=keepdims)
    order = sorted(range(x.ndim), key=lambda axis: -abs(x.strides[axis]))
    found = _reduce_in_order(ufunc, x.transpose(order), {order.index(axis) for axis in axes})
    kept = [axis for axis in order if axis not in axes]
    if kept != sorted(kept):
        found = found.transpose(np.argsort(kept))
    found = found.astype(x.dtype, copy=False)
    return np.expand_dims(found, axes) if keepdims else found


def _is_exact(ufunc: np.ufunc, x: np.ndarray, axes: tuple[int, ...]) -> bool:
    """Tells whether the rounding error of NumPy's own reduction is small."""
    if x.dtype.kind not in "fc" or math.prod([x.shape[axis] for axis in axes]) <= _FEW:
        return True
    is_last = sorted(axes) == list(range(x.ndim - len(axes), x.ndim))
    return ufunc is np.add and is_last and x.flags.c_contiguous


def _reduce_in_order(ufunc: np.ufunc, x: np.ndarray, axes: set[int]) -> np.ndarray:
    """Reduces axes of an array that lies in memory in the order of its axes."""
    if x.flags.c_contiguous:
        shape: list[int] = []
        groups: set[int] = set()
        for axis, extent in enumerate(x.shape):
            if axis in axes and axis - 1 in axes:
                shape[-1] *= extent
            else:
                groups |= {len(shape)} if axis in axes else set()
                shape.append(extent)
        x, axes = x.reshape(shape), groups
    for axis in sorted(axes, reverse=True):
        x = _reduce_axis(ufunc, x, axis)
    return x


def _reduce_axis(ufunc: np.ufunc, x: np.ndarray, axis: int) -> np.ndarray:
    rows = x.shape[axis]
    is_pairwise = ufunc is np.add and axis == x.ndim - 1
    if is_pairwise or rows <= _BLOCK:
        return ufunc.reduce(x, axis=axis, dtype=_dtype_within(ufunc, x.dtype))
    before, after = x.shape[:axis], x.shape[axis + 1 :]
    count = math.prod(after)
    width = max(1, min(_LINE // max(count, 1), rows // _BLOCK)) if x.flags.c_contiguous else 1
    whole = rows - rows % (width * _BLOCK)
    line = (width * count,) if width > 1 else after
    lines = x[_at(axis, slice(whole))].reshape(*before, -1, _BLOCK, *line)
    blocks = ufunc.reduce(lines, axis=axis + 1, dtype=_dtype_within(ufunc, x.dtype))
    found = _reduce_axis(ufunc, blocks.reshape(*before, whole // _BLOCK, *after), axis)
    if whole == rows:
        return found
    return ufunc(found, _reduce_axis(ufunc, x[_at(axis, slice(whole, None))], axis))


def _dtype_within(ufunc: np.ufunc, dtype: np.dtype) -> np.dtype:
    """Returns the dtype of the results of blocks.

    Products near 1 are rounded in one direction: a million in blocks are off by 1 % in float32.
    """
    return np.result_type(dtype, np.float64) if ufunc is np.multiply else dtype


def accumulate_in_blocks(ufunc: np.ufunc, x: np.ndarray, axis: int) -> np.ndarray:
    """Returns `ufunc.accumulate(x, axis)`, rounded as often as a logarithm of the extent.

    Each block is accumulated separately. Then the last elements of the blocks are accumulated, and
    combined with all elements of the next block.

    Args:
        ufunc: An associative operation; others than `np.add` compute in double precision.
        x: An array with an axis.
        axis: Counted from the first one.
    """
    rows, dtype = x.shape[axis], x.dtype
    if rows <= 2 * _RUNNING_BLOCK or dtype.kind not in "fc" or not x.size:
        return ufunc.accumulate(x, axis=axis, dtype=dtype)
    if ufunc is not np.add and dtype.char in "fF":
        return _accumulate_wide(ufunc, x, axis)
    result = np.empty(x.shape, dtype)
    whole = rows - rows % _RUNNING_BLOCK
    blocked = (*x.shape[:axis], whole // _RUNNING_BLOCK, _RUNNING_BLOCK, *x.shape[axis + 1 :])
    blocks = result[_at(axis, slice(whole))].reshape(blocked)  # a view: one axis becomes two
    ufunc.accumulate(x[_at(axis, slice(whole))].reshape(blocked), axis=axis + 1, out=blocks)
    ends = accumulate_in_blocks(ufunc, blocks[_at(axis, slice(None), -1)], axis)
    later = blocks[_at(axis, slice(1, None))]
    before = np.expand_dims(ends[_at(axis, slice(-1))], axis + 1)
    ufunc(before, later, out=later)
    if whole < rows:
        rest = result[_at(axis, slice(whole, None))]
        ufunc.accumulate(x[_at(axis, slice(whole, None))], axis=axis, out=rest)
        ufunc(ends[_at(axis, slice(-1, None))], rest, out=rest)
    return result


def _accumulate_wide(ufunc: np.ufunc, x: np.ndarray, axis: int) -> np.ndarray:
    """Accumulates in double precision, some elements at a time."""
    result = np.empty(x.shape, x.dtype)
    rows = x.shape[axis]
    count = max(1, _WIDE * rows // x.size)
    before, wide = None, np.result_type(x.dtype, np.float64)
    for start in range(0, rows, count):
        piece = _at(axis, slice(start, start + count))
        found = ufunc.accumulate(x[piece], axis=axis, dtype=wide)
        if before is not None:
            ufunc(found, before, out=found)
        result[piece] = found
        before = found[_at(axis, slice(-1, None))]
    return result


def _at(axis: int, *keys: slice | int) -> tuple[slice | int, ...]:
    """Returns the index that cuts an array along some neighbouring axes."""
    return (slice(None),) * axis + keys
