"""The results of minimizations."""

from __future__ import annotations

from typing import NamedTuple

from axir.dialect.program.rules import Value


class OptimizeResults(NamedTuple):
    """The end point of a minimization.

    Attributes:
        x: The point, of shape (n,).
        success: Whether it is a minimum within the tolerances, a bool.
        status: Why it ended, an int32: see `minimize`.
        fun: The function at the point, a scalar.
        jac: Its gradient there, of shape (n,).
        hess_inv: An estimate of the inverse of the Hessian, of shape (n, n); None by L-BFGS.
        nfev: How often the function was evaluated, an int32.
        njev: How often its gradient was, an int32.
        nit: The number of passes, an int32.
    """

    x: Value
    success: Value
    status: Value
    fun: Value
    jac: Value
    hess_inv: Value | None
    nfev: Value
    njev: Value
    nit: Value
