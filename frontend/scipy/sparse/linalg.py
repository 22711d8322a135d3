"""`axir.scipy.sparse.linalg`: linear systems solved by iteration.

The matrix is a function that multiplies by it, an array, or anything with `@`, such as the sparse
arrays of `axir.experimental.sparse`; vectors are arrays or trees of arrays. Derivatives are those
of the solution (`axir.lax.custom_linear_solve`), found by solving once more, and as precise as that
solution is. Elsewhere: `gmres` (`_gmres.py`).

>>> import axir.numpy as jnp
>>> from axir.scipy.sparse.linalg import cg
>>> x, info = cg(jnp.array([[4.0, 1.0], [1.0, 3.0]]), jnp.array([1.0, 2.0]))
>>> x.round(4), int(info)
(Array([0.0909, 0.6364], dtype=float32), 0)
"""

from __future__ import annotations

import axir.numpy as jnp
from axir import lax
from axir._trees import tree
from axir.dialect.core.annotations import PyTree, Tree, UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.program.rules import Value

from ._gmres import gmres
from ._vectors import (
    Operator,
    chosen,
    combined,
    difference,
    dot,
    is_real,
    make_system,
    solve_system,
    squared_norm,
)

__all__ = ["bicgstab", "cg", "gmres"]


def __dir__() -> list[str]:
    return __all__


def cg(
    A: object,
    b: Tree,
    x0: Tree | None = None,
    *,
    tol: ArrayLike = 1e-5,
    atol: ArrayLike = 0.0,
    maxiter: object = None,
    M: object = None,
) -> tuple[PyTree, Value]:
    """Solves A x = b by conjugate gradients; the matrix must be Hermitian and positive definite.

    Args:
        A: Function that multiplies a vector like `b` by the matrix, square matrix, or object with
            `@`.
        b: The right-hand side, an array of any shape or a tree of arrays; integers become floats.
        x0: The starting point, a tree like `b`; by default zeros.
        tol, atol: The residual is small enough when its norm is at most max(tol * norm(b), atol).
        maxiter: The most passes; by default ten times the number of elements of `b`.
        M: Preconditioner, an approximate inverse of the matrix, given as `A` is.

    Returns:
        x, like `b`, and information as SciPy gives it, an int32: 0 if the residual is small enough,
        the number of passes if these came to an end before, -1 for a result that is not finite.

    Raises:
        TreeError, ShapeError: if `x0` or a product is unlike `b`.
        MatrixShapeError: if `A` or `M` is an array and no square matrix.
        NonArrayArgumentError: if it cannot multiply.

    The algorithm is from Hestenes and Stiefel (1952), with a preconditioner: Golub and Van Loan,
    Matrix Computations (4th ed.), algorithm 11.5.1.

    >>> import axir, axir.numpy as jnp
    >>> multiply = lambda x: {"a": 2 * x["a"], "b": 4 * x["b"]}
    >>> cg(multiply, {"a": jnp.ones(2), "b": 1.0})[0]
    {'a': Array([0.5, 0.5], dtype=float32), 'b': Array(0.25, dtype=float32, weak_type=True)}
    >>> float(axir.grad(lambda a: cg(lambda x: a * x, 6.0)[0])(2.0))
    -1.5
    """
    system = make_system("cg", A, b, x0, tol, atol, maxiter, M)
    # A matrix that is real and positive definite is symmetric, too.
    return solve_system(system, _conjugate_gradients, is_real(system.b))


def _conjugate_gradients(
    product: Operator, b: Tree, x: Tree, precondition: Operator | None, limit: Value,
    maxiter: UserObject,
) -> tuple[Tree, Value]:  # fmt: skip
    State = tuple[PyTree, PyTree, PyTree, Value, Value, Value]
    # gamma is the product of the residual with the preconditioned one.

    def goes_on(state: State) -> Value:
        _, _, _, _, square, count = state
        return (square > limit * limit) & (count < maxiter)

    def advance(state: State) -> State:
        x, residual, direction, gamma, _, count = state
        changed = product(direction)
        step = gamma / jnp.real(dot(direction, changed))
        x = combined(x, step, direction)
        residual = combined(residual, -step, changed)
        z, gamma_, square = measured(residual)
        return x, residual, combined(z, gamma_ / gamma, direction), gamma_, square, count + 1

    def measured(residual: Tree) -> tuple[Tree, Value, Value]:
        square = squared_norm(residual)
        if precondition is None:
            return residual, square, square
        z = precondition(residual)
        return z, jnp.real(dot(residual, z)), square

    residual = difference(b, product(x))
    z, gamma, square = measured(residual)
    start = (x, residual, z, gamma, square, jnp.int32(0))
    x, _, _, _, square, count = lax.while_loop(goes_on, advance, start)
    return x, _information(square, limit, count)


