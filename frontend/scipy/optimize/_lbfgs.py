"""The method of Broyden, Fletcher, Goldfarb and Shanno with limited memory."""

from __future__ import annotations

from typing import NamedTuple

import axir.numpy as jnp
from axir import lax
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.program.rules import Value

from ._line_search import Objective, OptimizeResults, line_search


class _History(NamedTuple):
    """The last moves, changes of the gradient and their products, oldest first."""

    moves: Value
    changes: Value
    rho: Value  # zero if absent


class _State(NamedTuple):
    x: Value
    value: Value
    gradient: Value
    history: _History
    status: Value  # -1 while it goes on
    passes: Value
    evaluations: Value


def minimize_lbfgs(
    objective: Objective,
    x0: Value,
    *,
    maxiter: UserObject = None,
    norm: UserObject = jnp.inf,
    maxcor: int = 10,
    ftol: ArrayLike = 2.220446049250313e-09,
    gtol: ArrayLike = 1e-5,
    maxfun: UserObject = None,
    maxgrad: UserObject = None,
    maxls: int = 20,
) -> OptimizeResults:
    """Minimizes a function by L-BFGS: algorithm 7.5 of Nocedal and Wright, Numerical Optimization.

    Args:
        objective: The function and its gradient.
        x0: The starting point, of shape (n,).
        maxiter: The most iterations; unlimited by default.
        norm: Which norm of the gradient is compared with `gtol`, as in `jnp.linalg.norm`.
        maxcor: How many moves are remembered.
        ftol: A decrease that is smaller, relative to the larger of the values and 1, is the last.
        gtol: A point counts as a minimum if the norm of its gradient is smaller.
        maxfun, maxgrad: The most evaluations; unlimited by default.
        maxls: How often a line search doubles its step.
    """
    endless = jnp.iinfo(jnp.int32).max
    most_passes, most_values, most_gradients = (
        endless if limit is None else limit for limit in (maxiter, maxfun, maxgrad)
    )

    def status_of(state: _State, is_small: Value, is_stuck: Value) -> Value:
        cases = (
            (jnp.linalg.norm(state.gradient, ord=norm) < gtol, 0),
            (~jnp.isfinite(state.value), 6),
            (is_stuck, 5),
            (is_small, 4),
            (state.evaluations >= most_gradients, 3),
            (state.evaluations >= most_values, 2),
            (state.passes >= most_passes, 1),
        )
        status: Value = jnp.int32(-1)
        for condition, number in reversed(cases):
            status = jnp.where(condition, number, status)
        return status.astype(jnp.int32)

    def advance(state: _State) -> _State:
        direction = -_inverse_times(state.history, state.gradient)
        length = jnp.linalg.norm(state.gradient)
        first = jnp.minimum(1, 1 / jnp.where(length > 0, length, 1))
        step = jnp.where(state.passes == 0, first, jnp.ones_like(first))
        found = line_search(objective, state.x, direction, state.value, state.gradient, step, maxls)
        moved = found.step * direction
        history = _remembered(state.history, moved, found.gradient - state.gradient)
        decrease = state.value - found.value
        scale = jnp.maximum(jnp.maximum(jnp.abs(state.value), jnp.abs(found.value)), 1)
        reached = _State(
            state.x + moved,
            found.value,
            found.gradient,
            history,
            state.status,
            state.passes + 1,
            state.evaluations + found.evaluations,
        )
        status = status_of(reached, decrease <= ftol * scale, jnp.all(state.x + moved == state.x))
        return reached._replace(status=status)

    value, gradient = objective(x0)
    nothing = jnp.zeros((maxcor, x0.size), x0.dtype)
    history = _History(nothing, nothing, jnp.zeros(maxcor, x0.dtype))
    zero, one = jnp.int32(0), jnp.int32(1)
    start = _State(x0, value, gradient, history, zero, zero, one)
    start = start._replace(status=status_of(start, jnp.bool_(False), jnp.bool_(False)))
    end = lax.while_loop(lambda state: state.status < 0, advance, start)
    success = (end.status == 0) | (end.status == 4)
    return OptimizeResults(
        end.x, success, end.status, end.value, end.gradient, None,
        end.evaluations, end.evaluations, end.passes,
    )  # fmt: skip


def _remembered(history: _History, moved: Value, change: Value) -> _History:
    """Returns the history with a move at its end, unless its curvature is not positive."""
    curvature = jnp.dot(moved, change)
    is_curved = curvature > 0
    last = (moved, change, 1 / jnp.where(is_curved, curvature, 1))
    pairs = zip(history, last, strict=True)
    return _History(*[jnp.where(is_curved, jnp.concatenate([h[1:], x[None]]), h) for h, x in pairs])


def _inverse_times(history: _History, gradient: Value) -> Value:
    """Multiplies by the inverse of the Hessian: algorithm 7.4, its two loops."""
    moves, changes, rho = history
    count = rho.size

    def backward(j: Value, state: tuple[Value, Value]) -> tuple[Value, Value]:
        q, shares = state
        i = count - 1 - j
        share = rho[i] * jnp.dot(moves[i], q)
        return q - share * changes[i], shares.at[i].set(share)

    def forward(i: Value, r: Value) -> Value:
        return r + moves[i] * (shares[i] - rho[i] * jnp.dot(changes[i], r))

    q, shares = lax.fori_loop(0, count, backward, (gradient, jnp.zeros_like(rho)))
    square = jnp.dot(changes[-1], changes[-1])
    # The last curvature over the square of the last change.
    scale = jnp.where(square > 0, 1 / (jnp.where(square > 0, rho[-1] * square, 1)), 1)
    return lax.fori_loop(0, count, forward, scale * q)
