"""Ordinary differential equations: `odeint`, with steps that adapt to the error.

Runge-Kutta pairs of orders 5 and 4 (Dormand, Prince: A family of embedded Runge-Kutta formulae,
1980). A polynomial of degree 4 interpolates between steps (Shampine: Some practical Runge-Kutta
formulas, 1986). Derivatives solve the adjoint equation backwards in time (Chen et al.: Neural
ordinary differential equations, 2018, appendix C), in memory that does not grow with the number of
steps.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from axir import lax
from axir import numpy as jnp
from axir._arguments.arguments import check_callable, to_values
from axir._transforms.autodiff import vjp
from axir._transforms.jit import jit
from axir._transforms.vectorize import vmap
from axir._trees import tree
from axir.custom_derivatives import closure_convert, custom_vjp
from axir.dialect.core.annotations import PyTree, Tree, UserFunction, UserObject
from axir.dialect.core.array import ArrayLike, ConcreteArray
from axir.dialect.core.dtypes import is_complex, is_float, is_inexact
from axir.dialect.core.errors import DTypeError, ParameterError, ShapeError
from axir.flatten_util import ravel_pytree

__all__ = ["odeint"]


def __dir__() -> list[str]:
    return __all__


Vector: TypeAlias = UserObject
"""All of a state as an array of rank 1."""

# The stages of Dormand and Prince's pair: at which part of the step each is, what of the earlier
# slopes leads there, and the weights of the slopes in the estimate of the error.
_PLACES = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
_STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
# The fourth order is Shampine's, closer to the fifth than Dormand and Prince's.
_ERROR = (71 / 86400, 0.0, -142 / 50085, 71 / 2880, -5751 / 169600, 44 / 1575, -1 / 60)
# Weights that lead to the middle of the step (Shampine).
_MIDDLE = (
    6025192743 / 30085553152 / 2,
    0.0,
    51252292925 / 65400821598 / 2,
    -2691868925 / 45128329728 / 2,
    187940372067 / 1594534317056 / 2,
    -1776094331 / 19743644256 / 2,
    11237099 / 235043384 / 2,
)
_ORDER = 5


def odeint(
    func: Callable[..., object],
    y0: Tree,
    t: ArrayLike,
    *args: Tree,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    mxstep: float = np.inf,
    hmax: float = np.inf,
) -> PyTree:
    """Solves `dy/dt = func(y, t, *args)` from an initial value; returns y at given times.

    Differentiable in reverse mode, any number of times, in `y0`, `t`, `args`, and what `func`
    closes over; a derivative is as exact as the tolerances make the adjoint equation's solution.

    Args:
        func: From a state, a time and `args` to the rate of change: a tree like the state.
        y0: State at the first time, a tree of arrays.
        t: Float array of times, ascending or descending.
        *args: Trees of arrays.
        rtol: Tolerance of the error in a step, relative to each element of the state, of complex
            ones to each part.
        atol: Absolute tolerance, added to the relative one.
        mxstep: Largest number of steps from a time of `t` to the next one.
        hmax: Largest step.

    Returns:
        A tree like `y0`, with an axis for the times in front. It is NaN from the first time on that
        could not be reached: because the solution grows beyond bounds, or in `mxstep` steps.

    Raises:
        DTypeError: if `t` is not of a float dtype.
        ShapeError: if `t` is not of rank 1, or empty, or `func` returns other shapes than it takes.
        ParameterError: if the values of `t` are known and go to and fro; for tolerances or limits
            that are not positive numbers.
        ForwardModeError: in forward mode.

    >>> import axir.numpy as jnp
    >>> t = jnp.array([0.0, 1.0, 2.0])
    >>> odeint(lambda y, t: -y, 1.0, t, rtol=1e-4, atol=1e-4).round(3)
    Array([1.   , 0.368, 0.135], dtype=float32)
    """
    check_callable(func, "odeint")
    times = _times(t)
    values = to_values(*_leaves(args), "odeint")
    arguments: UserObject = tree.structure(args).unflatten(values)
    state = tree.map(_inexact, y0)
    options = _options(rtol, atol, mxstep, hmax)
    converted, consts = closure_convert(func, state, times[0], *arguments)
    # A function without closures of traces is itself, however often it is converted.
    identity = converted if consts else func
    dynamics = _Dynamics(identity, len(arguments), _Unkeyed(converted))
    return _integrated(_Solver(dynamics, *options), state, times, (*arguments, *consts))


def _leaves(args: Tree) -> tuple[list[UserObject], PyTree]:
    return tree.leaves(args), args


def _inexact(x: UserObject) -> UserObject:
    value = jnp.asarray(x)
    return value if is_inexact(value.dtype) else value.astype(float)


def _times(t: ArrayLike) -> UserObject:
    times = jnp.asarray(t)
    if not is_float(times.dtype):
        raise DTypeError(
            f"odeint: t must be an array of floats, but got {times.type}.",
            "Convert it with t.astype(float).",
        )
    if times.ndim != 1 or times.shape[0] == 0:
        raise ShapeError(
            f"odeint: t must be a vector of at least one time, but has shape {times.shape}.",
            "The first time is that of y0.",
        )
    if type(times) is ConcreteArray:
        steps = np.diff(times.host())
        if not ((steps >= 0).all() or (steps <= 0).all()):
            raise ParameterError(
                "odeint: the times in t go to and fro.",
                "Sort them, and solve from y0 in both directions if it stands in the middle.",
            )
    return times


def _options(rtol: float, atol: float, mxstep: float, hmax: float) -> tuple[float, ...]:
    named = {"rtol": rtol, "atol": atol, "mxstep": mxstep, "hmax": hmax}
    for name, value in named.items():
        if not float(value) >= 0:
            raise ParameterError(
                f"odeint: {name}={value!r} is not a positive number.", "Leave it out if in doubt."
            )
    return tuple(map(float, named.values()))


# The equation -----------------------------------------------------------------------------------


class _Unkeyed(NamedTuple):
    """A function that goes without saying: all that are called for one identity do the same."""

    function: UserFunction

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Unkeyed)

    def __hash__(self) -> int:
        return 0


@dataclass(frozen=True)
class _Dynamics:
    """The right-hand side of an equation, as the key of its traced and compiled functions.

    Attributes:
        identity: The user's function, or the function made from it with its captured values as
            arguments.
        count: Number of its arguments without the captured values.
        converted: A function of state, time, the arguments and these values.
    """

    identity: UserFunction
    count: int
    converted: _Unkeyed

    def __call__(self, y: Tree, t: object, *args: Tree) -> PyTree:
        """Returns the rate of change."""
        return _like(self.converted.function(y, t, *args), y)


def _like(rate: Tree, y: Tree) -> PyTree:
    """Returns rates in the containers, shapes and dtypes of the state, element by element."""
    leaves, structure = tree.flatten(y)
    rates = tree.leaves(rate)
    if sum(jnp.size(x) for x in rates) != sum(x.size for x in leaves):
        raise ShapeError(
            "odeint: func must return arrays like those of the state, of shapes "
            f"{[x.shape for x in leaves]}, but returned such of shapes "
            f"{[jnp.shape(x) for x in rates]}.",
            "It returns the rate of change of each element.",
        )
    if [jnp.shape(x) for x in rates] != [x.shape for x in leaves]:
        rate = ravel_pytree(y)[1](ravel_pytree(rate)[0].astype(ravel_pytree(y)[0].dtype))
        rates = tree.leaves(rate)
    pairs = zip(rates, leaves, strict=True)
    return structure.unflatten([jnp.asarray(x, like.dtype) for x, like in pairs])


@dataclass(frozen=True)
class _Adjoint:
    """The right-hand side of the adjoint equation: state, its cotangent, the arguments' cotangents.

    Attributes:
        dynamics: The equation.
        moving: Which leaves of its arguments have derivatives.
    """

    dynamics: UserFunction
    moving: tuple[bool, ...]

    def __call__(self, state: PyTree, t: UserObject, *args: PyTree) -> PyTree:
        """Returns the rate of change of all three."""
        y, y_bar, _ = state
        leaves, structure = tree.flatten(args)

        def rate(y: Tree, moving: list[object]) -> PyTree:
            given = iter(moving)
            merged = [
                next(given) if moves else x for x, moves in zip(leaves, self.moving, strict=True)
            ]
            return self.dynamics(y, t, *structure.unflatten(merged))

        moved, pull = vjp(rate, y, _chosen(leaves, self.moving))
        return moved, *tree.map(jnp.negative, pull(y_bar))


def _chosen(leaves: Sequence[object], marks: Sequence[bool]) -> list[UserObject]:
    return [x for x, mark in zip(leaves, marks, strict=True) if mark]


@dataclass(frozen=True)
class _Solver:
    """An equation and how to solve it.

    Attributes:
        dynamics: The right-hand side.
        rtol: Relative tolerance.
        atol: Absolute tolerance.
        mxstep: Largest number of steps between two times.
        hmax: Largest step.
    """

    dynamics: UserFunction
    rtol: float
    atol: float
    mxstep: float
    hmax: float


@functools.partial(jit, static_argnums=0)
def _integrated(solver: _Solver, y0: Tree, times: object, args: Tree) -> PyTree:
    return _solve(solver, y0, times, args)


@functools.partial(custom_vjp, nondiff_argnums=(0,))
def _solve(solver: _Solver, y0: Tree, times: UserObject, args: PyTree) -> PyTree:
    start, unravel = _real_vector(y0)
    # Time runs forwards: towards later times, or earlier ones with the rates negated.
    sign = jnp.where(times[-1] < times[0], -1, 1).astype(times.dtype)

    @jit
    def rate(y: Vector, s: UserObject) -> Vector:
        flat, _ = _real_vector(solver.dynamics(unravel(y), sign * s, *args))
        return sign.astype(y.dtype) * flat

    states = _trajectory(solver, rate, start, sign * times)
    return vmap(unravel)(states)


def _real_vector(y: Tree) -> tuple[Vector, Callable[[Vector], PyTree]]:
    """Returns a state as a vector of real numbers, and the function back from vectors to states."""
    flat, unravel = ravel_pytree(y)
    if not is_complex(flat.dtype):
        return flat, unravel
    parts = jnp.concatenate([jnp.real(flat), jnp.imag(flat)])
    return parts, lambda x: unravel(lax.complex(*jnp.split(x, 2)))


def _forward(solver: _Solver, y0: Tree, times: object, args: Tree) -> tuple[PyTree, UserObject]:
    states = _solve(solver, y0, times, args)
    return states, (states, times, args)


def _backward(solver: _Solver, residuals: UserObject, cotangent: PyTree) -> UserObject:
    states, times, args = residuals
    leaves, structure = tree.flatten(args)
    moving = tuple(is_inexact(x.dtype) for x in leaves)
    adjoint = _Solver(
        _Adjoint(solver.dynamics, moving), solver.rtol, solver.atol, solver.mxstep, solver.hmax
    )

    def at(place: object, arrays: Tree) -> PyTree:
        return tree.map(lambda x: x[place], arrays)

    def along(y: PyTree, t: UserObject, y_bar: PyTree) -> UserObject:
        """Returns how a cotangent changes with the time at which the state is taken."""
        rate = solver.dynamics(y, t, *args)
        products = [
            jnp.sum(f * g) for f, g in zip(tree.leaves(rate), tree.leaves(y_bar), strict=True)
        ]
        return jnp.real(sum(products)).astype(times.dtype)

    def back(carry: PyTree, x: PyTree) -> tuple[PyTree, UserObject]:
        y_bar, args_bar = carry
        y, own, last, first = x
        y_bar = tree.map(jnp.add, y_bar, own)
        start = (y, y_bar, args_bar)
        _, y_bar, args_bar = at(1, _solve(adjoint, start, jnp.stack([last, first]), args))
        return (y_bar, args_bar), along(y, last, own)

    later, earlier = slice(1, None), slice(None, -1)
    zeros = tree.map(jnp.zeros_like, (at(0, states), _chosen(leaves, moving)))
    xs = (at(later, states), at(later, cotangent), times[later], times[earlier])
    (y_bar, args_bar), later_bar = lax.scan(back, zeros, xs, reverse=True)
    first_bar = -along(at(0, states), times[0], y_bar)
    y0_bar = tree.map(jnp.add, y_bar, at(0, cotangent))
    given = iter(args_bar)
    full = structure.unflatten([next(given) if moves else None for moves in moving])
    return y0_bar, jnp.concatenate([first_bar[None], later_bar]), full


_solve.defvjp(_forward, _backward)


# Steps -------------------------------------------------------------------------------------------


class _Progress(NamedTuple):
    """The progress of a solution: the last step, used for interpolation.

    Attributes:
        step: The size of the next step.
        t, y, slope: Time, state and rate of change at the end of the last step.
        last_t, last_y, last_slope: The same at its beginning.
        middle: The state in its middle.
    """

    step: UserObject
    t: UserObject
    y: Vector
    slope: Vector
    last_t: UserObject
    last_y: Vector
    last_slope: Vector
    middle: Vector


def _trajectory(
    solver: _Solver, rate: UserFunction, start: Vector, times: UserObject
) -> UserObject:
    """Returns the states at ascending times; the first time is the start."""
    slope = rate(start, times[0])
    step = jnp.minimum(_first_step(solver, rate, start, slope, times[0]), solver.hmax)
    first = _Progress(step, times[0], start, slope, times[0], start, slope, start)

    def reach(progress: _Progress, target: UserObject) -> tuple[_Progress, Vector]:
        def is_before(state: tuple[UserObject, _Progress]) -> UserObject:
            count, reached = state
            return (reached.t < target) & (count < solver.mxstep) & (reached.step > 0)

        def advance(state: tuple[UserObject, _Progress]) -> tuple[UserObject, _Progress]:
            count, reached = state
            return count + 1, _advanced(solver, rate, reached)

        _, progress = lax.while_loop(is_before, advance, (0, progress))
        found = _interpolated(progress, target)
        return progress, jnp.where(progress.t >= target, found, jnp.nan)

    _, states = lax.scan(reach, first, times[1:])
    return jnp.concatenate([start[None], states])


def _advanced(solver: _Solver, rate: Callable[..., object], now: _Progress) -> _Progress:
    """Tries a step: goes on if its error is tolerable, and else stays, with a smaller step."""
    dt = now.step.astype(now.y.dtype)
    slopes = [now.slope]
    y = now.y
    for place, weights in zip(_PLACES, _STAGES, strict=True):
        y = now.y + dt * _combined(weights, slopes)
        slopes.append(rate(y, now.t + now.step * place))
    error = _error_ratio(solver, dt * _combined(_ERROR, slopes), now.y, y)
    step = jnp.clip(_next_step(now.step, error), 0.0, solver.hmax)
    middle = now.y + dt * _combined(_MIDDLE, slopes)
    moved = (now.t + now.step, y, slopes[-1], now.t, now.y, now.slope, middle)
    chosen = [jnp.where(error <= 1, new, old) for new, old in zip(moved, now[1:], strict=True)]
    return _Progress(step, *chosen)


def _combined(weights: Sequence[float], slopes: Sequence[Vector]) -> Vector:
    terms = [w * k for w, k in zip(weights, slopes, strict=True) if w]
    return functools.reduce(jnp.add, terms)


def _error_ratio(solver: _Solver, error: Vector, before: Vector, after: Vector) -> UserObject:
    """Returns the root mean square of error / tolerance: at most 1 is tolerable."""
    size = jnp.maximum(jnp.abs(before), jnp.abs(after))
    ratio = error / (solver.atol + solver.rtol * size)
    return jnp.sqrt(jnp.mean(jnp.square(ratio)))


def _next_step(step: UserObject, error: UserObject) -> UserObject:
    """Returns the step that would have had the tolerable error, and some reserve."""
    least = jnp.where(error < 1, 1.0, 0.2)
    factor = jnp.clip(0.9 * error ** (-1.0 / _ORDER), least, 10.0)
    return step * jnp.where(error == 0, 10.0, factor).astype(step.dtype)


def _first_step(
    solver: _Solver, rate: Callable[..., object], y: Vector, slope: Vector, t: UserObject
) -> UserObject:
    """Estimates the first step (Hairer, Norsett, Wanner: Solving ODEs I, II.4)."""
    scale = solver.atol + solver.rtol * jnp.abs(y)

    def norm(vector: Vector) -> UserObject:
        return jnp.sqrt(jnp.sum(jnp.square(vector / scale)))

    size, speed = norm(y), norm(slope)
    small = jnp.where((size < 1e-5) | (speed < 1e-5), 1e-6, 0.01 * size / speed)
    then = rate(y + small.astype(y.dtype) * slope, t + small.astype(t.dtype))
    bend = norm(then - slope) / small
    is_flat = (speed <= 1e-15) & (bend <= 1e-15)
    by_bend = (0.01 / jnp.maximum(speed, bend)) ** (1.0 / _ORDER)
    step = jnp.where(is_flat, jnp.maximum(1e-6, small * 1e-3), by_bend)
    return jnp.minimum(100.0 * small, step).astype(t.dtype)


def _interpolated(progress: _Progress, target: object) -> Vector:
    """Returns the state at a time in the last step: by the interpolating polynomial."""
    dt = progress.t - progress.last_t
    at = jnp.where(dt > 0, (target - progress.last_t) / jnp.where(dt > 0, dt, 1), 1)
    dt, at = dt.astype(progress.y.dtype), at.astype(progress.y.dtype)
    y0, y1, middle = progress.last_y, progress.y, progress.middle
    f0, f1 = dt * progress.last_slope, dt * progress.slope
    a = 2 * (f1 - f0) - 8 * (y0 + y1) + 16 * middle
    b = 5 * f0 - 3 * f1 + 18 * y0 + 14 * y1 - 32 * middle
    c = f1 - 4 * f0 - 11 * y0 - 5 * y1 + 16 * middle
    return y0 + at * (f0 + at * (c + at * (b + at * a)))
