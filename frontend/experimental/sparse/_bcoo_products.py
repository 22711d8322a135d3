"""Products of `BCOO` arrays: contractions, and products element by element."""

from __future__ import annotations

from collections.abc import Sequence

import axir.numpy as jnp
from axir import lax
from axir.dialect.core.annotations import DTypeLike, PrecisionLike, UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.program.rules import Value

from ._base import SparseLayoutError
from ._bcoo import (
    BCOO,
    bcoo_extract,
    full_batches,
    is_inside,
    places_of,
    sparse_sizes,
    with_data,
    with_trailing,
)
from ._bcoo_layout import bcoo_update_layout

DotNumbers = tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]


def bcoo_dot_general(
    lhs: BCOO | ArrayLike,
    rhs: BCOO | ArrayLike,
    *,
    dimension_numbers: DotNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike = None,
    out_sharding: None = None,
) -> BCOO | Value:
    """Contracts two arrays, one or both sparse, as `lax.dot_general`.

    Returns:
        An array; a sparse one if both are sparse, with an element for each pair of elements.

    Raises:
        SparseLayoutError: if the dimensions do not fit.

    >>> import axir.numpy as jnp
    >>> from axir.experimental.sparse import BCOO
    >>> x = BCOO.fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> bcoo_dot_general(x, jnp.ones(2), dimension_numbers=(((1,), (0,)), ((), ())))
    Array([2., 3.], dtype=float32)
    """
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = (
        tuple(map(tuple, pair)) for pair in dimension_numbers
    )
    numbers = ((lhs_contract, rhs_contract), (lhs_batch, rhs_batch))
    lhs, rhs = (x if isinstance(x, BCOO) else jnp.asarray(x) for x in (lhs, rhs))
    pairs = zip((*lhs_contract, *lhs_batch), (*rhs_contract, *rhs_batch), strict=True)
    if any(lhs.shape[i] != rhs.shape[j] for i, j in pairs):
        raise SparseLayoutError(
            f"bcoo_dot_general: arrays of shapes {lhs.shape} and {rhs.shape} do not fit along "
            f"{numbers}."
        )
    kind = preferred_element_type or jnp.result_type(lhs.dtype, rhs.dtype)
    if isinstance(lhs, BCOO) and isinstance(rhs, BCOO):
        return _sparse_product(lhs, rhs, numbers, kind)
    other: UserObject = rhs
    if isinstance(lhs, BCOO):
        return _product(lhs, other, numbers, precision, kind)
    if not isinstance(rhs, BCOO):
        return lax.dot_general(
            lhs, rhs, numbers, precision=precision, preferred_element_type=preferred_element_type
        )
    swapped = ((rhs_contract, lhs_contract), (rhs_batch, lhs_batch))
    result = _product(rhs, lhs, swapped, precision, kind)
    batch, free = len(lhs_batch), rhs.ndim - len(rhs_contract) - len(rhs_batch)
    order = (*range(batch), *range(batch + free, result.ndim), *range(batch, batch + free))
    return result.transpose(order)


def _product(
    lhs: BCOO, rhs: Value, numbers: DotNumbers, precision: PrecisionLike, kind: DTypeLike
) -> Value:
    """Contracts a sparse array with a dense one: element by element, added where it belongs."""
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = numbers
    lhs = bcoo_update_layout(lhs, n_batch=0)
    if any(axis >= lhs.n_sparse for axis in lhs_batch):
        lhs = bcoo_update_layout(lhs, n_dense=0)
    sparse = range(lhs.n_sparse)
    partner = dict(zip((*lhs_contract, *lhs_batch), (*rhs_contract, *rhs_batch), strict=True))
    is_valid = is_inside(lhs.indices, sparse_sizes(lhs))
    data = jnp.where(with_trailing(is_valid, lhs.data.ndim), lhs.data, 0).astype(kind)
    places = places_of(jnp.where(is_valid[:, None], lhs.indices, 0))
    # The factor of each element: indexed by the element, then the contracted dense dimensions, then
    # the remaining dimensions of rhs.
    met = [axis for axis in sparse if axis in partner]
    summed = [axis for axis in range(lhs.n_sparse, lhs.ndim) if axis in partner]
    head = [partner[axis] for axis in (*met, *summed)]
    free = [axis for axis in range(rhs.ndim) if axis not in partner.values()]
    factor = rhs.astype(kind).transpose(*head, *free)
    if met:
        factor = factor[tuple(places[axis] for axis in met)]
        batch: tuple[tuple[int, ...], tuple[int, ...]] = ((0,), (0,))
        first = 1
    else:
        batch, first = ((), ()), 0
    contracted = (
        tuple(1 + axis - lhs.n_sparse for axis in summed),
        tuple(range(first, first + len(summed))),
    )
    products = lax.dot_general(data, factor, (contracted, batch), precision=precision)
    kept = [axis for axis in (*lhs_batch, *(a for a in sparse if a not in partner))]
    if not kept:
        return products.sum(0, dtype=products.dtype)
    shape = (*[lhs.shape[axis] for axis in kept], *products.shape[1:])
    return jnp.zeros(shape, products.dtype).at[tuple(places[axis] for axis in kept)].add(products)


