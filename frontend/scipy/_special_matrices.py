"""Matrices of special forms: `toeplitz`, `hilbert` ... (found in `axir.scipy.linalg`)."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import DTypeLike, Options, UserObject
from axir.dialect.core.array import ArrayLike, as_array
from axir.dialect.core.errors import ParameterError, ShapeError
from axir.dialect.core.late_modules import scipy_linalg
from axir.dialect.core.symbolic_dims import is_open
from axir.dialect.ops.elementwise.comparison import select_n
from axir.dialect.ops.elementwise.family import as_value
from axir.dialect.ops.linalg.matrices import conjugated
from axir.dialect.ops.shape.concatenation import concatenate
from axir.dialect.ops.shape.constants import broadcasted_iota
from axir.dialect.ops.shape.padding import pad
from axir.dialect.ops.shape.rearranging import reshape
from axir.dialect.program.rules import Value
from axir.numpy._arguments.promotion import (
    array_argument,
    constant,
    promote_arguments,
    promote_inexact,
)
from axir.numpy._indexing.taking import take
from axir.numpy._shape.manipulation import broadcast_to
from axir.numpy._shape.reordering import flip

__all__ = [
    "block_diag", "circulant", "companion", "convolution_matrix", "dft", "fiedler",
    "fiedler_companion", "hadamard", "hankel", "helmert", "hilbert", "invhilbert", "invpascal",
    "leslie", "pascal", "toeplitz",
]  # fmt: skip


def _vector(name: str, x: ArrayLike) -> Value:
    x = array_argument(f"scipy_linalg.{name}", x)
    return reshape(x, (1,)) if x.ndim == 0 else x


def _reference(name: str, *arguments: Options, **options: Options) -> np.ndarray:
    """Calls SciPy's function of that name."""
    return getattr(scipy_linalg, name)(*arguments, **options)


def _places(
    rows: int, columns: int, rule: Callable[[UserObject, UserObject], UserObject]
) -> UserObject:
    if is_open((rows, columns)):
        return rule(*(broadcasted_iota(dtypes.int32, (rows, columns), axis) for axis in (0, 1)))
    return np.asarray(rule(*np.ogrid[:rows, :columns]), np.int32)


def toeplitz(c: ArrayLike, r: ArrayLike | None = None) -> Value:
    """Returns matrices with constant diagonals.

    Args:
        c: First columns, of shape (..., m).
        r: First rows, of shape (..., n), without the first element, which comes from c; by default
            the conjugate of c.

    >>> import axir.numpy as jnp
    >>> from axir.scipy.linalg import toeplitz
    >>> toeplitz(jnp.array([1, 2, 3]), jnp.array([1, 4]))
    Array([[1, 4],
           [2, 1],
           [3, 2]], dtype=int32)
    """
    c = _vector("toeplitz", c)
    r = conjugated(c) if r is None else _vector("toeplitz", r)
    c, r = promote_arguments("scipy_linalg.toeplitz", c, r)
    values = _joined(r, c)
    offset = r.shape[-1] - 1
    return _pick(values, _places(c.shape[-1], r.shape[-1], lambda i, j: offset + i - j))


def _joined(r: Value, c: Value) -> Value:
    """Returns the last elements of r backwards, then c: all values of a Toeplitz matrix."""
    batch = np.broadcast_shapes(r.shape[:-1], c.shape[:-1])
    r = broadcast_to(flip(r, -1), (*batch, r.shape[-1]))
    c = broadcast_to(c, (*batch, c.shape[-1]))
    return concatenate([r[..., :-1], c], c.ndim - 1)


def _pick(values: Value, places: UserObject) -> Value:
    picked = take(values, as_value(places.reshape(-1)), axis=-1)
    return reshape(picked, (*values.shape[:-1], *places.shape))


