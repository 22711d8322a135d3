"""`BCOO`: how its elements are stored, made of dense arrays and read as such.

Elsewhere: other orders and layouts of the same elements (`_bcoo_layout.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

import axir.numpy as jnp
from axir._transforms.vectorize import vmap
from axir._trees.registration import register_pytree_node_class
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import DTypeLike, UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import ParameterError
from axir.dialect.core.late_modules import scipy_sparse
from axir.dialect.program.rules import Value

from ._base import (
    OPERATIONS,
    JAXSparse,
    SparseLayoutError,
)


@register_pytree_node_class
class BCOO(JAXSparse):
    """A sparse array as a list of its elements and their indices, in batches.

    The dimensions of the array are batch dimensions, then sparse dimensions, then dense dimensions.
    Batch dimensions of `data` and `indices` may have the extent 1, for elements or places that all
    batches share. Entries with indices out of range are padding. Elements at equal indices count as
    their sum.

    Args:
        args: `data` of shape (*batch, nse, *dense), and `indices`, integers of shape
            (*batch, nse, number of sparse dimensions).
        shape: The shape of the array.
        indices_sorted: Whether the indices are known to be sorted.
        unique_indices: Whether they are known to be different.

    Raises:
        SparseLayoutError: if the parts do not fit together.

    >>> import axir.numpy as jnp
    >>> from axir.experimental.sparse import BCOO
    >>> x = BCOO((jnp.array([3.0, 4.0]), jnp.array([[0, 1], [1, 0]])), shape=(2, 2))
    >>> (x @ jnp.ones(2)), x.todense()
    (Array([3., 4.], dtype=float32), Array([[0., 3.],
           [4., 0.]], dtype=float32))
    """

    indices: Value

    def __init__(
        self,
        args: tuple[ArrayLike, ArrayLike],
        *,
        shape: Sequence[int],
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ):
        self.data, self.indices = map(jnp.asarray, args)
        self.shape = tuple(int(size) for size in shape)
        self.indices_sorted = indices_sorted
        self.unique_indices = unique_indices
        self._check()

    def _check(self) -> None:
        data, indices = self.data.shape, self.indices.shape
        way_out = (
            "data has the shape (*batch, nse, *dense), indices (*batch, nse, n_sparse), and shape "
            "is (*batch, *sparse, *dense)."
        )
        if len(indices) < 2 or not dtypes.is_integer(self.indices.dtype):
            raise SparseLayoutError(
                f"BCOO: the indices are of type {self.indices.type}, not integers of rank 2 or "
                "more.",
                way_out,
            )
        batch = len(indices) - 2
        dense = len(data) - batch - 1
        fits = dense >= 0 and data[batch] == indices[batch] and dense == self.n_dense >= 0
        fits = fits and self.shape[self.ndim - dense :] == data[batch + 1 :]
        for sizes in (data[:batch], indices[:batch]):
            pairs = zip(sizes, self.shape, strict=False)
            fits = fits and all(size in (1, whole) for size, whole in pairs)
        if not fits:
            raise SparseLayoutError(
                f"BCOO: data of shape {data} and indices of shape {indices} are no array of shape "
                f"{self.shape}.",
                way_out,
            )

    @property
    def nse(self) -> int:
        """The number of elements that are stored of each batch."""
        return self.indices.shape[-2]

    @property
    def n_batch(self) -> int:
        """The number of batch dimensions."""
        return self.indices.ndim - 2

    @property
    def n_sparse(self) -> int:
        """The number of sparse dimensions."""
        return self.indices.shape[-1]

    @property
    def n_dense(self) -> int:
        """The number of dense dimensions."""
        return len(self.shape) - self.n_batch - self.n_sparse

    @classmethod
    def fromdense(
        cls,
        mat: ArrayLike,
        *,
        nse: int | None = None,
        index_dtype: DTypeLike = np.int32,
        n_dense: int = 0,
        n_batch: int = 0,
    ) -> BCOO:
        """Makes a sparse array of an array: see `bcoo_fromdense`."""
        return bcoo_fromdense(
            mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch
        )

    @classmethod
    def from_scipy_sparse(
        cls,
        mat: UserObject,
        *,
        index_dtype: DTypeLike = None,
        n_dense: int = 0,
        n_batch: int = 0,
    ) -> BCOO:
        """Makes a sparse array of one of SciPy's, without batch and dense dimensions."""
        if n_dense or n_batch:
            raise ParameterError(
                "BCOO.from_scipy_sparse: n_dense and n_batch must be 0.",
                "bcoo_update_layout makes them afterwards.",
            )
        mat = mat.tocoo()
        indices = np.stack([mat.row, mat.col], axis=-1).astype(index_dtype or np.int32)
        return cls((mat.data, indices), shape=mat.shape)

    @classmethod
    def _empty(
        cls,
        shape: Sequence[int],
        *,
        dtype: DTypeLike = None,
        index_dtype: DTypeLike = "int32",
        n_dense: int = 0,
        n_batch: int = 0,
        nse: int = 0,
    ) -> BCOO:
        """Makes an array that stores nothing: all indices are out of range."""
        shape = tuple(shape)
        sparse = shape[n_batch : len(shape) - n_dense]
        if n_batch < 0 or n_dense < 0 or n_batch + n_dense > len(shape) or nse < 0:
            raise SparseLayoutError(
                f"BCOO: shape={shape} has no {n_batch} batch and {n_dense} dense dimensions, or "
                f"nse={nse} is negative."
            )
        batch = shape[:n_batch]
        data = jnp.zeros((*batch, nse, *shape[len(shape) - n_dense :]), dtype)
        indices = jnp.broadcast_to(jnp.array(sparse, index_dtype), (*batch, nse, len(sparse)))
        return cls((data, indices), shape=shape, indices_sorted=True, unique_indices=True)

    def todense(self) -> Value:
        """Returns the array with all its elements."""
        return bcoo_todense(self)

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
        """Returns the array with each index once: see `bcoo_sum_duplicates`."""
        return OPERATIONS["sum_duplicates"](self, nse, remove_zeros)

    def sort_indices(self) -> BCOO:
        """Returns the array with its indices sorted."""
        return OPERATIONS["sort_indices"](self)

    def update_layout(
        self,
        *,
        n_batch: int | None = None,
        n_dense: int | None = None,
        on_inefficient: str | None = "error",
    ) -> BCOO:
        """Returns the array with other batch and dense dimensions: see `bcoo_update_layout`."""
        return OPERATIONS["update_layout"](
            self, n_batch=n_batch, n_dense=n_dense, on_inefficient=on_inefficient
        )

    def to_scipy_sparse(self) -> UserObject:
        """Returns a matrix as SciPy's `coo_matrix`."""
        if self.ndim != 2 or self.n_sparse != 2:
            raise ParameterError("BCOO.to_scipy_sparse: the array must be a sparse matrix.")
        mat = self.sum_duplicates()
        data, (rows, columns) = np.asarray(mat.data), np.asarray(mat.indices).T
        is_inside = (rows < self.shape[0]) & (columns < self.shape[1])
        places = rows[is_inside], columns[is_inside]
        return scipy_sparse.coo_matrix((data[is_inside], places), shape=self.shape)

    def tree_flatten(self) -> tuple[tuple[Value, Value], tuple[tuple[int, ...], bool, bool]]:
        """Returns the leaves, and the static fields."""
        return (self.data, self.indices), (self.shape, self.indices_sorted, self.unique_indices)

    @classmethod
    def tree_unflatten(
        cls, static: tuple[tuple[int, ...], bool, bool], leaves: tuple[Value, Value]
    ) -> BCOO:
        """Makes the array from its leaves, whatever they are."""
        result = object.__new__(cls)
        result.data, result.indices = leaves
        result.shape, result.indices_sorted, result.unique_indices = static
        return result


