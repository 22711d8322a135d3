"""`BCSR`: sparse arrays by rows, in batches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import axir.numpy as jnp
from axir._transforms.vectorize import vmap
from axir._trees.registration import register_pytree_node_class
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import DTypeLike, PrecisionLike, UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import ParameterError
from axir.dialect.program.rules import Value

from . import _bcoo_shape as shapes
from ._base import JAXSparse, SparseLayoutError
from ._bcoo import (
    BCOO,
    Parts,
    bcoo_extract,
    bcoo_fromdense,
    bcoo_todense,
    full_batches,
    is_inside,
    over_batches,
    to_bcoo,
)
from ._bcoo_layout import bcoo_eliminate_zeros, bcoo_sort_indices, bcoo_sum_duplicates
from ._bcoo_products import DotNumbers, bcoo_dot_general


@register_pytree_node_class
class BCSR(JAXSparse):
    """A sparse array as the elements of its rows and their columns, in batches.

    The dimensions of the array are batch dimensions, rows, columns, then dense dimensions. Entries
    with columns out of range are padding.

    Args:
        args: `data` of shape (*batch, nse, *dense), `indices`, the columns, of shape (*batch, nse),
            and `indptr`, where each row begins and the last one ends, of shape (*batch, rows + 1).
        shape: The shape of the array.
        indices_sorted: Whether the columns of each row are known to be sorted.
        unique_indices: Whether they are known to be different.

    Raises:
        SparseLayoutError: if the parts do not fit together.

    >>> import axir.numpy as jnp
    >>> from axir.experimental.sparse import BCSR
    >>> x = BCSR.fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> x.indptr, x @ jnp.ones(2)
    (Array([0, 1, 2], dtype=int32), Array([2., 3.], dtype=float32))
    """

    indices: Value
    indptr: Value

    def __init__(
        self,
        args: tuple[ArrayLike, ArrayLike, ArrayLike],
        *,
        shape: Sequence[int],
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ):
        self.data, self.indices, self.indptr = map(jnp.asarray, args)
        self.shape = tuple(int(size) for size in shape)
        self.indices_sorted = indices_sorted
        self.unique_indices = unique_indices
        batch = self.n_batch
        ok = all(dtypes.is_integer(x.dtype) for x in (self.indices, self.indptr))
        ok = ok and batch >= 0 and self.indptr.ndim == batch + 1 and self.ndim >= batch + 2
        ok = ok and self.data.shape[batch : batch + 1] == self.indices.shape[batch:]
        ok = ok and self.indptr.shape[-1] == self.shape[batch] + 1
        ok = ok and self.data.shape[batch + 1 :] == self.shape[batch + 2 :]
        for part in (self.data, self.indices, self.indptr):
            pairs = zip(part.shape[:batch], self.shape, strict=False)
            ok = ok and all(size in (1, whole) for size, whole in pairs)
        if not ok:
            raise SparseLayoutError(
                f"BCSR: data of shape {self.data.shape}, indices of type {self.indices.type} and "
                f"indptr of type {self.indptr.type} are no array of shape {self.shape}.",
                "data has the shape (*batch, nse, *dense), indices (*batch, nse), indptr "
                "(*batch, rows + 1), and shape is (*batch, rows, columns, *dense).",
            )

    @property
    def nse(self) -> int:
        """The number of elements that are stored of each batch."""
        return self.indices.shape[-1]

    @property
    def n_batch(self) -> int:
        """The number of batch dimensions."""
        return self.indices.ndim - 1

    @property
    def n_sparse(self) -> int:
        """The number of sparse dimensions: 2."""
        return 2

    @property
    def n_dense(self) -> int:
        """The number of dense dimensions."""
        return self.ndim - self.n_batch - 2

    @classmethod
    def fromdense(
        cls,
        mat: ArrayLike,
        *,
        nse: int | None = None,
        index_dtype: DTypeLike = np.int32,
        n_dense: int = 0,
        n_batch: int = 0,
    ) -> BCSR:
        """Makes a sparse array of an array: see `bcsr_fromdense`."""
        return bcsr_fromdense(
            mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype
        )

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> BCSR:
        """Makes an array by rows of one with two sparse dimensions.

        Raises:
            SparseLayoutError: if it has another number of them.
        """
        if arr.n_sparse != 2:
            raise SparseLayoutError(
                f"BCSR.from_bcoo: the array has {arr.n_sparse} sparse dimensions.", "It needs 2."
            )
        rows = arr.shape[arr.n_batch]
        limits = np.array(arr.shape[arr.n_batch : arr.n_batch + 2])
        # Entries out of range come after the last row.
        is_valid = is_inside(arr.indices, tuple(limits))[..., None]
        indices = jnp.where(is_valid, arr.indices, limits.astype(arr.indices.dtype))
        placed = BCOO((arr.data, indices), shape=arr.shape, unique_indices=arr.unique_indices)
        arr = bcoo_sort_indices(placed)

        def starts(parts: Parts) -> Value:
            return jnp.searchsorted(parts.indices[:, 0], jnp.arange(rows + 1)).astype(indices.dtype)

        data, indices = full_batches(arr)
        return cls(
            (data, indices[..., 1], over_batches(arr, starts)),
            shape=arr.shape,
            indices_sorted=True,
            unique_indices=arr.unique_indices,
        )

    @classmethod
    def from_scipy_sparse(
        cls, mat: UserObject, *, index_dtype: DTypeLike = None, n_dense: int = 0, n_batch: int = 0
    ) -> BCSR:
        """Makes a sparse array of one of SciPy's, without batch and dense dimensions."""
        if n_dense or n_batch:
            raise ParameterError("BCSR.from_scipy_sparse: n_dense and n_batch must be 0.")
        mat = mat.tocsr()
        kind = index_dtype or np.int32
        return cls((mat.data, mat.indices.astype(kind), mat.indptr.astype(kind)), shape=mat.shape)

    @classmethod
    def _empty(cls, shape: Sequence[int], **options: UserObject) -> BCSR:
        return cls.from_bcoo(BCOO._empty(shape, **options))

    def to_bcoo(self) -> BCOO:
        """Returns the array as a `BCOO`."""
        nse = self.nse

        def rows(indptr: Value) -> Value:
            numbers = jnp.arange(nse, dtype=indptr.dtype)
            return (jnp.searchsorted(indptr, numbers, side="right") - 1).astype(indptr.dtype)

        for _ in range(self.n_batch):
            rows = vmap(rows)
        first, columns = jnp.broadcast_arrays(rows(self.indptr), self.indices)
        return BCOO(
            (self.data, jnp.stack([first, columns], axis=-1)),
            shape=self.shape,
            indices_sorted=self.indices_sorted,
            unique_indices=self.unique_indices,
        )

    def todense(self) -> Value:
        """Returns the array with all its elements."""
        return bcoo_todense(self.to_bcoo())

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCSR:
        """Returns the array with each place once."""
        return BCSR.from_bcoo(self.to_bcoo().sum_duplicates(nse, remove_zeros))

    def tree_flatten(
        self,
    ) -> tuple[tuple[Value, Value, Value], tuple[tuple[int, ...], bool, bool]]:
        """Returns the leaves, and the static fields."""
        static = (self.shape, self.indices_sorted, self.unique_indices)
        return (self.data, self.indices, self.indptr), static

    @classmethod
    def tree_unflatten(
        cls, static: tuple[tuple[int, ...], bool, bool], leaves: tuple[Value, Value, Value]
    ) -> BCSR:
        """Makes the array from its leaves, whatever they are."""
        result = object.__new__(cls)
        result.data, result.indices, result.indptr = leaves
        result.shape, result.indices_sorted, result.unique_indices = static
        return result


