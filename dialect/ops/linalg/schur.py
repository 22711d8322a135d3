"""`schur`, `hessenberg` and `tridiagonal`: orthogonal reductions, by LAPACK only."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import dtypes
from ...errors import ParameterError
from ...primitive import Primitive, Sample
from ...types import ShapedArray
from ..family import Value, as_value
from ..table import declare
from .routines import routine
from .rules import (
    DOMAIN,
    NOT_LINEAR,
    batch_in_front,
    check_matrix,
    lower_decomposition,
    random_hermitian,
)
from .stacks import with_stack_beside_nan


def _unsupported(what: str) -> dict[str, str]:
    return {**NOT_LINEAR, "jvp": f"{what}; use eigh, eig or svd where derivatives are needed."}


# schur -----------------------------------------------------------------------------------------


def schur(
    x: Any,
    *,
    compute_schur_vectors: bool = True,
    sort_eig_vals: bool = False,
    select_callable: Any = None,
) -> tuple[Value, ...]:
    """Factors matrices into z t z^H, with unitary z and a triangle t.

    Args:
        x: Matrices of shape (..., n, n).
        compute_schur_vectors: Whether z is returned.
        sort_eig_vals: Must be False.
        select_callable: Must be None.

    Returns:
        t, and z if asked for. Of real matrices t is real, with a 2 by 2 block on the diagonal for
        each pair of complex eigenvalues.

    Raises:
        ShapeError: unless the matrices are square.
        DTypeError: for dtypes other than float32, float64, complex64 and complex128.
        ParameterError: for sorted eigenvalues.
        HostCallNeededError: where it is compiled for elsewhere than the CPU of this process.

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
    results = [np.full(x.shape, np.nan, x.dtype) for _ in range(1 + compute_schur_vectors)]
    if not x.size:
        return results
    factor = routine("gees", x.dtype)
    for place in np.ndindex(*x.shape[:-2]):
        if not np.isfinite(x[place]).all():
            continue
        found = factor(lambda *_: False, x[place], compute_v=compute_schur_vectors, sort_t=0)
        if not found[-1]:
            values = (found[0], found[-3])
            for result, value in zip(results, values, strict=False):
                result[place] = value
    return results


def _general_matrices(seed: int) -> list[np.ndarray]:
    generator = np.random.default_rng(seed)
    matrices = []
    for index, shape in enumerate([(3, 3), (2, 4, 4), (2, 2), (1, 1), (0, 0), (1, 2, 3, 3)]):
        x = generator.standard_normal(shape)
        if dtypes.is_complex(DOMAIN[index % 4]):
            x = x + 1j * generator.standard_normal(shape)
        matrices.append(x.astype(DOMAIN[index % 4]))
    return matrices


_schur: Primitive = declare(
    "schur",
    multiple_results=True,
    infer=_infer_schur,
    evaluate=_evaluate_schur,
    lower=lower_decomposition("schur", _evaluate_schur, None),
    samples=lambda: with_stack_beside_nan(
        [
            Sample((x,), {"compute_schur_vectors": i % 2 == 0}, is_smooth=False)
            for i, x in enumerate(_general_matrices(29))
        ]
    ),
    unsupported=_unsupported("the triangle of real matrices is not a smooth function of them"),
)
_schur.batch = batch_in_front(_schur)


# hessenberg ------------------------------------------------------------------------------------


def hessenberg(a: Any) -> tuple[Value, Value]:
    """Reduces matrices to q h q^H, where h is zero below the first subdiagonal.

    Args:
        a: Matrices of shape (..., n, n).

    Returns:
        h, below whose subdiagonal the vectors of the Householder reflections stand that make up q,
        and their factors tau of shape (..., n - 1).

    Raises:
        ShapeError: unless the matrices are square and not empty.
        DTypeError: for dtypes other than float32, float64, complex64 and complex128.
        HostCallNeededError: where it is compiled for elsewhere than the CPU of this process.

    >>> hessenberg(np.eye(2, dtype=np.float32))[1]
    Array([0.], dtype=float32)
    """
    h, taus = _hessenberg.bind(as_value(a))
    return h, taus


def _infer_hessenberg(a: ShapedArray) -> list[ShapedArray]:
    check_matrix("hessenberg", a, is_square=True)
    _check_not_empty("hessenberg", a)
    return [
        ShapedArray(a.shape, a.dtype), ShapedArray((*a.shape[:-2], a.shape[-1] - 1), a.dtype)
    ]  # fmt: skip


