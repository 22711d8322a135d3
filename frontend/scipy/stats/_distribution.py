"""Shared by distributions: arguments, location and scale, supports, ranges of parameters.

A distribution gives formulas of the standardized variable y = (x - loc) / scale. Here they become
functions of x: outside the support a formula sees a number inside it, so that no derivative of it
is nan, and its value is replaced; parameters outside their range give nan.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

import axir.numpy as jnp
from axir.dialect.core.annotations import Returning
from axir.dialect.core.array import ArrayLike
from axir.dialect.program.rules import Value
from axir.numpy._arguments.promotion import promote_inexact, require_real

# Values at and below the lower end of the support, and at and above the upper one.
_ENDS = {"cdf": (0, 1), "logcdf": (-math.inf, 0), "sf": (1, 0), "logsf": (0, -math.inf)}


@dataclasses.dataclass(frozen=True)
class Continuous:
    """A continuous distribution, as far as its functions have it in common.

    Attributes:
        name: Its name, for errors.
        low, high: Ends of the support of y. None where the formulas hold up to infinity.
        inner: A number inside the support.
        is_valid: Tells for which parameters there is a distribution; by default for all.
    """

    name: str
    low: float | None = None
    high: float | None = None
    inner: float = 0.5
    is_valid: Returning[Value] | None = None

    def log_density(
        self,
        formula: Callable[..., Value],
        x: ArrayLike,
        *parameters: ArrayLike,
        loc: ArrayLike = 0,
        scale: ArrayLike = 1,
    ) -> Value:
        """Returns the logarithm of the density at x; -inf outside the (closed) support.

        Args:
            formula: Takes y and the parameters and returns the logarithm of the density of y.
            x: Where.
            *parameters: The parameters of the distribution.
            loc: Subtracted from x.
            scale: What that is divided by.
        """
        y, values, width = self._standardized("logpdf", x, parameters, loc, scale)
        outside = []
        if self.low is not None:
            outside.append(y < self.low if self.low > -math.inf else y == -math.inf)
        if self.high is not None:
            outside.append(y > self.high if self.high < math.inf else y == math.inf)
        result = _replaced(formula, y, values, self.inner, [(t, -math.inf) for t in outside])
        # The logarithm of an invalid scale makes the result nan.
        result = result if width is None else result - jnp.log(width)
        return self._checked(result, values)

    def share(
        self,
        method: str,
        formula: Callable[..., Value],
        x: ArrayLike,
        *parameters: ArrayLike,
        loc: ArrayLike = 0,
        scale: ArrayLike = 1,
    ) -> Value:
        """Returns the probability below or above x, or its logarithm.

        Args:
            method: Which of them: 'cdf', 'logcdf', 'sf', 'logsf'.
            formula: Takes y inside the support and the parameters.
            x, *parameters, loc, scale: As of `log_density`.
        """
        at_low, at_high = _ENDS[method]
        y, values, width = self._standardized(method, x, parameters, loc, scale)
        outside = []
        if self.low is not None:
            outside.append((y <= self.low, at_low))
        if self.high is not None:
            outside.append((y >= self.high, at_high))
        return self._checked(_replaced(formula, y, values, self.inner, outside), values, width)

    def quantile(
        self,
        method: str,
        formula: Callable[..., Value],
        q: ArrayLike,
        *parameters: ArrayLike,
        loc: ArrayLike = 0,
        scale: ArrayLike = 1,
    ) -> Value:
        """Returns the quantile of a probability; nan outside [0, 1].

        Args:
            method: Its name, for errors.
            formula: Takes the probability and the parameters and returns y.
            q: Probabilities.
            *parameters: The parameters of the distribution.
            loc: Added to the result.
            scale: The factor of the result before `loc` is added.
        """
        q, *values, shift, width = _arguments(f"{self.name}.{method}", q, *parameters, loc, scale)
        is_outside = (q < 0) | (q > 1)
        y = _replaced(formula, q, values, 0.5, [(is_outside, math.nan)])
        result = y if _is_number(scale, 1) else y * width
        result = result if _is_number(loc, 0) else result + shift
        return self._checked(result, values, None if _is_number(scale, 1) else width)

    def _standardized(
        self,
        method: str,
        x: ArrayLike,
        parameters: Sequence[ArrayLike],
        loc: ArrayLike,
        scale: ArrayLike,
    ) -> tuple[Value, list[Value], Value | None]:
        """Returns y, the parameters, and the scale unless that is the number 1."""
        y, *values, shift, width = _arguments(f"{self.name}.{method}", x, *parameters, loc, scale)
        y = y if _is_number(loc, 0) else y - shift
        return (y, values, None) if _is_number(scale, 1) else (y / width, values, width)

    def _checked(
        self, result: Value, parameters: Sequence[Value], scale: Value | None = None
    ) -> Value:
        conditions = [] if self.is_valid is None else [self.is_valid(*parameters)]
        if scale is not None:
            conditions.append(scale > 0)
        for condition in conditions:
            result = jnp.where(condition, result, math.nan)
        return result


@dataclasses.dataclass(frozen=True)
class Discrete:
    """A distribution of integers, as far as its functions have it in common.

    Attributes:
        name: Its name, for errors.
        is_inside: Takes y = k - loc, an integer, and the parameters, and tells whether y is in the
            support.
        inner: An integer inside the support whatever the parameters are.
        is_valid: Tells for which parameters there is a distribution.
    """

    name: str
    is_inside: Returning[Value]
    is_valid: Returning[Value]
    inner: int = 0

    def log_mass(
        self,
        formula: Callable[..., Value],
        k: ArrayLike,
        *parameters: ArrayLike,
        loc: ArrayLike = 0,
    ) -> Value:
        """Returns the logarithm of the probability of k, -inf outside the support.

        Args:
            formula: Takes y and the parameters and returns the logarithm of the probability of y.
            k: Which number.
            *parameters: The parameters of the distribution.
            loc: Subtracted from k.
        """
        y, *values, shift = _arguments(f"{self.name}.logpmf", k, *parameters, loc)
        y = y if _is_number(loc, 0) else y - shift
        is_outside = (jnp.floor(y) != y) & (y == y) | ~self.is_inside(y, *values) & (y == y)
        result = _replaced(formula, y, values, self.inner, [(is_outside, -math.inf)])
        return jnp.where(self.is_valid(*values), result, math.nan)

    def share(
        self,
        method: str,
        formula: Callable[..., Value],
        x: ArrayLike,
        *parameters: ArrayLike,
        loc: ArrayLike = 0,
    ) -> Value:
        """Returns a function of x - loc and the parameters, nan for invalid parameters.

        Args:
            method: Its name, for errors.
            formula: Takes y and the parameters.
            x: Where.
            *parameters: The parameters of the distribution.
            loc: Subtracted from x.
        """
        y, *values, shift = _arguments(f"{self.name}.{method}", x, *parameters, loc)
        y = y if _is_number(loc, 0) else y - shift
        result = jnp.where(y == y, formula(y, *values), math.nan)
        return jnp.where(self.is_valid(*values), result, math.nan)


def _arguments(name: str, *args: ArrayLike) -> list[Value]:
    values = promote_inexact(name, *args)
    require_real(name, *values)
    return values


def _is_number(x: ArrayLike, value: int) -> bool:
    """Tells whether an argument is a Python number, with which nothing need be computed."""
    return type(x) in (int, float) and bool(x == value)


def _replaced(
    formula: Callable[..., Value],
    y: Value,
    parameters: Sequence[Value],
    inner: float,
    outside: Sequence[tuple[Value, float]],
) -> Value:
    """Applies a formula to a number inside where y is outside, and puts other values there."""
    for condition, _ in outside:
        y = jnp.where(condition, inner, y)
    result = formula(y, *parameters)
    for condition, value in outside:
        result = jnp.where(condition, value, result)
    return result


# Logarithms without cancellation ---------------------------------------------------------------


def log_of_rest(y: Value) -> Value:
    """Returns log(1 - exp(-y)) for y >= 0."""
    is_near = y < math.log(2)
    near = jnp.log(-jnp.expm1(-jnp.where(is_near, y, 0.5)))
    return jnp.where(is_near, near, jnp.log1p(-jnp.exp(-jnp.where(is_near, 1.0, y))))


def log_of_share(share: Value, rest: Value) -> Value:
    """Returns the logarithm of a share of 1, computed from the rest if the rest is smaller."""
    is_low = share < 0.5
    low = jnp.log(jnp.where(is_low, share, 0.5))
    return jnp.where(is_low, low, jnp.log1p(-jnp.where(is_low, 0.5, rest)))


def log_one_plus_square(y: Value) -> Value:
    """Returns log(1 + y**2), also where the square overflows."""
    is_far = abs(y) > 1
    far = jnp.where(is_far, y, 1.0)
    near = jnp.log1p(jnp.square(jnp.where(is_far, 0.0, y)))
    return jnp.where(is_far, 2 * jnp.log(abs(far)) + jnp.log1p(jnp.square(1 / far)), near)
