"""The method of Broyden, Fletcher, Goldfarb and Shanno."""

from __future__ import annotations

from typing import NamedTuple

import axir.numpy as jnp
from axir import lax
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.program.rules import Value

from ._line_search import Objective, OptimizeResults, line_search

# How much of the inverse of the Hessian rounding may change.
_SHARE = 0.01


class _State(NamedTuple):
    x: Value
    value: Value
    gradient: Value
    inverse: Value  # of the Hessian
    previous: Value  # the value of the pass before
    is_fresh: Value  # whether nothing is known of the Hessian yet
    is_stuck: Value
    passes: Value
    evaluations: Value


def minimize_bfgs(
    objective: Objective,
    x0: Value,
    *,
    maxiter: UserObject = None,
    norm: UserObject = jnp.inf,
    gtol: ArrayLike = 1e-5,
    line_search_maxiter: int = 10,
) -> OptimizeResults:
    """Minimizes a function by BFGS: algorithm 6.1 of Nocedal and Wright, Numerical Optimization.

    If the first iteration finds an inverse Hessian so much smaller than one that rounding would
    lose it, the identity is scaled before its update, as in their formula 6.20. If a direction
    gives no decrease, the search restarts with the steepest descent.

    Args:
        objective: The function and its gradient.
        x0: The starting point, of shape (n,).
        maxiter: The most passes; by default 200 n.
        norm: Which norm of the gradient is compared with `gtol`, as in `jnp.linalg.norm`.
        gtol: A point counts as a minimum if the norm of its gradient is smaller.
        line_search_maxiter: How often a line search doubles its step.
    """
    most = 200 * x0.size if maxiter is None else maxiter

    def is_minimum(gradient: Value) -> Value:
        return jnp.linalg.norm(gradient, ord=norm) < gtol

    def goes_on(state: _State) -> Value:
        return ~is_minimum(state.gradient) & ~state.is_stuck & (state.passes < most)

    def advance(state: _State) -> _State:
        known = -(state.inverse @ state.gradient)
        descends = jnp.dot(known, state.gradient) < 0
        direction = jnp.where(descends, known, -state.gradient)
        slope = jnp.dot(direction, state.gradient)
        # The step that would change the value as much as the last one has.
        step = 2.02 * (state.value - state.previous) / slope
        step = jnp.where((step > 0) & (step < 1), step, 1)
        found = line_search(
            objective, state.x, direction, state.value, state.gradient, step, line_search_maxiter
        )
        moved, change = found.step * direction, found.gradient - state.gradient
        rests = jnp.all(state.x + moved == state.x)
        is_fresh = state.is_fresh | ~descends
        before = jnp.where(is_fresh, _sized_for(identity, moved, change), state.inverse)
        inverse = updated_inverse(before, moved, change)
        return _State(
            state.x + moved,
            found.value,
            found.gradient,
            jnp.where(rests, identity, inverse),
            state.value,
            rests,
            rests & is_fresh,
            state.passes + 1,
            state.evaluations + found.evaluations,
        )

    value, gradient = objective(x0)
    previous = value + jnp.linalg.norm(gradient) / 2
    identity = jnp.eye(x0.size, dtype=x0.dtype)
    zero, one, is_stuck = jnp.int32(0), jnp.int32(1), ~jnp.isfinite(value)
    start = _State(x0, value, gradient, identity, previous, jnp.bool_(True), is_stuck, zero, one)
    end = lax.while_loop(goes_on, advance, start)
    success = is_minimum(end.gradient)
    failure = jnp.where(jnp.isfinite(end.value), 2, 3)
    status = jnp.where(success, 0, jnp.where(end.is_stuck, failure, 1)).astype(jnp.int32)
    return OptimizeResults(
        end.x, success, status, end.value, end.gradient, end.inverse,
        end.evaluations, end.evaluations, end.passes,
    )  # fmt: skip


def _sized_for(identity: Value, moved: Value, change: Value) -> Value:
    """Returns the identity, scaled down so that rounding keeps the curvature of a move."""
    curvature, square = jnp.dot(moved, change), jnp.dot(change, change)
    is_curved = (curvature > 0) & jnp.isfinite(square)
    inverse = curvature / jnp.where(is_curved, square, 1)
    most = inverse * (_SHARE / jnp.finfo(identity.dtype).eps)
    return jnp.where(is_curved, jnp.minimum(most, 1), 1) * identity


def updated_inverse(inverse: Value, moved: Value, change: Value) -> Value:
    """Returns the inverse of the Hessian by formula 6.17, unless the curvature is not positive."""
    curvature = jnp.dot(moved, change)
    is_curved = curvature > 0
    rho = 1 / jnp.where(is_curved, curvature, 1)
    product = inverse @ change
    # (1 - rho s y') H (1 - rho y s') + rho s s', without products of matrices.
    factor = rho * (1 + rho * jnp.dot(change, product))
    crossed = rho * jnp.outer(product, moved)
    result = inverse + factor * jnp.outer(moved, moved) - crossed - crossed.T
    return jnp.where(is_curved, result, inverse)