def bcsr_fromdense(
    mat: ArrayLike,
    *,
    nse: int | None = None,
    n_batch: int = 0,
    n_dense: int = 0,
    index_dtype: DTypeLike = np.int32,
) -> BCSR:
    """Makes a sparse array by rows of an array; arguments and errors as `bcoo_fromdense`."""
    if jnp.ndim(mat) - n_batch - n_dense != 2:
        raise SparseLayoutError(
            f"bcsr_fromdense: an array of shape {jnp.shape(mat)} with {n_batch} batch and "
            f"{n_dense} dense dimensions does not have 2 sparse ones."
        )
    return BCSR.from_bcoo(
        bcoo_fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)
    )


def bcsr_todense(mat: BCSR) -> Value:
    """Returns a sparse array by rows with all its elements."""
    return mat.todense()


def bcsr_extract(indices: ArrayLike, indptr: ArrayLike, mat: ArrayLike) -> Value:
    """Returns the elements of an array at the places of one by rows."""
    x = jnp.asarray(mat)
    columns = jnp.asarray(indices)
    batch = columns.ndim - 1
    nothing = jnp.zeros((*columns.shape, *x.shape[batch + 2 :]), x.dtype)
    places = BCSR((nothing, columns, indptr), shape=x.shape).to_bcoo()
    return bcoo_extract(places, x, assume_unique=True).data


def bcsr_sum_duplicates(mat: BCSR, nse: int | None = None) -> BCSR:
    """Returns an array with each place once: see `bcoo_sum_duplicates`."""
    return BCSR.from_bcoo(bcoo_sum_duplicates(mat.to_bcoo(), nse))


def bcsr_eliminate_zeros(mat: BCSR, nse: int | None = None) -> BCSR:
    """Returns an array that stores no zeros, and no place twice; see `bcoo_eliminate_zeros`."""
    return BCSR.from_bcoo(bcoo_eliminate_zeros(mat.to_bcoo(), nse))


def bcsr_dot_general(
    lhs: BCSR | ArrayLike,
    rhs: ArrayLike,
    *,
    dimension_numbers: DotNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike = None,
    out_sharding: None = None,
) -> UserObject:
    """Contracts a BCSR array with another array: see `bcoo_dot_general`."""
    first, second = (to_bcoo(x) if isinstance(x, JAXSparse) else x for x in (lhs, rhs))
    return bcoo_dot_general(
        first, second, dimension_numbers=dimension_numbers, precision=precision,
        preferred_element_type=preferred_element_type,
    )  # fmt: skip


def bcsr_broadcast_in_dim(
    mat: BCSR, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: None = None
) -> BCSR:
    """Returns an array repeated along dimensions; new dimensions come first."""
    return BCSR.from_bcoo(
        shapes.bcoo_broadcast_in_dim(
            mat.to_bcoo(), shape=shape, broadcast_dimensions=broadcast_dimensions
        )
    )


def bcsr_concatenate(operands: Sequence[BCSR], *, dimension: int) -> BCSR:
    """Returns arrays one behind the other along a dimension."""
    mats = [mat.to_bcoo() for mat in operands]
    return BCSR.from_bcoo(shapes.bcoo_concatenate(mats, dimension=dimension))