def _information(square: Value, limit: Value, count: Value) -> Value:
    """Returns 0 for a residual that is small enough, -1 if it is not finite, else the passes."""
    failure = jnp.where(jnp.isfinite(square), jnp.maximum(count, 1), -1)
    return jnp.where(square <= limit * limit, 0, failure).astype(jnp.int32)


def bicgstab(
    A: object,
    b: Tree,
    x0: Tree | None = None,
    *,
    tol: ArrayLike = 1e-5,
    atol: ArrayLike = 0.0,
    maxiter: object = None,
    M: object = None,
) -> tuple[PyTree, Value]:
    """Solves A x = b by stabilized biconjugate gradients, for any matrix.

    Args:
        A: Function that multiplies a vector like `b` by the matrix, square matrix, or object with
            `@`.
        b: The right-hand side, an array of any shape or a tree of arrays; integers become floats.
        x0: The starting point, a tree like `b`; by default zeros.
        tol, atol: The residual is small enough when its norm is at most max(tol * norm(b), atol).
        maxiter: The most passes; by default ten times the number of elements of `b`.
        M: Preconditioner, an approximate inverse of the matrix, given as `A` is. A function serves
            the transposed system of derivatives in reverse mode as well.

    Returns:
        x, like `b`, and information as SciPy gives it, an int32: 0 if the residual is small enough,
        the number of passes if these came to an end before, -1 for a result that is not finite,
        -10 and -11 if the iteration broke down because rho, or alpha or omega, became 0.

    Raises:
        TreeError, ShapeError: if `x0` or a product is unlike `b`.
        MatrixShapeError: if `A` or `M` is an array and no square matrix.
        NonArrayArgumentError: if it cannot multiply.

    The algorithm is from H. van der Vorst (1992), SIAM J. Sci. Stat. Comput. 13(2).

    >>> import axir.numpy as jnp
    >>> x, info = bicgstab(jnp.array([[2.0, 1.0], [0.0, 4.0]]), jnp.array([3.0, 4.0]))
    >>> x.round(4), int(info)
    (Array([1., 1.], dtype=float32), 0)
    """
    system = make_system("bicgstab", A, b, x0, tol, atol, maxiter, M)
    return solve_system(system, _stabilized)


def _stabilized(
    product: Operator, b: Tree, x: Tree, precondition: Operator | None, limit: Value,
    maxiter: UserObject,
) -> tuple[Tree, Value]:  # fmt: skip
    prepared = precondition or (lambda vector: vector)
    residual = shadow = difference(b, product(x))
    State = tuple[PyTree, PyTree, PyTree, PyTree, tuple[Value, Value, Value], Value, Value]

    def goes_on(state: State) -> Value:
        *_, square, count = state
        return (square > limit * limit) & (count < maxiter) & (count >= 0)

    def advance(state: State) -> State:
        x, residual, direction, changed, (rho, alpha, omega), _, count = state
        rho_ = dot(shadow, residual)
        beta = rho_ / rho * (alpha / omega)
        direction = combined(residual, beta, combined(direction, -omega, changed))
        toward = prepared(direction)
        changed = product(toward)
        alpha = rho_ / dot(shadow, changed)
        half = combined(residual, -alpha, changed)
        is_done = squared_norm(half) <= limit * limit
        rest = prepared(half)
        moved = product(rest)
        length = dot(moved, moved)
        omega = jnp.where(length == 0, 0, dot(moved, half) / length)
        x = combined(x, alpha, toward)
        x = chosen(is_done, x, combined(x, omega, rest))
        residual = chosen(is_done, half, combined(half, -omega, moved))
        is_stuck = ((omega == 0) | (alpha == 0)) & ~is_done
        count = jnp.where(rho_ == 0, -10, jnp.where(is_stuck, -11, count + 1))
        return x, residual, direction, changed, (rho_, alpha, omega), squared_norm(residual), count

    zeros = tree.map(jnp.zeros_like, residual)
    one = jnp.ones_like(dot(shadow, residual))
    square = squared_norm(residual)
    start = (x, residual, zeros, zeros, (one, one, one), square, jnp.int32(0))
    x, _, _, _, _, square, count = lax.while_loop(goes_on, advance, start)
    found = _information(square, limit, count)
    return x, jnp.where((count < 0) & (found != 0), count, found)