# Batches -------------------------------------------------------------------------------------


class Parts(NamedTuple):
    """Elements and indices of a BCOO without batch dimensions."""

    data: Value
    indices: Value


def over_batches(mat: BCOO, function: Callable[..., object], *others: Value) -> UserObject:
    """Applies a function of `Parts` and other arrays to each batch.

    Batch dimensions that elements or indices have in common are not multiplied unless needed.
    """
    batch = mat.shape[: mat.n_batch]

    def mapped(data: Value, indices: Value, *rest: Value) -> UserObject:
        return function(Parts(data, indices), *rest)

    data, indices = full_batches(mat)
    for _ in batch:
        mapped = vmap(mapped)
    return mapped(data, indices, *others)


def full_batches(mat: BCOO) -> Parts:
    """Returns elements and indices with batch dimensions of their full extents."""
    batch = mat.shape[: mat.n_batch]
    return Parts(
        *[jnp.broadcast_to(x, (*batch, *x.shape[len(batch) :])) for x in (mat.data, mat.indices)]
    )


def sparse_sizes(mat: BCOO) -> tuple[int, ...]:
    """Returns the extents of the sparse dimensions."""
    return mat.shape[mat.n_batch : mat.n_batch + mat.n_sparse]


def is_inside(indices: Value, sizes: Sequence[int]) -> Value:
    """Tells which indices, of shape (..., n_sparse), are in range."""
    limits = jnp.array(sizes, indices.dtype)
    return ((indices >= 0) & (indices < limits)).all(-1)


def places_of(indices: Value) -> tuple[Value, ...]:
    """Returns indices of shape (nse, n_sparse) as an index for each dimension."""
    return tuple(indices[:, i] for i in range(indices.shape[1]))


def with_trailing(x: Value, ndim: int) -> Value:
    """Returns an array with dimensions of extent 1 behind its own."""
    return x.reshape(*x.shape, *(1,) * (ndim - x.ndim))


# Dense arrays --------------------------------------------------------------------------------


