"""The same elements, sorted, each once, without zeros, with other dimensions stored apart."""

from __future__ import annotations

import warnings

import axir.numpy as jnp
from axir import lax
from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.errors import ParameterError
from axir.dialect.program.rules import Value

from ._base import SparseEfficiencyError, SparseEfficiencyWarning, SparseLayoutError
from ._bcoo import (
    BCOO,
    Parts,
    full_batches,
    is_inside,
    lexical_order,
    over_batches,
    places_of,
    sparse_sizes,
    with_trailing,
)


def bcoo_sort_indices(mat: BCOO) -> BCOO:
    """Returns an array with its indices sorted, by the first dimension first."""

    def ordered(parts: Parts) -> Parts:
        order = lexical_order(parts.indices)
        return Parts(parts.data[order], parts.indices[order])

    data, indices = over_batches(mat, ordered)
    return BCOO(
        (data, indices), shape=mat.shape, indices_sorted=True, unique_indices=mat.unique_indices
    )


def sum_duplicates(mat: BCOO, nse: int | None, remove_zeros: bool) -> BCOO:
    """Implements the array's method, which also removes zeros unless told not to."""
    return bcoo_sum_duplicates(_without_zeros(mat) if remove_zeros else mat, nse)


def bcoo_sum_duplicates(mat: BCOO, nse: int | None = None) -> BCOO:
    """Returns an array with each index once, sorted, and with the sums of elements.

    Args:
        mat: The array.
        nse: How many elements to store of each batch. By default as many as there are different
            indices in range if these are known, and else as many as before.
    """
    sizes = sparse_sizes(mat)
    limits = jnp.array(sizes, mat.indices.dtype)

    def summed(parts: Parts) -> tuple[Value, Value, Value]:
        is_valid = is_inside(parts.indices, sizes)
        # Indices out of range come last.
        indices = jnp.where(is_valid[:, None], parts.indices, limits)
        data = jnp.where(with_trailing(is_valid, parts.data.ndim), parts.data, 0)
        order = lexical_order(indices)
        indices, data = indices[order], data[order]
        if not sizes:
            total = jnp.zeros_like(data).at[:1].set(data.sum(0, keepdims=True, dtype=data.dtype))
            return total, indices, jnp.int32(min(1, data.shape[0]))
        is_new = jnp.concatenate(
            [jnp.ones(min(1, len(order)), bool), (indices[1:] != indices[:-1]).any(-1)]
        )
        group = jnp.cumsum(is_new) - 1
        found = jnp.broadcast_to(limits, indices.shape).at[group].set(indices)
        count = (is_inside(found, sizes)).sum()
        return jnp.zeros_like(data).at[group].add(data), found, count

    data, indices, counts = over_batches(mat, summed)
    if nse is None:
        nse = mat.nse
        if type(counts) is ConcreteArray:
            nse = int(counts.max()) if counts.size else 0
    missing = max(nse - mat.nse, 0)
    axis = mat.n_batch
    if missing:
        data = jnp.pad(data, [(0, missing * (a == axis)) for a in range(data.ndim)])
        further = jnp.broadcast_to(limits, (*indices.shape[:-2], missing, len(sizes)))
        indices = jnp.concatenate([indices, further], axis=-2)
    data, indices = (lax.slice_in_dim(x, 0, nse, axis=axis) for x in (data, indices))
    return BCOO((data, indices), shape=mat.shape, indices_sorted=True, unique_indices=True)


def _without_zeros(mat: BCOO) -> BCOO:
    """Moves elements that are 0 out of range."""
    dense = tuple(range(mat.n_batch + 1, mat.data.ndim))
    is_zero = (mat.data == 0).all(dense) if dense else mat.data == 0
    limits = jnp.array(sparse_sizes(mat), mat.indices.dtype)
    indices = jnp.where(is_zero[..., None], limits, mat.indices)
    return BCOO((mat.data, indices), shape=mat.shape)


def bcoo_eliminate_zeros(mat: BCOO, nse: int | None = None) -> BCOO:
    """Returns an array that stores no zeros, and no place twice.

    Args:
        mat: The array.
        nse: How many elements to store; by default as many as are needed, which takes known values.

    >>> import axir.numpy as jnp
    >>> bcoo_eliminate_zeros(BCOO.fromdense(jnp.array([0.0, 1.0]), nse=2))
    BCOO(float32[2], nse=1)
    """
    return bcoo_sum_duplicates(_without_zeros(mat), nse)


# Layouts -------------------------------------------------------------------------------------


def bcoo_update_layout(
    mat: BCOO,
    *,
    n_batch: int | None = None,
    n_dense: int | None = None,
    on_inefficient: str | None = "error",
) -> BCOO:
    """Returns an array with other numbers of batch and dense dimensions.

    Args:
        mat: The array.
        n_batch, n_dense: The numbers; by default those that it has.
        on_inefficient: 'error', 'warn' or None: the reaction if the result stores more elements
            than the array, as it does when sparse dimensions become batches or dense.

    Raises:
        SparseEfficiencyError: if it stores more, and `on_inefficient` is 'error'.
        SparseLayoutError: if the array has not so many dimensions.

    >>> import axir.numpy as jnp
    >>> from axir.experimental.sparse import bcoo_fromdense
    >>> bcoo_update_layout(bcoo_fromdense(jnp.eye(3), n_batch=1), n_batch=0).indices.shape
    (3, 2)
    """
    batch = mat.n_batch if n_batch is None else n_batch
    dense = mat.n_dense if n_dense is None else n_dense
    if batch < 0 or dense < 0 or batch + dense > mat.ndim:
        raise SparseLayoutError(
            f"bcoo_update_layout: an array of shape {mat.shape} has no {batch} batch and {dense} "
            "dense dimensions."
        )
    if on_inefficient not in ("error", "warn", None):
        raise ParameterError(
            f"bcoo_update_layout: on_inefficient is {on_inefficient!r}.",
            "It is 'error', 'warn' or None.",
        )
    if batch > mat.n_batch or dense > mat.n_dense:
        _tell_inefficiency(mat, batch, dense, on_inefficient)
    mat = _fewer_dense(mat, dense) if dense < mat.n_dense else mat
    mat = _fewer_batch(mat, batch) if batch < mat.n_batch else mat
    mat = _more_dense(mat, dense) if dense > mat.n_dense else mat
    return _more_batch(mat, batch) if batch > mat.n_batch else mat