def circulant(c: ArrayLike) -> Value:
    """Returns matrices in which each column is the previous one, rotated down by one.

    >>> import axir.numpy as jnp
    >>> from axir.scipy.linalg import circulant
    >>> circulant(jnp.array([1, 2, 3]))
    Array([[1, 3, 2],
           [2, 1, 3],
           [3, 2, 1]], dtype=int32)
    """
    c = _vector("circulant", c)
    size = c.shape[-1]
    return _pick(c, _places(size, size, lambda i, j: (i - j) % max(size, 1)))


def hankel(c: ArrayLike, r: ArrayLike | None = None) -> Value:
    """Returns matrices with constant antidiagonals: first column c, last row r (by default zeros).

    >>> import axir.numpy as jnp
    >>> from axir.scipy.linalg import hankel
    >>> hankel(jnp.array([1, 2]))
    Array([[1, 2],
           [2, 0]], dtype=int32)
    """
    c = _vector("hankel", c)
    r = c * 0 if r is None else _vector("hankel", r)
    c, r = promote_arguments("scipy_linalg.hankel", c, r)
    values = concatenate([c, r[..., 1:]], c.ndim - 1)
    return _pick(values, _places(c.shape[-1], r.shape[-1], lambda i, j: i + j))


def convolution_matrix(a: ArrayLike, n: int, mode: str = "full") -> Value:
    """Returns the matrix that convolves vectors of n elements with a.

    Args:
        a: Vectors of shape (..., m).
        n: Number of columns.
        mode: 'full', 'same' or 'valid', as in `jnp.convolve`.

    Raises:
        ParameterError: for another mode, or if n is not positive.

    >>> import axir.numpy as jnp
    >>> from axir.scipy.linalg import convolution_matrix
    >>> convolution_matrix(jnp.array([1, 2]), 2)
    Array([[1, 0],
           [2, 1],
           [0, 2]], dtype=int32)
    """
    a = _vector("convolution_matrix", a)
    if mode not in ("full", "same", "valid") or n <= 0:
        raise ParameterError(
            f"scipy_linalg.convolution_matrix: mode={mode!r} must be 'full', 'same' or 'valid', "
            f"and n={n} positive."
        )
    size = a.shape[-1]
    zero = constant(0, a.dtype)
    still = [(0, 0, 0)] * (a.ndim - 1)
    values = pad(a, zero, (*still, (n - 1, n - 1, 0)))
    full = _places(size + n - 1, n, lambda i, j: n - 1 + i - j)
    if mode == "full":
        return _pick(values, full)
    rows = max(size, n) if mode == "same" else max(size, n) - min(size, n) + 1
    start = (full.shape[0] - rows) // 2
    return _pick(values, full[start : start + rows])


def companion(a: ArrayLike) -> Value:
    """Returns the companion matrix of a polynomial; its coefficients a are given highest first.

    Raises:
        ShapeError: for fewer than two coefficients.

    >>> import axir.numpy as jnp
    >>> from axir.scipy.linalg import companion
    >>> companion(jnp.array([1.0, -3.0, 2.0]))
    Array([[ 3., -2.],
           [ 1.,  0.]], dtype=float32)
    """
    (a,) = promote_inexact("scipy_linalg.companion", a)
    if a.ndim < 1 or a.shape[-1] < 2:
        raise ShapeError(f"scipy_linalg.companion requires two coefficients, but got {a.aval}.")
    return _with_first_row(-a[..., 1:] / a[..., :1])


def _with_first_row(row: Value, below: Value | None = None) -> Value:
    """Returns matrices with a first row, and a subdiagonal (by default of ones)."""
    size = row.shape[-1]
    first = reshape(row, (*row.shape[:-1], 1, size))
    eye = as_array(np.eye(size - 1, size).astype(row.dtype))
    rest = eye if below is None else eye * below[..., None]
    rest = broadcast_to(rest, (*row.shape[:-1], size - 1, size))
    return concatenate([first, rest], row.ndim - 1)


