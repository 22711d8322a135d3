"""Sparse arrays of given shapes: empty ones, identities, random ones."""

from __future__ import annotations

import math
from collections.abc import Sequence

import axir.numpy as jnp
from axir import random
from axir._transforms.vectorize import vmap
from axir.dialect.core.annotations import (
    DTypeLike,
    Options,
    UserFunction,
    UserObject,
)
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import ParameterError
from axir.dialect.program.rules import Value

from ._base import JAXSparse, SparseLayoutError
from ._bcoo import BCOO
from ._bcsr import BCSR
from ._matrices import COO, CSC, CSR

_FORMATS: dict[str, UserObject] = {"bcoo": BCOO, "bcsr": BCSR, "coo": COO, "csr": CSR, "csc": CSC}


def _check_format(sparse_format: str) -> None:
    if sparse_format not in _FORMATS:
        raise ParameterError(
            f"There is no format {sparse_format!r} of sparse arrays.",
            f"The formats are {', '.join(_FORMATS)}.",
        )


def _in_format(mat: BCOO, sparse_format: str) -> JAXSparse:
    make = _FORMATS[sparse_format]
    return mat if make is BCOO else make.from_bcoo(mat)


def empty(
    shape: Sequence[int],
    dtype: DTypeLike | None = None,
    index_dtype: DTypeLike = "int32",
    sparse_format: str = "bcoo",
    **kwds: Options,
) -> JAXSparse:
    """Returns a sparse array of zeros.

    Args:
        shape: Its shape; matrices for the formats 'coo', 'csr' and 'csc'.
        dtype, index_dtype: Its dtypes.
        sparse_format: 'bcoo', 'bcsr', 'coo', 'csr' or 'csc'.
        **kwds: `n_batch`, `n_dense` and `nse` of a 'bcoo' or 'bcsr'.

    Raises:
        ParameterError: for another format.
        SparseLayoutError: if the shape does not fit.

    >>> empty((2, 3), sparse_format="csr")
    CSR(float32[2, 3], nse=0)
    """
    _check_format(sparse_format)
    if _FORMATS[sparse_format] not in (BCOO, BCSR) and len(tuple(shape)) != 2:
        raise SparseLayoutError(f"empty: {sparse_format} arrays are matrices, not {tuple(shape)}.")
    made = BCOO._empty(shape, dtype=dtype, index_dtype=index_dtype, **kwds)
    return _in_format(made, sparse_format)


def eye(
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: DTypeLike | None = None,
    index_dtype: DTypeLike = "int32",
    sparse_format: str = "bcoo",
    **kwds: Options,
) -> JAXSparse:
    """Returns a sparse matrix with ones on a diagonal, as `jnp.eye`.

    Args:
        N, M: Rows and columns; M is N by default.
        k: Which diagonal: positive ones are above the main one.
        dtype, index_dtype: The dtypes.
        sparse_format: 'bcoo', 'bcsr', 'coo', 'csr' or 'csc'.
        **kwds: `n_batch` and `n_dense` of a 'bcoo'.

    >>> eye(3, k=1)
    BCOO(float32[3, 3], nse=2)
    """
    _check_format(sparse_format)
    columns = N if M is None else M
    first = max(-k, 0)
    count = max(min(N - first, columns - max(k, 0)), 0)
    rows = jnp.arange(first, first + count, dtype=index_dtype)
    made = BCOO(
        (jnp.ones(count, dtype), jnp.stack([rows, rows + k], axis=-1)),
        shape=(N, columns),
        indices_sorted=True,
        unique_indices=True,
    )
    if kwds:
        made = made.update_layout(**kwds, on_inefficient=None)
    return _in_format(made, sparse_format)


def random_bcoo(
    key: ArrayLike,
    shape: Sequence[int],
    *,
    dtype: DTypeLike = float,
    indices_dtype: DTypeLike | None = None,
    nse: int | float = 0.2,
    n_batch: int = 0,
    n_dense: int = 0,
    unique_indices: bool = True,
    generator: UserFunction = random.uniform,
    **kwds: Options,
) -> BCOO:
    """Returns a sparse array with random elements at random places.

    Args:
        key: A random key.
        shape: The shape.
        dtype, indices_dtype: The dtypes.
        nse: How many elements of each batch, or which share of all (a float below 1).
        n_batch, n_dense: How many dimensions are batches, and dense.
        unique_indices: Whether all places are different.
        generator: Function of `(key, shape, dtype)` for the elements.
        **kwds: Further arguments of it.

    Raises:
        SparseLayoutError: if the shape has not so many dimensions.
        ParameterError: for a negative `nse`, or more unique places than there are.

    >>> import axir
    >>> random_bcoo(axir.random.key(0), (4, 5), nse=3)
    BCOO(float32[4, 5], nse=3)
    """
    sizes = tuple(shape)
    stop = len(sizes) - n_dense
    if n_batch < 0 or n_dense < 0 or n_batch > stop:
        raise SparseLayoutError(
            f"random_bcoo: shape={sizes} has no {n_batch} batch and {n_dense} dense dimensions."
        )
    batch, sparse, dense = sizes[:n_batch], sizes[n_batch:stop], sizes[stop:]
    places = math.prod(sparse)
    count = math.ceil(nse * places) if isinstance(nse, float) and 0 < nse < 1 else int(nse)
    if count < 0 or (unique_indices and count > places):
        raise ParameterError(
            f"random_bcoo: nse={nse} of {places} places.",
            "Pass a number from 0 to the number of places, or a share of them below 1.",
        )
    first, second = random.split(key)

    def chosen(key: Value) -> Value:
        if not sparse:
            return jnp.zeros((count, 0), indices_dtype or "int32")
        numbers = random.choice(key, places, (count,), replace=not unique_indices)
        columns = jnp.unravel_index(numbers, sparse)
        return jnp.stack(columns, axis=-1).astype(indices_dtype or "int32")

    keys = random.split(first, math.prod(batch))
    indices = vmap(chosen)(keys).reshape(*batch, count, len(sparse))
    data = generator(second, (*batch, count, *dense), jnp.dtype(dtype), **kwds)
    return BCOO((data, indices), shape=sizes, unique_indices=unique_indices).sort_indices()
