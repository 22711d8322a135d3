"""`COO`, `CSR` and `CSC`: sparse matrices without batches."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

import axir.numpy as jnp
from axir._trees.registration import register_pytree_node_class
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import DTypeLike, UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.program.rules import Value

from ._base import JAXSparse, SparseLayoutError
from ._bcoo import BCOO, bcoo_fromdense
from ._bcsr import BCSR

_M = TypeVar("_M", bound="_Matrix")


class _Matrix(JAXSparse):
    """Base of sparse matrices of three parts.

    Attributes:
        names: The names of the parts.
    """

    names: tuple[str, str, str]
    facts: tuple[bool, ...] = ()

    def __init__(self, args: tuple[ArrayLike, ArrayLike, ArrayLike], *, shape: Sequence[int]):
        parts = [jnp.asarray(x) for x in args]
        for name, part in zip(self.names, parts, strict=True):
            setattr(self, name, part)
        self.shape = tuple(int(size) for size in shape)
        self._check(parts)

    def _check(self, parts: list[Value]) -> None:
        lengths = self._lengths(parts[0].size)
        fits = len(self.shape) == 2 and all(
            part.shape == (length,) for part, length in zip(parts, lengths, strict=True)
        )
        if not fits or not all(dtypes.is_integer(part.dtype) for part in parts[1:]):
            types = ", ".join(
                f"{n} of type {p.type}" for n, p in zip(self.names, parts, strict=True)
            )
            raise SparseLayoutError(
                f"{type(self).__name__}: {types} are no matrix of shape {self.shape}.",
                "All parts are of rank 1; places are integers.",
            )

    def _lengths(self, nse: int) -> tuple[int, int, int]:
        return (nse, nse, nse)

    @property
    def nse(self) -> int:
        """The number of elements that are stored."""
        return self.data.size

    @classmethod
    @abc.abstractmethod
    def from_bcoo(cls: type[_M], mat: BCOO) -> _M:
        """Makes a matrix of a `BCOO` without batch and dense dimensions."""

    @classmethod
    def fromdense(
        cls: type[_M],
        mat: ArrayLike,
        *,
        nse: int | None = None,
        index_dtype: DTypeLike = np.int32,
    ) -> _M:
        """Makes a sparse matrix of a matrix: see `bcoo_fromdense`."""
        return cls.from_bcoo(bcoo_fromdense(_matrix(mat), nse=nse, index_dtype=index_dtype))

    @classmethod
    def from_scipy_sparse(cls: type[_M], mat: object, *, index_dtype: DTypeLike = None) -> _M:
        """Makes a matrix of one of SciPy's."""
        return cls.from_bcoo(BCOO.from_scipy_sparse(mat, index_dtype=index_dtype))

    @abc.abstractmethod
    def to_bcoo(self) -> BCOO:
        """Returns the matrix as a `BCOO`."""

    def todense(self) -> Value:
        """Returns the matrix with all its elements."""
        return self.to_bcoo().todense()

    def tree_flatten(self) -> tuple[tuple[Value, ...], tuple[UserObject, ...]]:
        """Returns the leaves, and the static fields."""
        return tuple(getattr(self, name) for name in self.names), (self.shape, self.facts)

    @classmethod
    def tree_unflatten(
        cls, static: tuple[UserObject, ...], leaves: tuple[Value, ...]
    ) -> UserObject:
        """Makes the matrix from its leaves, whatever they are."""
        result = object.__new__(cls)
        for name, leaf in zip(cls.names, leaves, strict=True):
            setattr(result, name, leaf)
        result.shape, result.facts = static
        return result


@register_pytree_node_class
class COO(_Matrix):
    """A sparse matrix as its elements, their rows and their columns.

    Args:
        args: `data`, `row` and `col`, each of shape (nse,). Places out of range hold nothing.
        shape: Rows and columns.
        rows_sorted, cols_sorted: Whether the places are known to be sorted.

    Raises:
        SparseLayoutError: if the parts do not fit together.
    """

    names = ("data", "row", "col")
    row: Value
    col: Value

    def __init__(
        self,
        args: tuple[ArrayLike, ArrayLike, ArrayLike],
        *,
        shape: Sequence[int],
        rows_sorted: bool = False,
        cols_sorted: bool = False,
    ):
        super().__init__(args, shape=shape)
        self.facts = (rows_sorted, cols_sorted)

    @classmethod
    def from_bcoo(cls, mat: BCOO) -> COO:
        """Makes a matrix of a `BCOO` without batch and dense dimensions."""
        return cls((mat.data, mat.indices[:, 0], mat.indices[:, 1]), shape=mat.shape)

    def to_bcoo(self) -> BCOO:
        """Returns the matrix as a `BCOO`."""
        return BCOO((self.data, jnp.stack([self.row, self.col], axis=-1)), shape=self.shape)

    def transpose(self, axes: Sequence[int] | None = None) -> COO:
        """Returns the transpose."""
        return COO((self.data, self.col, self.row), shape=self.shape[::-1])