def _sparse_product(lhs: BCOO, rhs: BCOO, numbers: DotNumbers, kind: DTypeLike) -> BCOO:
    """Contracts sparse arrays: the product of each pair of elements with matching indices."""
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = numbers
    lhs, rhs = (bcoo_update_layout(x, n_batch=0, n_dense=0) for x in (lhs, rhs))
    meets = is_inside(lhs.indices, lhs.shape)[:, None] & is_inside(rhs.indices, rhs.shape)
    for i, j in zip((*lhs_contract, *lhs_batch), (*rhs_contract, *rhs_batch), strict=True):
        meets &= lhs.indices[:, None, i] == rhs.indices[:, j]
    products = jnp.where(meets, lhs.data.astype(kind)[:, None] * rhs.data.astype(kind), 0)
    lhs_kept = [*lhs_batch, *(a for a in range(lhs.ndim) if a not in (*lhs_contract, *lhs_batch))]
    rhs_kept = [a for a in range(rhs.ndim) if a not in (*rhs_contract, *rhs_batch)]
    columns = [jnp.broadcast_to(lhs.indices[:, None, a], meets.shape) for a in lhs_kept]
    columns += [jnp.broadcast_to(rhs.indices[None, :, a], meets.shape) for a in rhs_kept]
    shape = (*[lhs.shape[a] for a in lhs_kept], *[rhs.shape[a] for a in rhs_kept])
    if columns:
        indices = jnp.stack([column.ravel() for column in columns], axis=-1)
        limits = jnp.array(shape, indices.dtype)
        indices = jnp.where(meets.ravel()[:, None], indices, limits)
    else:
        indices = jnp.zeros((meets.size, 0), lhs.indices.dtype)
    return BCOO((products.ravel(), indices), shape=shape)


def bcoo_dot_general_sampled(
    A: ArrayLike, B: ArrayLike, indices: ArrayLike, *, dimension_numbers: DotNumbers
) -> Value:
    """Returns the elements of a contraction of arrays at the places of a sparse array.

    Args:
        A, B: Arrays.
        indices: Of shape (*batch, nse, n_sparse), as in `BCOO`.
        dimension_numbers: As in `lax.dot_general`.

    Returns:
        Elements, of shape (*batch, nse, *dense).
    """
    product = lax.dot_general(jnp.asarray(A), jnp.asarray(B), dimension_numbers)
    places = jnp.asarray(indices)
    batch, sparse = places.ndim - 2, places.shape[-1]
    data = jnp.zeros((*places.shape[:-1], *product.shape[batch + sparse :]), product.dtype)
    return bcoo_extract(BCOO((data, places), shape=product.shape), product, assume_unique=True).data


def bcoo_multiply_dense(sp_mat: BCOO, v: ArrayLike) -> Value:
    """Returns the elements of a sparse array times the elements of an array that broadcasts.

    Raises:
        SparseLayoutError: if it does not broadcast to the shape of the sparse array.

    >>> import axir.numpy as jnp
    >>> from axir.experimental.sparse import BCOO
    >>> bcoo_multiply_dense(BCOO.fromdense(jnp.eye(2)), jnp.array([3.0, 4.0]))
    Array([3., 4.], dtype=float32)
    """
    factor = jnp.asarray(v)
    if factor.ndim == 0:
        return sp_mat.data * factor
    if jnp.broadcast_shapes(factor.shape, sp_mat.shape) != sp_mat.shape:
        raise SparseLayoutError(
            f"bcoo_multiply_dense: an array of shape {factor.shape} does not broadcast to the "
            f"shape {sp_mat.shape} of the sparse one.",
            "Broadcast the sparse array first, with bcoo_broadcast_in_dim.",
        )
    whole = jnp.broadcast_to(factor, sp_mat.shape)
    data = full_batches(sp_mat).data
    return data * bcoo_extract(sp_mat, whole, assume_unique=True).data.astype(whole.dtype)


def bcoo_multiply_sparse(lhs: BCOO, rhs: BCOO) -> BCOO:
    """Returns the products of the elements of sparse arrays, at the places of the first one.

    Raises:
        SparseLayoutError: if the shapes differ.
    """
    if lhs.shape != rhs.shape:
        raise SparseLayoutError(
            f"bcoo_multiply_sparse: arrays of shapes {lhs.shape} and {rhs.shape} differ.",
            "Broadcast one of them first, with bcoo_broadcast_in_dim.",
        )
    lhs, rhs = (bcoo_update_layout(x, n_batch=0, n_dense=0) for x in (lhs, rhs))
    meets = (lhs.indices[:, None] == rhs.indices).all(-1)
    meets &= is_inside(rhs.indices, rhs.shape)
    factors = jnp.where(meets, rhs.data, 0).sum(1, dtype=rhs.dtype)
    return with_data(lhs, lhs.data * factors)
