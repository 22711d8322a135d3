"""`schur`, `hessenberg` and `tridiagonal`: orthogonal reductions, by LAPACK only."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.errors import ParameterError, ShapeError
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.family import as_value
from axir.dialect.program.dimensions import stack_of
from axir.dialect.program.primitive import Primitive
from axir.dialect.program.rules import Operand, Value

from .blas_threads import routine
from .rules import (
    check_matrix,
    declare_decomposition,
    drawn_samples,
    each_matrix,
    random_general,
    random_hermitian,
)


def _unsupported(what: str) -> dict[str, str]:
    return {"jvp": f"{what}; use eigh, eig or svd where derivatives are needed."}


# schur -----------------------------------------------------------------------------------------


def schur(
    x: Operand,
    *,
    compute_schur_vectors: bool = True,
    sort_eig_vals: bool = False,
    select_callable: object = None,
) -> tuple[Value, ...]:
    """Factors matrices into z t z^H, with unitary z and a triangle t.

    Args:
        x: Matrices of shape (..., n, n).
        compute_schur_vectors: Whether z is returned.
        sort_eig_vals: Must be False.
        select_callable: Must be None.

    Returns:
        t, and z if requested. For real matrices t is real, with a 2 by 2 block on the diagonal for
        each pair of complex eigenvalues.

    Raises:
        ShapeError: unless the matrices are square.
        DTypeError: for dtypes other than float32, float64, complex64 and complex128.
        ParameterError: for sorted eigenvalues.
        HostCallNeededError: if it is compiled for anything but the CPU of this process.

    >>> t, z = schur(np.array([[1.0, 2.0], [0.0, 3.0]], np.float32))
    >>> t
    Array([[1., 2.],
           [0., 3.]], dtype=float32)
    """
    if sort_eig_vals or select_callable is not None:
        raise ParameterError(
            "schur: eigenvalues cannot be sorted.",
            "Leave out sort_eig_vals and select_callable.",
        )
    return tuple(_schur.bind(as_value(x), compute_schur_vectors=bool(compute_schur_vectors)))


def _infer_schur(x: ShapedArray, *, compute_schur_vectors: bool) -> list[ShapedArray]:
    check_matrix("schur", x, is_square=True)
    return [ShapedArray(x.shape, x.dtype)] * (2 if compute_schur_vectors else 1)


def _evaluate_schur(x: np.ndarray, *, compute_schur_vectors: bool) -> list[np.ndarray]:
    results = [np.empty(x.shape, x.dtype) for _ in range(1 + compute_schur_vectors)]

    def factor(matrix: np.ndarray) -> Sequence[np.ndarray] | None:
        if not np.isfinite(matrix).all():
            return None
        reduce = routine("gees", x.dtype)
        found = reduce(lambda *_: False, matrix, compute_v=compute_schur_vectors, sort_t=0)
        return None if found[-1] else (found[0], found[-3])

    return each_matrix(factor, x, results) if x.size else results


_SHAPES = [(3, 3), (2, 4, 4), (2, 2), (1, 1), (1, 2, 3, 3)]

_schur: Primitive = declare_decomposition(
    "schur",
    parameters={"compute_schur_vectors": bool},
    multiple_results=True,
    dimensions=stack_of(2),
    infer=_infer_schur,
    evaluate=_evaluate_schur,
    samples=lambda: drawn_samples(
        29,
        [*_SHAPES, (0, 0)],
        random_general,
        lambda index: {"compute_schur_vectors": index % 2 == 0},
        is_smooth=False,
    ),
    unsupported=_unsupported("the triangle of real matrices is not a smooth function of them"),
)


# hessenberg ------------------------------------------------------------------------------------


def hessenberg(a: Operand) -> tuple[Value, Value]:
    """Reduces matrices to q h q^H, where h is zero below the first subdiagonal.

    Args:
        a: Matrices of shape (..., n, n).

    Returns:
        h, with the vectors of q's Householder reflections below its subdiagonal, and their factors
        tau of shape (..., n - 1).

    Raises:
        ShapeError: unless the matrices are square and not empty.
        DTypeError: for dtypes other than float32, float64, complex64 and complex128.
        HostCallNeededError: if it is compiled for anything but the CPU of this process.

    >>> hessenberg(np.eye(2, dtype=np.float32))[1]
    Array([0.], dtype=float32)
    """
    h, taus = _hessenberg.bind(as_value(a))
    return h, taus


def _infer_hessenberg(a: ShapedArray) -> tuple[ShapedArray, ShapedArray]:
    check_matrix("hessenberg", a, is_square=True)
    _check_not_empty("hessenberg", a)
    return ShapedArray(a.shape, a.dtype), ShapedArray((*a.shape[:-2], a.shape[-1] - 1), a.dtype)


def _check_not_empty(name: str, a: ShapedArray) -> None:
    if a.shape[-1] == 0:
        raise ShapeError(f"{name} requires matrices of at least one row, but got {a}.")


def _evaluate_hessenberg(a: np.ndarray) -> list[np.ndarray]:
    results = [np.empty(t.shape, t.dtype) for t in _infer_hessenberg(ShapedArray(a.shape, a.dtype))]

    def reduce(matrix: np.ndarray) -> Sequence[np.ndarray]:
        h, taus, _ = routine("gehrd", a.dtype)(matrix)
        return h, taus[: len(matrix) - 1]

    return each_matrix(reduce, a, results)


_hessenberg: Primitive = declare_decomposition(
    "hessenberg",
    multiple_results=True,
    dimensions=stack_of(2),
    infer=_infer_hessenberg,
    evaluate=_evaluate_hessenberg,
    samples=lambda: drawn_samples(30, _SHAPES, random_general, is_smooth=False),
    unsupported=_unsupported("reflections are an intermediate form"),
)


# tridiagonal -----------------------------------------------------------------------------------


def tridiagonal(a: Operand, *, lower: bool = True) -> tuple[Value, Value, Value, Value]:
    """Reduces Hermitian matrices to q t q^H, where t is real and tridiagonal.

    Args:
        a: Matrices of shape (..., n, n).
        lower: Whether the lower triangle is read, else the upper one.

    Returns:
        The vectors of q's Householder reflections, in the triangle that is read; the diagonal (...,
        n) and the second diagonal (..., n - 1) of t; and the factors tau (..., n - 1).

    Raises:
        ShapeError: unless the matrices are square and not empty.
        DTypeError: for dtypes other than float32, float64, complex64 and complex128.
        HostCallNeededError: if it is compiled for anything but the CPU of this process.

    >>> tridiagonal(np.diag(np.array([1.0, 2.0], np.float32)))[1]
    Array([1., 2.], dtype=float32)
    """
    packed, main, other, taus = _tridiagonal.bind(as_value(a), lower=bool(lower))
    return packed, main, other, taus


def _infer_tridiagonal(
    a: ShapedArray, *, lower: bool
) -> tuple[ShapedArray, ShapedArray, ShapedArray, ShapedArray]:
    check_matrix("tridiagonal", a, is_square=True)
    _check_not_empty("tridiagonal", a)
    batch, size, real = a.shape[:-2], a.shape[-1], dtypes.real_dtype(a.dtype)
    return (
        ShapedArray(a.shape, a.dtype),
        ShapedArray((*batch, size), real),
        ShapedArray((*batch, size - 1), real),
        ShapedArray((*batch, size - 1), a.dtype),
    )


def _evaluate_tridiagonal(a: np.ndarray, *, lower: bool) -> list[np.ndarray]:
    types = _infer_tridiagonal(ShapedArray(a.shape, a.dtype), lower=lower)
    results = [np.empty(t.shape, t.dtype) for t in types]
    reduce = routine("hetrd" if a.dtype.kind == "c" else "sytrd", a.dtype)
    return each_matrix(partial(reduce, lower=lower), a, results)


_tridiagonal: Primitive = declare_decomposition(
    "tridiagonal",
    parameters={"lower": bool},
    multiple_results=True,
    dimensions=stack_of(2),
    infer=_infer_tridiagonal,
    evaluate=_evaluate_tridiagonal,
    samples=lambda: drawn_samples(
        31,
        [(3, 3), (2, 4, 4), (2, 2), (5, 5), (1, 1)],
        random_hermitian,
        lambda index: {"lower": index % 2 == 0},
        is_smooth=False,
    ),
    unsupported=_unsupported("reflections are an intermediate form"),
)
