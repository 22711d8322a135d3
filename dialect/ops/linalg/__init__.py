"""Linear algebra: decompositions of matrices, and triangular equations.

Each decomposition is an op. LAPACK evaluates it, and is also its lowering if the code runs in the
calling process. In other programs the portable algorithms of `blocked`, `householder` and `jacobi`
replace LAPACK; they are written with elementary ops and loops. Elsewhere: solving, inverses,
determinants and functions of matrices, which the frontend builds from these ops.
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
