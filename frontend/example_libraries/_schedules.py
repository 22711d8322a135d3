"""Step sizes that change: functions from the number of the step to a number."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from axir import numpy as jnp
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import ParameterError

Schedule: TypeAlias = Callable[[UserObject], UserObject]
"""From the number of a step, which may be a tracer, to its size."""

StepSize: TypeAlias = ArrayLike | Schedule


def constant(step_size: ArrayLike) -> Schedule:
    """Makes a schedule of one step size."""
    return lambda i: step_size


def exponential_decay(step_size: float, decay_steps: float, decay_rate: float) -> Schedule:
    """Makes the schedule `step_size * decay_rate ** (i / decay_steps)`.

    >>> exponential_decay(1.0, 10, 0.5)(20)
    0.25
    """
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(
    step_size: float, decay_steps: float, decay_rate: float, staircase: bool = False
) -> Schedule:
    """Makes the schedule `step_size / (1 + decay_rate * i / decay_steps)`.

    Args:
        step_size: The first step size.
        decay_steps: Number of steps in the unit of time.
        decay_rate: By how much of the first one the inverse grows in it.
        staircase: Whether it changes only every `decay_steps` steps.

    >>> inverse_time_decay(1.0, 10, 1.0)(10)
    0.5
    """
    if staircase:
        return lambda i: step_size / (1 + decay_rate * jnp.floor(i / decay_steps))
    return lambda i: step_size / (1 + decay_rate * i / decay_steps)


def polynomial_decay(
    step_size: float, decay_steps: float, final_step_size: float, power: float = 1.0
) -> Schedule:
    """Makes a schedule from one step size to another along a power of the remaining time.

    Args:
        step_size: The first step size.
        decay_steps: After how many steps it is the last one, which stays.
        final_step_size: The last step size.
        power: The power.

    >>> float(polynomial_decay(1.0, 10, 0.0)(5))
    0.5
    """

    def schedule(i: object) -> object:
        remaining = 1 - jnp.minimum(i, decay_steps) / decay_steps
        return remaining**power * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries: object, values: object) -> Schedule:
    """Makes a schedule that changes at given steps.

    Args:
        boundaries: The last steps with each value but the last, ascending.
        values: The step sizes, one more than boundaries.

    Raises:
        ParameterError: if the two are no vectors, or not of such lengths.

    >>> [float(piecewise_constant([2], [1.0, 0.5])(i)) for i in range(4)]
    [1.0, 1.0, 1.0, 0.5]
    """
    limits, sizes = jnp.array(boundaries), jnp.array(values)
    if limits.ndim != 1 or sizes.ndim != 1 or len(limits) != len(sizes) - 1:
        raise ParameterError(
            f"piecewise_constant: boundaries of shape {limits.shape} and values of shape "
            f"{sizes.shape} do not fit together.",
            "Pass two sequences of numbers; there is one value more than there are boundaries.",
        )
    return lambda i: sizes[jnp.sum(i > limits)]


def make_schedule(scalar_or_schedule: StepSize) -> Schedule:
    """Returns a schedule as it is, and a number as the schedule that always gives it.

    Raises:
        ParameterError: for anything else.
    """
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if jnp.ndim(scalar_or_schedule) == 0:
        return constant(scalar_or_schedule)
    raise ParameterError(
        f"make_schedule: a step size is a number or a function of the step, not an array of shape "
        f"{jnp.shape(scalar_or_schedule)}.",
        "Use piecewise_constant for given sizes.",
    )