@register_pytree_node_class
class CSR(_Matrix):
    """A sparse matrix as the elements of its rows, one row after the other.

    Args:
        args: `data` and `indices`, the columns, of shape (nse,), and `indptr`, where each row
            begins and the last one ends, of shape (rows + 1,).
        shape: Rows and columns.

    Raises:
        SparseLayoutError: if the parts do not fit together.
    """

    names = ("data", "indices", "indptr")
    indices: Value
    indptr: Value

    def _lengths(self, nse: int) -> tuple[int, int, int]:
        return (nse, nse, self.shape[0] + 1)

    @classmethod
    def from_bcoo(cls, mat: BCOO) -> CSR:
        """Makes a matrix of a `BCOO` without batch and dense dimensions."""
        rows = BCSR.from_bcoo(mat)
        return cls((rows.data, rows.indices, rows.indptr), shape=mat.shape)

    def to_bcoo(self) -> BCOO:
        """Returns the matrix as a `BCOO`."""
        return BCSR((self.data, self.indices, self.indptr), shape=self.shape).to_bcoo()

    def transpose(self, axes: Sequence[int] | None = None) -> CSC:
        """Returns the transpose, by columns."""
        return CSC((self.data, self.indices, self.indptr), shape=self.shape[::-1])


@register_pytree_node_class
class CSC(_Matrix):
    """A sparse matrix as the elements of its columns, one column after the other.

    Args:
        args: `data` and `indices`, the rows, of shape (nse,), and `indptr`, where each column
            begins and the last one ends, of shape (columns + 1,).
        shape: Rows and columns.

    Raises:
        SparseLayoutError: if the parts do not fit together.
    """

    names = ("data", "indices", "indptr")
    indices: Value
    indptr: Value

    def _lengths(self, nse: int) -> tuple[int, int, int]:
        return (nse, nse, self.shape[1] + 1)

    @classmethod
    def fromdense(
        cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32
    ) -> CSC:
        """Makes a sparse matrix of a matrix: see `bcoo_fromdense`."""
        return CSR.fromdense(_matrix(mat).T, nse=nse, index_dtype=index_dtype).transpose()

    @classmethod
    def from_bcoo(cls, mat: BCOO) -> CSC:
        """Makes a matrix of a `BCOO` without batch and dense dimensions."""
        return CSR.from_bcoo(mat.transpose()).transpose()

    def to_bcoo(self) -> BCOO:
        """Returns the matrix as a `BCOO`."""
        return self.transpose().to_bcoo().transpose()

    def transpose(self, axes: Sequence[int] | None = None) -> CSR:
        """Returns the transpose, by rows."""
        return CSR((self.data, self.indices, self.indptr), shape=self.shape[::-1])


def _matrix(mat: ArrayLike) -> Value:
    x = jnp.asarray(mat)
    if x.ndim != 2:
        raise SparseLayoutError(f"An array of shape {x.shape} is no matrix.")
    return x


# Functions -----------------------------------------------------------------------------------


def coo_fromdense(
    mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32
) -> COO:
    """Makes a `COO` of a matrix: see `bcoo_fromdense`."""
    return COO.fromdense(mat, nse=nse, index_dtype=index_dtype)


def csr_fromdense(
    mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32
) -> CSR:
    """Makes a `CSR` of a matrix: see `bcoo_fromdense`."""
    return CSR.fromdense(mat, nse=nse, index_dtype=index_dtype)


def coo_todense(mat: COO) -> Value:
    """Returns a sparse matrix with all its elements."""
    return mat.todense()


def csr_todense(mat: CSR) -> Value:
    """Returns a sparse matrix with all its elements."""
    return mat.todense()


def _product(mat: _Matrix, x: ArrayLike, transpose: bool) -> Value:
    factor = mat.to_bcoo()
    return (factor.transpose() if transpose else factor) @ jnp.asarray(x)


def coo_matvec(mat: COO, v: ArrayLike, transpose: bool = False) -> Value:
    """Multiplies a vector by a sparse matrix, or by its transpose."""
    return _product(mat, v, transpose)


def coo_matmat(mat: COO, B: ArrayLike, *, transpose: bool = False) -> Value:
    """Multiplies a matrix by a sparse matrix, or by its transpose."""
    return _product(mat, B, transpose)


def csr_matvec(mat: CSR, v: ArrayLike, transpose: bool = False) -> Value:
    """Multiplies a vector by a sparse matrix, or by its transpose."""
    return _product(mat, v, transpose)


def csr_matmat(mat: CSR, B: ArrayLike, *, transpose: bool = False) -> Value:
    """Multiplies a matrix by a sparse matrix, or by its transpose."""
    return _product(mat, B, transpose)
