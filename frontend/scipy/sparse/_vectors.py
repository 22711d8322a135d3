"""Shared by the iterative solvers: trees of arrays as vectors, operators, the solved system.

Elsewhere: the iterations themselves (`linalg.py`, `_gmres.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import axir.numpy as jnp
from axir import lax
from axir._trees import tree
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import PyTree, Tree, UserObject
from axir.dialect.core.array import Array, ArrayLike
from axir.dialect.core.errors import MatrixShapeError, NonArrayArgumentError, ShapeError, TreeError
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.program.rules import Value
from axir.numpy._arguments.promotion import promote_inexact

Operator = Callable[[UserObject], UserObject]
# (product, b, x0, preconditioner, the norm that the residual may have, maxiter) -> (x, info)
Iteration = Callable[..., tuple[PyTree, Value]]

HIGHEST = lax.Precision.HIGHEST


# Vectors ---------------------------------------------------------------------------------------


def dot(x: Tree, y: Tree) -> Value:
    """Returns the product of vectors, the first one conjugated, of their common dtype."""
    pairs = zip(tree.leaves(x), tree.leaves(y), strict=True)
    first, *others = [jnp.vdot(a, b, precision=HIGHEST) for a, b in pairs]
    for other in others:
        first = first + other
    return first


def squared_norm(x: Tree) -> Value:
    """Returns the sum of the squares of absolute values, of a real dtype."""
    return jnp.real(dot(x, x))


def combined(x: Tree, factor: Value, y: Tree) -> PyTree:
    """Returns x + factor * y; elements keep their dtypes."""
    return tree.map(lambda a, b: a + (factor * b).astype(a.dtype), x, y)


def difference(x: Tree, y: Tree) -> PyTree:
    """Returns x - y."""
    return tree.map(lambda a, b: a - b, x, y)


def chosen(condition: Value, x: Tree, y: Tree) -> PyTree:
    """Returns x where a scalar condition holds, else y."""
    return tree.map(lambda a, b: jnp.where(condition, a, b), x, y)


# Systems ---------------------------------------------------------------------------------------


class System(NamedTuple):
    """A linear system as its solvers see it.

    Attributes:
        product: Multiplies by the matrix.
        b: The right-hand side: arrays of inexact dtypes.
        x0: The starting point, of the same types.
        precondition: Multiplies by the preconditioner; None for the identity.
        precondition_transposed: The preconditioner of the transposed system.
        tol, atol: The norm of a residual is small enough at max(tol * norm(b), atol).
        maxiter: The most passes.
    """

    product: Operator
    b: PyTree
    x0: PyTree
    precondition: Operator | None
    precondition_transposed: Operator | None
    tol: ArrayLike
    atol: ArrayLike
    maxiter: UserObject


def make_system(
    name: str, A: object, b: Tree, x0: Tree, tol: ArrayLike, atol: ArrayLike,
    maxiter: object, M: object,
) -> System:  # fmt: skip
    """Checks the arguments of a solver.

    Raises:
        TreeError: if `x0` is of another structure than `b`.
        ShapeError: if its arrays are of other shapes.
        MatrixShapeError: if `A` or `M` is no square matrix.
        NonArrayArgumentError: if it is neither a function nor multiplies.
    """
    b = tree.map(lambda leaf: promote_inexact(name, leaf)[0], b)
    x0 = tree.map(jnp.zeros_like, b) if x0 is None else x0
    if tree.structure(x0) != tree.structure(b):
        raise TreeError(
            f"{name}: x0 has structure {tree.structure(x0)}, but b has {tree.structure(b)}.",
            "Start with a tree like b, or with None for zeros.",
        )
    for start, right in zip(tree.leaves(x0), tree.leaves(b), strict=True):
        if jnp.shape(start) != right.shape:
            raise ShapeError(
                f"{name}: x0 holds an array of shape {jnp.shape(start)} where b has one of shape "
                f"{right.shape}.",
                "Arrays of x0 and b have the same shapes.",
            )
    x0 = tree.map(lambda start, right: jnp.asarray(start).astype(right.dtype), x0, b)
    maxiter = 10 * sum(leaf.size for leaf in tree.leaves(b)) if maxiter is None else maxiter
    product, _ = _operators(name, "A", A)
    precondition, transposed = (None, None) if M is None else _operators(name, "M", M)
    return System(product, b, x0, precondition, transposed, tol, atol, maxiter)


def _operators(name: str, argument: str, a: UserObject) -> tuple[Operator, Operator]:
    """Returns the functions that multiply by a matrix and by its transpose.

    A given function serves as both.
    """
    if callable(a):
        return a, a
    is_array = isinstance(a, Array) or hasattr(a, "__array__")
    if not hasattr(a, "__matmul__") or hasattr(a, "tocoo"):
        raise NonArrayArgumentError(
            f"{name}: {argument} is of type {type(a).__name__!r}, which is neither a function nor "
            "an array that multiplies arrays of axir.",
            "Pass a function, an array, or a sparse array of axir: BCOO.from_scipy_sparse(A).",
        )
    shape = tuple(getattr(a, "shape", ()))
    if len(shape) != 2 or shape[0] != shape[1]:
        raise MatrixShapeError(
            f"{name}: {argument} must be a square matrix, but is of shape {shape}."
        )
    if is_array:
        a = jnp.asarray(a)
        return (
            lambda x: jnp.matmul(a, x, precision=HIGHEST),
            lambda x: jnp.matmul(a.T, x, precision=HIGHEST),
        )
    return (lambda x: a @ x), (lambda x: a.T @ x)


def solve_system(
    system: System, iterate: Iteration, is_symmetric: bool = False
) -> tuple[PyTree, Value]:
    """Solves by an iteration, and differentiates as the solution of a linear system.

    Solutions of transposed systems begin at zero; the tolerances follow from each right-hand side.
    """

    def solve(product: Operator, b: Tree) -> tuple[PyTree, Value]:
        return iterate(product, b, system.x0, system.precondition, limit_for(b), system.maxiter)

    def solve_transposed(product: Operator, b: Tree) -> tuple[Tree, Value]:
        start = tree.map(jnp.zeros_like, b)
        precondition = system.precondition_transposed
        return iterate(product, b, start, precondition, limit_for(b), system.maxiter)

    def limit_for(b: Tree) -> Value:
        norm = jnp.sqrt(squared_norm(b))
        return jnp.maximum(norm * system.tol, system.atol).astype(norm.dtype)

    x, info = lax.custom_linear_solve(
        system.product, system.b, solve, solve_transposed, symmetric=is_symmetric, has_aux=True
    )
    return tree.map(_as_weak_as, x, system.b), info


def _as_weak_as(x: Value, b: Value) -> Value:
    return convert_element_type(x, x.dtype, b.type.weak_type)


def is_real(b: Tree) -> bool:
    """Tells whether no array of a vector is complex."""
    return not any(dtypes.is_complex(leaf.dtype) for leaf in tree.leaves(b))
