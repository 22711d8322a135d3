"""Linear algebra: decompositions of matrices, and equations with triangular ones.

An op per decomposition, with LAPACK as the evaluator and, where the code runs in the calling
process, as the lowering. Elsewhere the portable algorithms of `blocked`, `householder` and `jacobi`
stand in, written with elementary ops and loops. Elsewhere: solving, inverses, determinants and
functions of matrices, which the frontend makes of these ops.
"""

from __future__ import annotations

from . import (
    cholesky,
    eig,
    eigh,
    geqrf,
    lu,
    lu_solve,
    qr,
    schur,
    svd,
    triangular_solve,
    tridiagonal_solve,
)

__all__ = [
    "cholesky", "eig", "eigh", "geqrf", "lu", "lu_solve", "qr", "schur", "svd", "triangular_solve",
    "tridiagonal_solve",
]  # fmt: skip