def _check_not_empty(name: str, a: ShapedArray) -> None:
    from ...errors import ShapeError

    if a.shape[-1] == 0:
        raise ShapeError(f"{name} requires matrices of at least one row, but got {a}.")


def _evaluate_hessenberg(a: np.ndarray) -> list[np.ndarray]:
    h = np.empty(a.shape, a.dtype)
    taus = np.empty((*a.shape[:-2], a.shape[-1] - 1), a.dtype)
    reduce = routine("gehrd", a.dtype)
    for place in np.ndindex(*a.shape[:-2]):
        h[place], found, _ = reduce(a[place])
        taus[place] = found[: taus.shape[-1]]
    return [h, taus]


_hessenberg: Primitive = declare(
    "hessenberg",
    multiple_results=True,
    infer=_infer_hessenberg,
    evaluate=_evaluate_hessenberg,
    lower=lower_decomposition("hessenberg", _evaluate_hessenberg, None),
    samples=lambda: with_stack_beside_nan(
        [Sample((x,), is_smooth=False) for x in _general_matrices(30) if x.size]
    ),
    unsupported=_unsupported("reflections are an intermediate form"),
)
_hessenberg.batch = batch_in_front(_hessenberg)


# tridiagonal -----------------------------------------------------------------------------------


def tridiagonal(a: Any, *, lower: bool = True) -> tuple[Value, Value, Value, Value]:
    """Reduces Hermitian matrices to q t q^H, where t is real and tridiagonal.

    Args:
        a: Matrices of shape (..., n, n).
        lower: Whether the lower triangle is read, else the upper one.

    Returns:
        The vectors of the Householder reflections that make up q, in the triangle read; the
        diagonal (..., n) and the other one (..., n - 1) of t; and the factors tau (..., n - 1).

    Raises:
        ShapeError: unless the matrices are square and not empty.
        DTypeError: for dtypes other than float32, float64, complex64 and complex128.
        HostCallNeededError: where it is compiled for elsewhere than the CPU of this process.

    >>> tridiagonal(np.diag(np.array([1.0, 2.0], np.float32)))[1]
    Array([1., 2.], dtype=float32)
    """
    packed, main, other, taus = _tridiagonal.bind(as_value(a), lower=bool(lower))
    return packed, main, other, taus


def _infer_tridiagonal(a: ShapedArray, *, lower: bool) -> list[ShapedArray]:
    check_matrix("tridiagonal", a, is_square=True)
    _check_not_empty("tridiagonal", a)
    batch, size, real = a.shape[:-2], a.shape[-1], dtypes.real_dtype(a.dtype)
    return [
        ShapedArray(a.shape, a.dtype),
        ShapedArray((*batch, size), real),
        ShapedArray((*batch, size - 1), real),
        ShapedArray((*batch, size - 1), a.dtype),
    ]


def _evaluate_tridiagonal(a: np.ndarray, *, lower: bool) -> list[np.ndarray]:
    types = _infer_tridiagonal(ShapedArray(a.shape, a.dtype), lower=lower)
    results = [np.empty(t.shape, t.dtype) for t in types]
    reduce = routine("hetrd" if a.dtype.kind == "c" else "sytrd", a.dtype)
    for place in np.ndindex(*a.shape[:-2]):
        for result, value in zip(results, reduce(a[place], lower=lower), strict=False):
            result[place] = value
    return results


def _tridiagonal_samples() -> list[Sample]:
    generator = np.random.default_rng(31)
    shapes = [(3, 3), (2, 4, 4), (2, 2), (5, 5), (1, 1)]
    return with_stack_beside_nan(
        [
            Sample(
                (random_hermitian(generator, shape, DOMAIN[i % 4]),),
                {"lower": i % 2 == 0},
                is_smooth=False,
            )
            for i, shape in enumerate(shapes)
        ]
    )


_tridiagonal: Primitive = declare(
    "tridiagonal",
    multiple_results=True,
    infer=_infer_tridiagonal,
    evaluate=_evaluate_tridiagonal,
    lower=lower_decomposition("tridiagonal", _evaluate_tridiagonal, None),
    samples=_tridiagonal_samples,
    unsupported=_unsupported("reflections are an intermediate form"),
)
_tridiagonal.batch = batch_in_front(_tridiagonal)
