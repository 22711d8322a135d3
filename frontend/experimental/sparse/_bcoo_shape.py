"""Operations on `BCOO` arrays that move elements: transposes, slices, reshapes, sums."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import index

import numpy as np

import axir.numpy as jnp
from axir import lax
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import OutOfBoundsError, ParameterError
from axir.dialect.program.rules import Value
from axir.numpy._arguments.checks import canonical_axes

from ._base import SparseLayoutError
from ._bcoo import (
    BCOO,
    Parts,
    full_batches,
    is_inside,
    over_batches,
    places_of,
    sparse_sizes,
    with_trailing,
)
from ._bcoo_layout import bcoo_update_layout


def _made(data: Value, indices: Value, shape: Sequence[int], like: BCOO | None = None) -> BCOO:
    """Makes an array; the flags of its indices (sorted, unique) are copied from another array."""
    return BCOO((data, indices), shape=shape, unique_indices=like.unique_indices if like else False)


def _masked(parts: Parts, sizes: Sequence[int]) -> Parts:
    """Returns elements that are 0 where their index is out of range, at an index in range."""
    is_valid = is_inside(parts.indices, sizes)
    return Parts(
        jnp.where(with_trailing(is_valid, parts.data.ndim), parts.data, 0),
        jnp.where(is_valid[..., None], parts.indices, 0),
    )


def bcoo_transpose(mat: BCOO, *, permutation: Sequence[int]) -> BCOO:
    """Returns an array with its dimensions in another order.

    Batch, sparse and dense dimensions stay such if each kind is permuted in itself; else all become
    sparse ones.

    Raises:
        ParameterError: if `permutation` is no permutation of the dimensions.
    """
    order = tuple(index(axis) for axis in permutation)
    if sorted(order) != list(range(mat.ndim)):
        raise ParameterError(
            f"bcoo_transpose: {order} is no permutation of the dimensions of {mat.shape}."
        )
    first, last = mat.n_batch, mat.n_batch + mat.n_sparse
    batch, sparse, dense = order[:first], order[first:last], order[last:]
    kinds = ((batch, 0, first), (sparse, first, last), (dense, last, mat.ndim))
    if not all(low <= axis < high for axes, low, high in kinds for axis in axes):
        mat = bcoo_update_layout(mat, n_batch=0, n_dense=0)
        return bcoo_transpose(mat, permutation=order)
    behind = tuple(first + 1 + axis - last for axis in dense)
    data = mat.data.transpose(*batch, first, *behind)
    indices = mat.indices.transpose(*batch, first, first + 1)
    columns = np.array([axis - first for axis in sparse], np.int32)
    shape = [mat.shape[axis] for axis in order]
    return _made(data, jnp.take(indices, columns, axis=-1), shape, mat)


def bcoo_reduce_sum(mat: BCOO, *, axes: Sequence[int]) -> BCOO:
    """Returns the sums along axes, as a sparse array, in which indices may be equal.

    Raises:
        AxisError: for axes that the array does not have, or that are named twice.
    """
    chosen = canonical_axes("bcoo_reduce_sum", list(axes), mat.ndim)
    kept_batch = min([mat.n_batch, *chosen])
    mat = bcoo_update_layout(mat, n_batch=kept_batch)
    first, sizes = mat.n_batch, sparse_sizes(mat)
    columns = np.array([i for i in range(mat.n_sparse) if first + i not in chosen], np.int32)
    behind = tuple(a - first - mat.n_sparse + 1 for a in chosen if a >= first + mat.n_sparse)

    def summed(parts: Parts) -> Parts:
        data, indices = _masked(parts, sizes)
        return Parts(data.sum(behind, dtype=data.dtype), jnp.take(indices, columns, axis=1))

    data, indices = over_batches(mat, summed)
    shape = [size for axis, size in enumerate(mat.shape) if axis not in chosen]
    return _made(data, indices, shape)


def bcoo_slice(
    mat: BCOO,
    *,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> BCOO:
    """Returns part of an array, as `lax.slice`; elements outside are out of range.

    Raises:
        SparseLayoutError: for other numbers of indices than dimensions, or a part that is not
            inside.
    """
    steps = [1] * mat.ndim if strides is None else list(strides)
    bounds = list(zip(start_indices, limit_indices, steps, strict=False))
    counts = {len(start_indices), len(limit_indices), len(steps)}
    is_part = all(
        0 <= low <= high <= size and step > 0
        for (low, high, step), size in zip(bounds, mat.shape, strict=False)
    )
    if counts != {mat.ndim} or not is_part:
        raise SparseLayoutError(
            f"bcoo_slice: {tuple(start_indices)} to {tuple(limit_indices)} in steps {steps} is no "
            f"part of an array of shape {mat.shape}."
        )
    first, last = mat.n_batch, mat.n_batch + mat.n_sparse
    cuts = [slice(*bound) for bound in bounds]
    shape = [len(range(*bound)) for bound in bounds]
    data, indices = full_batches(mat)
    kept = (*cuts[:first], slice(None), *cuts[last:])
    data = data[kept]
    indices = indices[tuple(cuts[:first])]
    if not mat.n_sparse:
        return _made(data, indices, shape, mat)
    kind = indices.dtype
    lows, highs, gaps = (
        jnp.array(column, kind) for column in zip(*bounds[first:last], strict=True)
    )
    is_kept = ((indices >= lows) & (indices < highs) & ((indices - lows) % gaps == 0)).all(-1)
    outside = jnp.array(shape[first:last], kind)
    indices = jnp.where(is_kept[..., None], (indices - lows) // gaps, outside)
    return _made(data, indices, shape, mat)


def bcoo_dynamic_slice(
    mat: BCOO, start_indices: Sequence[ArrayLike], slice_sizes: Sequence[int]
) -> BCOO:
    """Returns part of an array that begins at computed indices, as `lax.dynamic_slice`.

    Raises:
        SparseLayoutError: for other numbers of indices than dimensions, or a part that is too
            large.
    """
    sizes = tuple(index(size) for size in slice_sizes)
    fits = len(sizes) == len(start_indices) == mat.ndim
    if not fits or any(part > size for part, size in zip(sizes, mat.shape, strict=True)):
        raise SparseLayoutError(
            f"bcoo_dynamic_slice: {len(start_indices)} indices and the sizes {sizes} do not fit an "
            f"array of shape {mat.shape}."
        )
    kind = mat.indices.dtype
    starts = [
        jnp.clip(jnp.asarray(start).astype(kind), 0, size - part)
        for start, size, part in zip(start_indices, mat.shape, sizes, strict=True)
    ]
    first, last = mat.n_batch, mat.n_batch + mat.n_sparse
    zero = jnp.zeros((), kind)
    data, indices = full_batches(mat)
    data = lax.dynamic_slice(
        data, [*starts[:first], zero, *starts[last:]], (*sizes[:first], mat.nse, *sizes[last:])
    )
    indices = lax.dynamic_slice(
        indices, [*starts[:first], zero, zero], (*sizes[:first], *indices.shape[first:])
    )
    if mat.n_sparse:
        lows = jnp.stack(starts[first:last])
        limits = jnp.array(sizes[first:last], kind)
        moved = indices - lows
        is_kept = is_inside(moved, sizes[first:last]) & is_inside(indices, sparse_sizes(mat))
        indices = jnp.where(is_kept[..., None], moved, limits)
    return _made(data, indices, sizes, mat)


def bcoo_rev(operand: BCOO, dimensions: Sequence[int]) -> BCOO:
    """Returns an array with dimensions in reverse order, as `lax.rev`."""
    chosen = canonical_axes("bcoo_rev", list(dimensions), operand.ndim)
    first, last = operand.n_batch, operand.n_batch + operand.n_sparse
    data, indices = full_batches(operand)
    batch = [axis for axis in chosen if axis < first]
    data = jnp.flip(data, [*batch, *(a - last + first + 1 for a in chosen if a >= last)])
    indices = jnp.flip(indices, batch)
    sizes = sparse_sizes(operand)
    is_turned = np.array([first + i in chosen for i in range(len(sizes))], bool)
    limits = jnp.array(sizes, indices.dtype)
    turned = jnp.where(is_turned, limits - 1 - indices, indices)
    indices = jnp.where(is_inside(indices, sizes)[..., None], turned, limits)
    return _made(data, indices, operand.shape, operand)


def bcoo_concatenate(operands: Sequence[BCOO], *, dimension: int) -> BCOO:
    """Returns arrays one behind the other along a dimension.

    Raises:
        SparseLayoutError: for no arrays, or shapes that differ elsewhere.
        AxisError: for a dimension that they do not have.
    """
    mats = list(operands)
    if not mats:
        raise SparseLayoutError("bcoo_concatenate: there are no arrays.")
    (axis,) = canonical_axes("bcoo_concatenate", dimension, mats[0].ndim)
    rests = {(*mat.shape[:axis], *mat.shape[axis + 1 :]) for mat in mats}
    if len(rests) > 1 or len({mat.ndim for mat in mats}) > 1:
        raise SparseLayoutError(
            f"bcoo_concatenate: arrays of shapes {', '.join(str(mat.shape) for mat in mats)} do "
            f"not fit along dimension {axis}."
        )
    layouts = {(mat.n_batch, mat.n_dense) for mat in mats}
    first, last = mats[0].n_batch, mats[0].n_batch + mats[0].n_sparse
    if len(layouts) > 1 or not first <= axis < last:
        mats = [bcoo_update_layout(mat, n_batch=0, n_dense=0) for mat in mats]
        first = 0
    total = sum(mat.shape[axis] for mat in mats)
    shape = (*mats[0].shape[:axis], total, *mats[0].shape[axis + 1 :])
    datas, places, offset = [], [], 0
    for mat in mats:
        data, indices = full_batches(mat)
        limits = jnp.array(shape[first : first + mat.n_sparse], indices.dtype)
        moved = indices.at[..., axis - first].add(offset)
        places.append(jnp.where(is_inside(indices, sparse_sizes(mat))[..., None], moved, limits))
        datas.append(data)
        offset += mat.shape[axis]
    return _made(jnp.concatenate(datas, first), jnp.concatenate(places, first), shape)


def bcoo_reshape(
    mat: BCOO,
    *,
    new_sizes: Sequence[int],
    dimensions: Sequence[int] | None = None,
    sharding: None = None,
) -> BCOO:
    """Returns an array in another shape, as `lax.reshape`.

    Batch and dense dimensions stay such if they keep their extents.

    Raises:
        SparseLayoutError: for a shape of another size.
    """
    if dimensions is not None:
        mat = bcoo_transpose(mat, permutation=dimensions)
    sizes = tuple(index(size) for size in new_sizes)
    if math.prod(sizes) != mat.size:
        raise SparseLayoutError(
            f"bcoo_reshape: an array of shape {mat.shape} cannot have the shape {sizes}."
        )
    first, last = mat.n_batch, mat.n_batch + mat.n_sparse
    stop = len(sizes) - mat.n_dense
    if first > stop or sizes[:first] != mat.shape[:first] or sizes[stop:] != mat.shape[last:]:
        mat = bcoo_update_layout(mat, n_batch=0, n_dense=0)
        first, stop = 0, len(sizes)
    old, new = sparse_sizes(mat), sizes[first:stop]

    def moved(parts: Parts) -> Parts:
        indices = parts.indices
        is_valid = is_inside(indices, old)
        number = jnp.zeros(indices.shape[0], indices.dtype)
        for place, size in zip(places_of(indices), old, strict=True):
            number = number * size + place
        columns = []
        for size in reversed(new):
            columns.append(number % max(size, 1))
            number = number // max(size, 1)
        found = jnp.stack(columns[::-1], axis=-1) if new else indices[:, :0]
        data = parts.data
        if not new:  # no index is out of range
            data = jnp.where(with_trailing(is_valid, data.ndim), data, 0)
        return Parts(data, jnp.where(is_valid[:, None], found, jnp.array(new, indices.dtype)))

    data, indices = over_batches(mat, moved)
    return _made(data, indices, sizes, mat)


def bcoo_squeeze(arr: BCOO, *, dimensions: Sequence[int]) -> BCOO:
    """Returns an array without some of its dimensions of extent 1, as `lax.squeeze`.

    Raises:
        SparseLayoutError: if one of them is of another extent.
    """
    chosen = canonical_axes("bcoo_squeeze", list(dimensions), arr.ndim)
    if any(arr.shape[axis] != 1 for axis in chosen):
        raise SparseLayoutError(
            f"bcoo_squeeze: the dimensions {chosen} of {arr.shape} are not all of extent 1."
        )
    first, last = arr.n_batch, arr.n_batch + arr.n_sparse
    data, indices = full_batches(arr)
    if arr.n_sparse and all(axis in chosen for axis in range(first, last)):
        data, _ = _masked(Parts(data, indices), sparse_sizes(arr))
    batch = tuple(axis for axis in chosen if axis < first)
    behind = tuple(axis - arr.n_sparse + 1 for axis in chosen if axis >= last)
    columns = np.array([i for i in range(arr.n_sparse) if first + i not in chosen], np.int32)
    is_valid = is_inside(indices, sparse_sizes(arr))[..., None]
    kept = jnp.take(indices, columns, axis=-1)
    sizes = [arr.shape[first + i] for i in columns]
    kept = jnp.where(is_valid, kept, jnp.array(sizes, kept.dtype))
    shape = [size for axis, size in enumerate(arr.shape) if axis not in chosen]
    return _made(jnp.squeeze(data, (*batch, *behind)), jnp.squeeze(kept, batch), shape, arr)


def bcoo_broadcast_in_dim(
    mat: BCOO,
    *,
    shape: Sequence[int],
    broadcast_dimensions: Sequence[int],
    sharding: None = None,
) -> BCOO:
    """Returns an array repeated along dimensions, as `lax.broadcast_in_dim`.

    New dimensions in front become batches that share all elements; elements are repeated along
    others.

    Raises:
        SparseLayoutError: if the shape does not fit.
    """
    sizes = tuple(index(size) for size in shape)
    places = tuple(index(axis) for axis in broadcast_dimensions)
    fits = len(places) == mat.ndim and list(places) == sorted(set(places))
    fits = fits and all(0 <= axis < len(sizes) for axis in places)
    if not fits or any(
        size not in (1, sizes[axis]) for size, axis in zip(mat.shape, places, strict=True)
    ):
        raise SparseLayoutError(
            f"bcoo_broadcast_in_dim: an array of shape {mat.shape} does not broadcast to {sizes} "
            f"along {places}."
        )
    front = min(places, default=len(sizes))
    inner, inner_places = sizes[front:], [axis - front for axis in places]
    if list(inner) != list(mat.shape):
        mat = _repeated(bcoo_update_layout(mat, n_batch=0, n_dense=0), inner, inner_places)
    ones = (1,) * front
    return BCOO(
        (mat.data.reshape(*ones, *mat.data.shape), mat.indices.reshape(*ones, *mat.indices.shape)),
        shape=sizes,
        unique_indices=mat.unique_indices,
    )


def _repeated(mat: BCOO, shape: Sequence[int], places: list[int]) -> BCOO:
    """Repeats the elements of an array of sparse dimensions along those that are new or grow."""
    grown = [
        axis for axis in range(len(shape))
        if axis not in places or mat.shape[places.index(axis)] != shape[axis]
    ]  # fmt: skip
    kind = mat.indices.dtype
    grid = jnp.meshgrid(*[jnp.arange(shape[axis], dtype=kind) for axis in grown], indexing="ij")
    copies = math.prod(shape[axis] for axis in grown)
    columns = []
    is_valid = is_inside(mat.indices, mat.shape)
    for axis in range(len(shape)):
        if axis in grown:
            column = jnp.tile(grid[grown.index(axis)].ravel(), mat.nse)
        else:
            column = jnp.repeat(mat.indices[:, places.index(axis)], copies)
        columns.append(column)
    indices = jnp.stack(columns, axis=-1)
    valid = jnp.repeat(is_valid, copies)[:, None]
    indices = jnp.where(valid, indices, jnp.array(shape, kind))
    return _made(jnp.repeat(mat.data, copies), indices, shape, mat)


def getitem(mat: BCOO, key: object) -> BCOO:
    """Returns part of an array by integers, slices, None and `...`.

    Raises:
        ParameterError: for other indices, or too many.
        OutOfBoundsError: for an integer out of range.
    """
    entries = _entries(mat, key if isinstance(key, tuple) else (key,))
    used = [entry for entry in entries if entry is not None]
    spans = [_span(entry, axis, mat.shape[axis]) for axis, entry in enumerate(used)]
    flipped = [axis for axis, span in enumerate(spans) if span.step < 0]
    ascending = [span[::-1] if span.step < 0 else span for span in spans]
    part = bcoo_slice(
        mat,
        start_indices=[span.start if span else 0 for span in ascending],
        limit_indices=[span[-1] + 1 if span else 0 for span in ascending],
        strides=[span.step for span in ascending],
    )
    part = bcoo_rev(part, flipped) if flipped else part
    dropped = [axis for axis, entry in enumerate(used) if not isinstance(entry, slice)]
    part = bcoo_squeeze(part, dimensions=dropped) if dropped else part
    if len(used) == len(entries):
        return part
    shape = list(part.shape)
    kept = [entry for entry in entries if entry is None or isinstance(entry, slice)]
    for position, entry in enumerate(kept):
        if entry is None:
            shape.insert(position, 1)
    return bcoo_reshape(part, new_sizes=shape)


def _entries(mat: BCOO, key: tuple[object, ...]) -> tuple[UserObject, ...]:
    """Returns an index with an entry for each dimension, and None for each new one."""
    for entry in key:
        is_number = isinstance(entry, (int, np.integer)) and not isinstance(entry, bool)
        if not (is_number or entry is None or entry is Ellipsis or isinstance(entry, slice)):
            raise ParameterError(
                f"A sparse array is indexed by integers, slices, None and ..., not by {entry!r}.",
                "Use bcoo_dynamic_slice for computed indices, or index the array todense().",
            )
    used = sum(entry is not None and entry is not Ellipsis for entry in key)
    gaps = sum(entry is Ellipsis for entry in key)
    if used > mat.ndim or gaps > 1:
        raise ParameterError(f"The index {key!r} is too long for an array of shape {mat.shape}.")
    at = next((n for n, entry in enumerate(key) if entry is Ellipsis), len(key))
    return (*key[:at], *[slice(None)] * (mat.ndim - used), *key[at + 1 :])


def _span(entry: UserObject, axis: int, size: int) -> range:
    """Returns the places along an axis that an entry of an index takes."""
    if isinstance(entry, slice):
        return range(size)[entry]
    if not -size <= entry < size:
        raise OutOfBoundsError(
            f"The index {entry} is out of bounds for axis {axis} of extent {size}."
        )
    return range(int(entry) % size, int(entry) % size + 1)