def leslie(f: ArrayLike, s: UserObject) -> Value:
    """Returns Leslie matrices: fecundities f in the first row, survival rates s below the diagonal.

    Raises:
        ShapeError: unless s has one element less than f.

    >>> import axir.numpy as jnp
    >>> from axir.scipy.linalg import leslie
    >>> leslie(jnp.array([0.5, 2.0]), jnp.array([0.25]))
    Array([[0.5 , 2.  ],
           [0.25, 0.  ]], dtype=float32)
    """
    f, s = promote_arguments("scipy_linalg.leslie", f, s)
    if f.ndim < 1 or s.shape != (*f.shape[:-1], f.shape[-1] - 1):
        raise ShapeError(
            f"scipy_linalg.leslie: s of shape {s.shape} must have one element less than f of shape "
            f"{f.shape}."
        )
    return _with_first_row(f, s)


def fiedler(a: ArrayLike) -> Value:
    """Returns the absolute differences of the elements of vectors.

    >>> import axir.numpy as jnp
    >>> from axir.scipy.linalg import fiedler
    >>> fiedler(jnp.array([1, 4]))
    Array([[0, 3],
           [3, 0]], dtype=int32)
    """
    a = _vector("fiedler", a)
    return abs(a[..., :, None] - a[..., None, :])


def fiedler_companion(a: ArrayLike) -> Value:
    """Returns a pentadiagonal companion matrix of a polynomial.

    Fiedler (2003), Linear Algebra Appl. 372.

    Args:
        a: A vector of coefficients from highest to lowest.

    Raises:
        ShapeError: unless a is a vector.

    >>> import axir.numpy as jnp
    >>> from axir.scipy.linalg import fiedler_companion
    >>> fiedler_companion(jnp.array([1.0, -3.0, 2.0]))
    Array([[ 3., -2.],
           [ 1.,  0.]], dtype=float32)
    """
    (a,) = promote_inexact("scipy_linalg.fiedler_companion", a)
    if a.ndim != 1:
        raise ShapeError(f"scipy_linalg.fiedler_companion takes a vector, but got {a.aval}.")
    size = a.shape[0] - 1
    if size < 1:
        return reshape(a[:0], (0, 0))
    # SciPy's form of a polynomial with the coefficients 1, 2, 3, ... tells which goes where.
    form = _reference("fiedler_companion", np.concatenate([[1.0], np.arange(2, size + 2)]))
    values = -a[1:] / a[0]
    source = np.where(form < 0, -form - 2, 0).astype(np.int32)
    result = _pick(values, source)
    ones = as_array((form == 1.0).astype(a.dtype))
    is_coefficient = as_array(form < 0)
    return _choose(is_coefficient, ones, result)


def _choose(where: Value, otherwise: Value, chosen: Value) -> Value:
    return select_n(where, otherwise, chosen)


def block_diag(*arrs: UserObject) -> Value:
    """Returns a matrix with matrices along its diagonal.

    Args:
        *arrs: Matrices; vectors count as rows, scalars as 1 by 1.

    Raises:
        ShapeError: for arrays of more than two axes.

    >>> import axir.numpy as jnp
    >>> from axir.scipy.linalg import block_diag
    >>> block_diag(jnp.ones((1, 2)), 3.0)
    Array([[1., 1., 0.],
           [0., 0., 3.]], dtype=float32)
    """
    blocks = promote_arguments("scipy_linalg.block_diag", *(arrs or (np.zeros((1, 0)),)))
    if any(x.ndim > 2 for x in blocks):
        raise ShapeError("scipy_linalg.block_diag takes arrays of at most two axes.")
    blocks = [reshape(x, (1,) * (2 - x.ndim) + tuple(x.shape)) for x in blocks]
    width = sum(x.shape[1] for x in blocks)
    rows, before = [], 0
    for x in blocks:
        after = width - before - x.shape[1]
        rows.append(pad(x, constant(0, x.dtype), ((0, 0, 0), (before, after, 0))))
        before += x.shape[1]
    return concatenate(rows, 0)


