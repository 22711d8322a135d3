"""`gmres`: generalized minimal residuals, with restarts (found in `axir.scipy.sparse.linalg`)."""

from __future__ import annotations

import axir.numpy as jnp
from axir import lax
from axir._trees import tree
from axir.dialect.core.annotations import PyTree, Tree, UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import ParameterError
from axir.dialect.program.rules import Value
from axir.scipy.linalg import solve_triangular

from ._vectors import (
    HIGHEST,
    Iteration,
    Operator,
    difference,
    dot,
    make_system,
    solve_system,
    squared_norm,
)


def gmres(
    A: object,
    b: Tree,
    x0: Tree | None = None,
    *,
    tol: ArrayLike = 1e-5,
    atol: ArrayLike = 0.0,
    restart: int = 20,
    maxiter: object = None,
    M: object = None,
    solve_method: str = "batched",
) -> tuple[PyTree, Value]:
    """Solves A x = b by generalized minimal residuals, for any matrix.

    Args:
        A: Function that multiplies a vector like `b` by the matrix, square matrix, or object with
            `@`.
        b: The right-hand side, an array of any shape or a tree of arrays; integers become floats.
        x0: The starting point, a tree like `b`; by default zeros.
        tol, atol: The residual is small enough when its norm is at most max(tol * norm(b), atol).
        restart: The most dimensions of the Krylov space, which is begun anew after that.
        maxiter: The most such spaces; by default ten times the number of elements of `b`.
        M: Preconditioner, an approximate inverse of the matrix, given as `A` is. A function serves
            the transposed system of derivatives in reverse mode as well.
        solve_method: 'batched' builds each space to its end, 'incremental' no further than the
            residual asks for.

    Returns:
        x, like `b`, and information as SciPy gives it, an int32: 0 if the residual is small enough,
        the number of Krylov spaces if it is not, -1 for a result that is not finite.

    Raises:
        ParameterError: for another `solve_method`, or a `restart` below 1.
        TreeError, ShapeError: if `x0` or a product is unlike `b`.
        MatrixShapeError: if `A` or `M` is an array and no square matrix.
        NonArrayArgumentError: if it cannot multiply.

    The algorithm is from Saad and Schultz (1986), SIAM J. Sci. Stat. Comput. 7(3), with
    Gram-Schmidt orthogonalization repeated once and Givens rotations.

    >>> import axir.numpy as jnp
    >>> from axir.scipy.sparse.linalg import gmres
    >>> x, info = gmres(jnp.array([[2.0, 1.0], [0.0, 4.0]]), jnp.array([3.0, 4.0]))
    >>> x.round(4), int(info)
    (Array([1., 1.], dtype=float32), 0)
    """
    if solve_method not in ("batched", "incremental"):
        raise ParameterError(
            f"gmres: solve_method is {solve_method!r}.", "It is 'batched' or 'incremental'."
        )
    if restart < 1:
        raise ParameterError(f"gmres: restart is {restart}.", "It is at least 1.")
    system = make_system("gmres", A, b, x0, tol, atol, maxiter, M)
    size = sum(leaf.size for leaf in tree.leaves(system.b))
    return solve_system(system, _restarted(min(restart, size), solve_method == "incremental"))


def _restarted(restart: int, stops_early: bool) -> Iteration:
    """Returns the iteration over Krylov spaces."""

    def iterate(
        product: Operator, b: Tree, x: Tree, precondition: Operator | None, limit: Value,
        maxiter: UserObject,
    ) -> tuple[Tree, Value]:  # fmt: skip
        prepared = precondition or (lambda vector: vector)
        State = tuple[PyTree, PyTree, Value, Value, Value]

        def goes_on(state: State) -> Value:
            _, _, norm, is_stuck, count = state
            return (norm > limit) & (count < maxiter) & ~is_stuck

        def advance(state: State) -> State:
            x, residual, norm, _, count = state
            share = limit / norm if stops_early else jnp.zeros_like(norm)
            moved = _nearest(lambda v: prepared(product(v)), prepared(residual), restart, share)
            x_ = tree.map(jnp.add, x, moved)
            residual_ = difference(b, product(x_))
            norm_ = jnp.sqrt(squared_norm(residual_))
            return x_, residual_, norm_, ~(norm_ < norm), count + 1

        residual = difference(b, product(x))
        norm = jnp.sqrt(squared_norm(residual))
        start = (x, residual, norm, jnp.bool_(False), jnp.int32(0))
        x, _, norm, _, count = lax.while_loop(goes_on, advance, start)
        failure = jnp.where(jnp.isfinite(norm), jnp.maximum(count, 1), -1)
        return x, jnp.where(norm <= limit, 0, failure).astype(jnp.int32)

    return iterate