def bcoo_todense(mat: BCOO) -> Value:
    """Returns a sparse array with all its elements."""
    sizes = sparse_sizes(mat)

    def scattered(parts: Parts) -> Value:
        is_valid = with_trailing(is_inside(parts.indices, sizes), parts.data.ndim)
        data = jnp.where(is_valid, parts.data, 0)
        if not sizes:
            return data.sum(0, dtype=data.dtype)
        start = jnp.zeros((*sizes, *data.shape[1:]), data.dtype)
        return start.at[
            places_of(jnp.where(is_inside(parts.indices, sizes)[:, None], parts.indices, 0))
        ].add(data)

    return over_batches(mat, scattered)


def bcoo_fromdense(
    mat: ArrayLike,
    *,
    nse: int | None = None,
    n_batch: int = 0,
    n_dense: int = 0,
    index_dtype: DTypeLike = np.int32,
) -> BCOO:
    """Makes a sparse array of an array.

    Args:
        mat: The array.
        nse: How many elements to store of each batch; by default as many as differ from 0, for
            which the array must be known while tracing. Too few lose the last ones.
        n_batch, n_dense: How many dimensions are batches, and dense.
        index_dtype: The dtype of the indices.

    Raises:
        SparseLayoutError: if the array has not so many dimensions.
        ConcretizationTypeError: if the array is traced and `nse` is not given.

    >>> import axir.numpy as jnp
    >>> bcoo_fromdense(jnp.eye(3))
    BCOO(float32[3, 3], nse=3)
    """
    x = jnp.asarray(mat)
    if n_batch < 0 or n_dense < 0 or n_batch + n_dense > x.ndim:
        raise SparseLayoutError(
            f"bcoo_fromdense: an array of shape {x.shape} has no {n_batch} batch and {n_dense} "
            "dense dimensions."
        )
    dense = tuple(range(x.ndim - n_dense, x.ndim))
    mask = (x != 0).any(dense) if dense else x != 0
    if nse is None:
        counts = mask.sum(tuple(range(n_batch, mask.ndim)))
        nse = int(counts.max()) if counts.size else 0
    sizes = x.shape[n_batch : x.ndim - n_dense]

    def found(mask: Value) -> Value:
        if not sizes:
            return jnp.zeros((nse, 0), index_dtype)
        places = jnp.nonzero(mask, size=nse, fill_value=sizes)
        return jnp.stack(places, axis=-1).astype(index_dtype)

    for _ in range(n_batch):
        found = vmap(found)
    indices = found(mask)
    result = BCOO(
        (jnp.zeros((*indices.shape[:-1], *x.shape[x.ndim - n_dense :]), x.dtype), indices),
        shape=x.shape,
        indices_sorted=True,
        unique_indices=True,
    )
    return with_data(result, bcoo_extract(result, x).data)


def bcoo_extract(sparr: BCOO, arr: ArrayLike, *, assume_unique: bool | None = None) -> BCOO:
    """Returns the elements of an array at the places of a sparse one.

    Args:
        sparr: A sparse array; its elements are ignored.
        arr: An array of its shape.
        assume_unique: Whether its indices are distinct; by default `sparr.unique_indices`. Of equal
            indices only the first gets the element, the others get 0.

    Raises:
        SparseLayoutError: if the shapes differ.
    """
    x = jnp.asarray(arr)
    if x.shape != sparr.shape:
        raise SparseLayoutError(
            f"bcoo_extract: the array is of shape {x.shape}, the sparse one of shape {sparr.shape}."
        )
    sizes = sparse_sizes(sparr)
    is_unique = sparr.unique_indices if assume_unique is None else assume_unique

    def gathered(parts: Parts, x: Value) -> Value:
        is_valid = is_inside(parts.indices, sizes)
        if not is_unique:
            is_valid &= is_first(parts.indices)
        if not sizes:
            is_valid &= jnp.arange(is_valid.shape[0]) == 0
            data = jnp.broadcast_to(x, (is_valid.shape[0], *x.shape))
        else:
            data = x.at[places_of(parts.indices)].get(mode="clip")
        return jnp.where(with_trailing(is_valid, data.ndim), data, 0)

    return with_data(sparr, over_batches(sparr, gathered, x))


def with_data(mat: BCOO, data: Value) -> BCOO:
    """Returns an array with other elements at the same places."""
    return BCOO(
        (data, mat.indices),
        shape=mat.shape,
        indices_sorted=mat.indices_sorted,
        unique_indices=mat.unique_indices,
    )


def is_first(indices: Value) -> Value:
    """Tells which indices, of shape (nse, n_sparse), no index before them equals."""
    order = lexical_order(indices)
    ordered = indices[order]
    is_new = jnp.concatenate(
        [jnp.ones(min(1, len(order)), bool), (ordered[1:] != ordered[:-1]).any(-1)]
    )
    return jnp.zeros_like(is_new).at[order].set(is_new)


# Order and duplicates ------------------------------------------------------------------------


def lexical_order(indices: Value) -> Value:
    """Returns the permutation that sorts indices, of shape (nse, n_sparse), stably."""
    if not indices.shape[1]:
        return jnp.arange(indices.shape[0])
    return jnp.lexsort(indices.T[::-1])


def to_bcoo(x: UserObject) -> BCOO:
    """Returns a sparse array of any format as a `BCOO`."""
    return x if isinstance(x, BCOO) else x.to_bcoo()