# Known numbers ---------------------------------------------------------------------------------


def _known(values: np.ndarray, dtype: DTypeLike = None) -> Value:
    return as_array(values.astype(dtypes.canonicalize_dtype(dtype or values.dtype)))


def hilbert(n: int) -> Value:
    """Returns the Hilbert matrix, with 1 / (i + j + 1) in row i and column j.

    >>> from axir.scipy.linalg import hilbert
    >>> hilbert(2)[0]
    Array([1. , 0.5], dtype=float32)
    """
    return _known(_reference("hilbert", n))


def invhilbert(n: int) -> Value:
    """Returns the inverse of the Hilbert matrix.

    >>> from axir.scipy.linalg import invhilbert
    >>> invhilbert(2)
    Array([[ 4., -6.],
           [-6., 12.]], dtype=float32)
    """
    return _known(_reference("invhilbert", n))


def pascal(n: int, kind: str | None = None) -> Value:
    """Returns Pascal's triangle as a matrix.

    Args:
        n: Number of rows.
        kind: None or 'symmetric', 'lower' or 'upper'.

    Raises:
        ParameterError: for another kind.

    >>> from axir.scipy.linalg import pascal
    >>> pascal(3, "lower")[2]
    Array([1., 2., 1.], dtype=float32)
    """
    return _known(_reference("pascal", n, _kind("pascal", kind)), np.dtype(np.float32))


def invpascal(n: int, kind: str | None = None) -> Value:
    """Returns the inverse of `pascal`.

    Raises:
        ParameterError: for another kind.

    >>> from axir.scipy.linalg import invpascal
    >>> invpascal(2)
    Array([[ 2., -1.],
           [-1.,  1.]], dtype=float32)
    """
    return _known(_reference("invpascal", n, _kind("invpascal", kind)), np.dtype(np.float64))


def _kind(name: str, kind: str | None) -> str:
    if kind not in (None, "symmetric", "lower", "upper"):
        raise ParameterError(
            f"scipy_linalg.{name}: kind={kind!r} must be 'symmetric', 'lower' or 'upper'."
        )
    return kind or "symmetric"


def hadamard(n: int, dtype: DTypeLike = int) -> Value:
    """Returns the Hadamard matrix of n rows, a power of 2.

    Raises:
        ParameterError: for another n.

    >>> from axir.scipy.linalg import hadamard
    >>> hadamard(2)
    Array([[ 1,  1],
           [ 1, -1]], dtype=int32)
    """
    if n < 1 or n & (n - 1):
        raise ParameterError(f"scipy_linalg.hadamard: n={n} must be a power of 2.")
    return _known(_reference("hadamard", n), np.dtype(dtype))


def helmert(n: int, full: bool = False) -> Value:
    """Returns a Helmert matrix: orthonormal contrasts of n values, and their mean if `full`.

    >>> from axir.scipy.linalg import helmert
    >>> helmert(3).shape
    (2, 3)
    """
    return _known(_reference("helmert", n, full=full))


def dft(n: int, scale: str | None = None, *, dtype: DTypeLike = None) -> Value:
    """Returns the matrix of the discrete Fourier transform.

    Args:
        n: Its size.
        scale: None, 'sqrtn' or 'n': the divisor.
        dtype: Complex dtype of the result.

    Raises:
        ParameterError: for another scale.

    >>> from axir.scipy.linalg import dft
    >>> dft(2).real
    Array([[ 1.,  1.],
           [ 1., -1.]], dtype=float32)
    """
    divisors = {None: 1.0, "sqrtn": math.sqrt(n), "n": float(n)}
    if scale not in divisors:
        raise ParameterError(f"scipy_linalg.dft: scale={scale!r} must be None, 'sqrtn' or 'n'.")
    dtype = None if dtype is None else np.dtype(dtype)
    return _known(_reference("dft", n) / divisors[scale], dtype)