def _tell_inefficiency(mat: BCOO, batch: int, dense: int, reaction: str | None) -> None:
    message = (
        f"bcoo_update_layout: from {mat.n_batch} batch and {mat.n_dense} dense dimensions to "
        f"{batch} and {dense} more elements are stored."
    )
    if reaction == "error":
        raise SparseEfficiencyError(message, "Pass on_inefficient=None if that is wanted.")
    if reaction == "warn":
        warnings.warn(message, SparseEfficiencyWarning, stacklevel=4)


def _fewer_dense(mat: BCOO, n_dense: int) -> BCOO:
    """Makes the first dense dimensions sparse, with all of their elements stored."""
    count = mat.n_dense - n_dense
    start = mat.n_batch + mat.n_sparse
    sizes = mat.shape[start : start + count]
    places = jnp.stack(
        [x.ravel() for x in jnp.meshgrid(*map(jnp.arange, sizes), indexing="ij")], axis=-1
    ).astype(mat.indices.dtype)

    def spread(parts: Parts) -> Parts:
        nse = parts.indices.shape[0]
        data = parts.data.reshape(nse * len(places), *parts.data.shape[1 + count :])
        return Parts(data, _paired(parts.indices, places))

    data, indices = over_batches(mat, spread)
    return BCOO((data, indices), shape=mat.shape, indices_sorted=mat.indices_sorted,
                unique_indices=mat.unique_indices)  # fmt: skip


def _paired(first: Value, second: Value) -> Value:
    """Returns each row of one array followed by each row of another one."""
    left = jnp.repeat(
        first, second.shape[0], axis=0, total_repeat_length=first.shape[0] * second.shape[0]
    )
    right = jnp.tile(second, (first.shape[0], 1))
    return jnp.concatenate([left, right], axis=1)


def _fewer_batch(mat: BCOO, n_batch: int) -> BCOO:
    """Makes the last batch dimensions sparse."""
    data, indices = full_batches(mat)
    for axis in reversed(range(n_batch, mat.n_batch)):
        number = lax.broadcasted_iota(indices.dtype, (*indices.shape[:-1], 1), axis)
        indices = jnp.concatenate([number, indices], axis=-1)
        merged = data.shape[axis] * data.shape[axis + 1]
        data = data.reshape(*data.shape[:axis], merged, *data.shape[axis + 2 :])
        indices = indices.reshape(*indices.shape[:axis], merged, indices.shape[-1])
    return BCOO((data, indices), shape=mat.shape, indices_sorted=mat.indices_sorted,
                unique_indices=mat.unique_indices)  # fmt: skip


def _more_dense(mat: BCOO, n_dense: int) -> BCOO:
    """Makes the last sparse dimensions dense: each element is one of a row of zeros."""
    count = n_dense - mat.n_dense
    kept = mat.n_sparse - count
    sizes = sparse_sizes(mat)[kept:]

    def gathered(parts: Parts) -> Parts:
        nse = parts.indices.shape[0]
        last = parts.indices[:, kept:]
        is_valid = is_inside(last, sizes)
        data = jnp.where(with_trailing(is_valid, parts.data.ndim), parts.data, 0)
        rows = jnp.zeros((nse, *sizes, *data.shape[1:]), data.dtype)
        last = jnp.where(is_valid[:, None], last, 0)
        places = (jnp.arange(nse), *places_of(last))
        return Parts(rows.at[places].set(data), parts.indices[:, :kept])

    data, indices = over_batches(mat, gathered)
    return BCOO((data, indices), shape=mat.shape)


def _more_batch(mat: BCOO, n_batch: int) -> BCOO:
    """Makes the first sparse dimensions batches: elements of other batches are out of range."""
    count = n_batch - mat.n_batch
    sizes = sparse_sizes(mat)
    rest = jnp.array(sizes[count:], mat.indices.dtype)

    def spread(parts: Parts) -> Parts:
        grid = jnp.meshgrid(*map(jnp.arange, sizes[:count]), indexing="ij")
        batches = jnp.stack([x.ravel() for x in grid], axis=-1).astype(parts.indices.dtype)
        is_own = (parts.indices[None, :, :count] == batches[:, None]).all(-1)
        data = jnp.where(with_trailing(is_own, parts.data.ndim + 1), parts.data, 0)
        indices = jnp.where(is_own[..., None], parts.indices[:, count:], rest)
        if not rest.size:  # nothing tells that an element is out of range
            data, indices = data.sum(1, keepdims=True, dtype=data.dtype), indices[:, :1]
        head = sizes[:count]
        return Parts(
            data.reshape(*head, *data.shape[1:]), indices.reshape(*head, *indices.shape[1:])
        )

    data, indices = over_batches(mat, spread)
    return BCOO((data, indices), shape=mat.shape)
