"""A line search for the strong Wolfe conditions, as one loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import axir.numpy as jnp
from axir import lax
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


# Line search --------------------------------------------------------------------------------------


# Shares of the first slope: of the decrease that is sufficient, and of the slope that is left.
_DECREASE, _SLOPE = 1e-4, 0.9
# How near to an end of the interval interpolation may come, as a share of its length.
_MARGIN = 0.1
_MOST_INTERPOLATIONS = 30

Objective = Callable[[Value], tuple[Value, Value]]
"""From a vector to the value of a function there, and its gradient."""


class Point(NamedTuple):
    """A point of the line.

    Attributes:
        step: Its distance from the beginning, in lengths of the direction.
        value: The function there.
        slope: Its derivative along the direction.
    """

    step: Value
    value: Value
    slope: Value


class Found(NamedTuple):
    """The end point of a line search.

    Attributes:
        step: The distance, 0 if nothing better than the beginning was found.
        value: The function there.
        gradient: Its gradient there.
        evaluations: How often the function was evaluated, an int32.
    """

    step: Value
    value: Value
    gradient: Value
    evaluations: Value


class _State(NamedTuple):
    low: Point  # of the points that have decreased sufficiently the lowest
    high: Point  # the other end of the interval, infinitely far until it is known
    gradient: Value  # at the low end
    is_done: Value
    passes: Value


def line_search(
    objective: Objective,
    x: Value,
    direction: Value,
    value: Value,
    gradient: Value,
    first_step: Value,
    most_steps: int,
) -> Found:
    """Looks along a direction of descent for a point with the strong Wolfe conditions.

    Steps are doubled until an interval holds such a point, and the interval is made smaller by
    interpolation: algorithms 3.5 and 3.6 of Nocedal and Wright, Numerical Optimization (2nd ed.),
    with formula 3.59. They are one loop here, with an infinitely long interval at first, so that
    the program contains the function once. If the values differ only by rounding, slopes decide
    (the approximate conditions of Hager and Zhang, 2005, SIAM J. Optim. 16(1)).

    Args:
        objective: The function and its gradient.
        x, value, gradient: Where the line begins, and the function and its gradient there.
        direction: The direction.
        first_step: The first step.
        most_steps: How often a step is doubled.
    """
    start = Point(jnp.zeros_like(value), value, jnp.dot(direction, gradient))
    noise = jnp.finfo(value.dtype).eps * jnp.abs(value)
    closest = jnp.finfo(value.dtype).eps

    def goes_on(state: _State) -> Value:
        length = jnp.abs(state.high.step - state.low.step)
        is_bracketed = jnp.isfinite(length)
        most = jnp.where(is_bracketed, most_steps + _MOST_INTERPOLATIONS, most_steps)
        is_wide = length > closest * jnp.maximum(state.low.step, state.high.step)
        return ~state.is_done & (state.passes < most) & (is_wide | ~is_bracketed)

    def advance(state: _State) -> _State:
        low, high = state.low, state.high
        doubled = jnp.where(state.passes == 0, first_step, 2 * low.step)
        step = jnp.where(jnp.isfinite(high.step), _between(low, high), doubled)
        value, gradient = objective(x + step * direction)
        value, gradient = value.astype(low.value.dtype), gradient.astype(state.gradient.dtype)
        here = Point(step, value, jnp.dot(direction, gradient))
        is_flat = (value <= start.value + noise) & (here.slope <= (2 * _DECREASE - 1) * start.slope)
        # Written such that NaN is high.
        has_decreased = (value <= start.value + _DECREASE * step * start.slope) & (
            value < low.value
        )
        is_low = has_decreased | is_flat
        is_done = is_low & (jnp.abs(here.slope) <= -_SLOPE * start.slope)
        turns = here.slope * (high.step - low.step) >= 0
        new_high = _chosen(is_low, _chosen(turns, low, high), here)
        return _State(
            _chosen(is_low, here, low),
            new_high,
            jnp.where(is_low, gradient, state.gradient),
            is_done,
            state.passes + 1,
        )

    far = Point(jnp.full_like(value, jnp.inf), start.value, start.slope)
    first = _State(start, far, gradient, jnp.bool_(False), jnp.int32(0))
    end = lax.while_loop(goes_on, advance, first)
    return Found(end.low.step, end.low.value, end.gradient, end.passes)


def _chosen(condition: Value, first: Point, second: Point) -> Point:
    pairs = zip(first, second, strict=True)
    return Point(*[jnp.where(condition, a, b) for a, b in pairs])


def _between(low: Point, high: Point) -> Value:
    """Returns where the cubic through two points is least, or the middle if that is near an end."""
    length = high.step - low.step
    mean = low.slope + high.slope - 3 * (high.value - low.value) / length
    root = jnp.sign(length) * jnp.sqrt(mean * mean - low.slope * high.slope)
    share = 1 - (high.slope + root - mean) / (high.slope - low.slope + 2 * root)
    is_inside = (share >= _MARGIN) & (share <= 1 - _MARGIN)
    return low.step + length * jnp.where(is_inside, share, 0.5)