def _nearest(product: Operator, residual: Tree, restart: int, share: Value) -> Tree:
    """Returns the vector of a Krylov space with the product nearest to a residual.

    Args:
        product: Multiplies by the matrix and the preconditioner.
        residual: The vector that begins the space.
        restart: The most dimensions of the space.
        share: It ends where this share of the norm of the residual is left over.
    """
    norm = jnp.sqrt(squared_norm(residual))
    epsilon = jnp.finfo(norm.dtype).eps
    first = tree.map(lambda r: r / _or_one(norm).astype(r.dtype), residual)
    basis = tree.map(lambda r: jnp.zeros((restart + 1, *r.shape), r.dtype).at[0].set(r), first)
    dtype = dot(residual, residual).dtype
    # Columns that are not reached stay identity columns, so that the equations stay solvable.
    triangle = jnp.eye(restart + 1, restart, dtype=dtype)
    rotations = jnp.zeros((restart, 2), dtype)
    right = jnp.zeros(restart + 1, dtype).at[0].set(norm.astype(dtype))
    State = tuple[PyTree, Value, Value, Value, Value]

    def goes_on(state: State) -> Value:
        _, _, _, right, count = state
        return (count < restart) & (jnp.abs(right[count]) > share * norm)

    def advance(state: State) -> State:
        basis, triangle, rotations, right, k = state
        vector = product(tree.map(lambda v: v[k], basis))
        before = jnp.sqrt(squared_norm(vector))
        vector, column = _orthogonalized(basis, vector)
        length = jnp.sqrt(squared_norm(vector))
        length = jnp.where(length > epsilon * before, length, 0)  # the space holds it already
        basis = tree.map(
            lambda v, x: v.at[k + 1].set(
                jnp.where(length == 0, 0, x / _or_one(length).astype(x.dtype))
            ),
            basis,
            vector,
        )
        column = column.at[k + 1].set(length.astype(dtype))
        column = lax.fori_loop(0, k, lambda j, c: _rotated(c, j, rotations[j]), column)
        rotation = _rotation(column[k], column[k + 1])
        column = _rotated(column, k, rotation)
        right = _rotated(right, k, rotation)
        # Where the matrix is singular nothing is gained in this direction.
        is_void = column[k] == 0
        right = jnp.where(is_void, right.at[k].set(0), right)
        column = column.at[k].set(jnp.where(is_void, 1, column[k])).at[k + 1].set(0)
        return basis, triangle.at[:, k].set(column), rotations.at[k].set(rotation), right, k + 1

    start = (basis, triangle, rotations, right, jnp.int32(0))
    basis, triangle, _, right, count = lax.while_loop(goes_on, advance, start)
    right = jnp.where(jnp.arange(restart) < count, right[:-1], 0)
    shares = solve_triangular(triangle[:-1], right)
    return tree.map(
        lambda v: jnp.tensordot(shares.astype(v.dtype), v[:-1], axes=1, precision=HIGHEST), basis
    )


def _or_one(x: Value) -> Value:
    return jnp.where(x == 0, 1, x)


def _orthogonalized(basis: Tree, vector: Tree) -> tuple[Tree, Value]:
    """Returns the part of a vector orthogonal to the basis, and its products with the basis.

    Done twice, because the first pass leaves rounding errors of the order of the removed part.
    """

    def once(vector: Tree) -> tuple[PyTree, Value]:
        leaves = zip(tree.leaves(basis), tree.leaves(vector), strict=True)
        first, *others = [
            jnp.tensordot(jnp.conj(v), x, axes=x.ndim, precision=HIGHEST) for v, x in leaves
        ]
        products = sum(others, first)
        return tree.map(
            lambda v, x: x - jnp.tensordot(products.astype(v.dtype), v, axes=1, precision=HIGHEST),
            basis,
            vector,
        ), products

    vector, products = once(vector)
    vector, further = once(vector)
    return vector, products + further


def _rotation(a: Value, b: Value) -> Value:
    """Returns cosine and sine of the rotation that takes (a, b) to (r, 0); b is real."""
    size = jnp.abs(a)
    hypotenuse = jnp.hypot(size, jnp.real(b))
    phase = jnp.where(size == 0, 1, a / _or_one(size).astype(a.dtype))
    cosine = jnp.where(hypotenuse == 0, 1, size / _or_one(hypotenuse)).astype(a.dtype)
    sine = phase * (jnp.real(b) / _or_one(hypotenuse)).astype(a.dtype)
    return jnp.stack([cosine, sine])


def _rotated(x: Value, k: Value, rotation: Value) -> Value:
    """Applies a rotation to the elements k and k + 1 of a vector."""
    cosine, sine = rotation[0], rotation[1]
    first, second = x[k], x[k + 1]
    x = x.at[k].set(cosine * first + sine * second)
    return x.at[k + 1].set(cosine * second - jnp.conj(sine) * first)
