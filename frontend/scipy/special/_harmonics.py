"""Spherical harmonics and associated Legendre functions of `axir.scipy.special`."""

from __future__ import annotations

import math
import operator

import numpy as np

import axir.numpy as jnp
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import ArrayLike, ConcreteArray
from axir.dialect.core.errors import DTypeError, ParameterError, ShapeError
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.family import scipy_function
from axir.dialect.program.rules import Value
from axir.dialect.program.tracer import Tracer
from axir.lax import complex as complex_of
from axir.lax import scan
from axir.numpy._arguments.promotion import array_argument

from ._common import is_known, real_arguments


class DegreeError(ParameterError, ValueError):
    """The greatest degree of harmonics is not known."""


def sph_harm_y(
    n: ArrayLike,
    m: ArrayLike,
    theta: ArrayLike,
    phi: ArrayLike,
    diff_n: None = None,
    n_max: int | None = None,
) -> Value:
    """Returns spherical harmonics, the orthonormal functions on the sphere.

    By the recurrence in the degree of normalized associated Legendre functions (DLMF 14.10.3,
    14.30.1).

    Args:
        n: Degrees, integers from 0 on.
        m: Orders, integers; 0 comes out where |m| > n.
        theta: Polar angles, from 0 to pi.
        phi: Azimuths, from 0 to 2 pi.
        diff_n: Must be None: derivatives are axir's own.
        n_max: The greatest degree, static; by default `n`'s. Greater degrees become it.

    Returns:
        Complex array of the shape that the arguments broadcast to.

    Raises:
        DegreeError: if `n` is traced and `n_max` is missing.
        NotImplementedError: if `diff_n` is not None.

    >>> import axir.numpy as jnp
    >>> from axir.scipy.special import sph_harm_y
    >>> values = sph_harm_y(jnp.array([1]), jnp.array([0]), jnp.array([0.0]), jnp.array([0.0]))
    >>> values.real.round(4), jnp.sqrt(0.75 / jnp.pi).round(4)
    (Array([0.4886], dtype=float32), Array(0.4886, dtype=float32, weak_type=True))
    """
    if diff_n is not None:
        raise NotImplementedError("sph_harm_y: diff_n must be None; axir.jvp differentiates.")
    degrees, orders = array_argument("sph_harm_y", n), array_argument("sph_harm_y", m, 1)
    greatest = _greatest_degree(degrees) if n_max is None else operator.index(n_max)
    polar, azimuth = real_arguments("sph_harm_y", theta, phi)
    if (known := _known_harmonics(degrees, orders, polar, azimuth, greatest)) is not None:
        return known
    degrees, orders, polar, azimuth = jnp.broadcast_arrays(degrees, orders, polar, azimuth)
    degree = jnp.minimum(degrees, greatest).astype(polar.dtype)
    order = orders.astype(polar.dtype)
    size = abs(order)
    legendre = _normalized_legendre(degree, size, jnp.cos(polar), jnp.sin(polar), greatest)
    angle = size * azimuth
    # Of a negative order: (-1)^m times the conjugate.
    sign = jnp.where((order < 0) & (size % 2 == 1), -1, 1)
    real = sign * legendre * jnp.cos(angle)
    imag = jnp.where(order < 0, -sign, sign) * legendre * jnp.sin(angle)
    return complex_of(real, imag)


def _known_harmonics(n: Value, m: Value, polar: Value, azimuth: Value, most: int) -> Value | None:
    """Returns SciPy's values; None if not all is known, or something is out of the ordinary."""
    if not (is_known(n) and is_known(m) and is_known(polar) and is_known(azimuth)):
        return None
    degrees, orders = np.minimum(n.host(), most), m.host()
    if polar.dtype.itemsize < 4 or np.any(abs(orders) > degrees):
        return None
    values = scipy_function("sph_harm_y")(degrees, orders, polar.host(), azimuth.host())
    if not np.isfinite(values).all():
        return None
    dtype = np.result_type(polar.dtype, np.complex64)
    return ConcreteArray(ShapedArray(values.shape, dtype), np.asarray(values, dtype))


def _greatest_degree(n: Value) -> int:
    if isinstance(n, Tracer) or not isinstance(n, ConcreteArray):
        raise DegreeError(
            "sph_harm_y: the greatest degree must be static, but n is traced.",
            "Pass it as n_max.",
        )
    return int(n.host().max()) if n.size else 0


def _normalized_legendre(
    degree: Value, order: Value, cosine: Value, sine: Value, greatest: int
) -> Value:
    """Each element's own degree and order, step by step: the diagonal up to the order, then on."""

    def step(state: tuple[Value, ...], n: Value) -> tuple[tuple[Value, ...], None]:
        diagonal, previous, current, result = state
        is_below = n <= order
        diagonal = jnp.where(is_below, -jnp.sqrt((2 * n + 1) / (2 * n)) * sine * diagonal, diagonal)
        square = jnp.where(is_below, 1.0, n * n - order * order)
        factor = jnp.sqrt((4 * n * n - 1) / square)
        last = n - 1
        weight = (last * last - order * order) / (4 * last * last - 1)
        weight = jnp.sqrt(jnp.maximum(jnp.where(is_below, 1.0, weight), 0.0))
        following = factor * (cosine * current - weight * previous)
        following = jnp.where(is_below, jnp.where(n == order, diagonal, 0.0), following)
        return (diagonal, current, following, jnp.where(n == degree, following, result)), None

    zero = jnp.zeros_like(cosine)
    first = jnp.full_like(cosine, math.sqrt(0.25 / math.pi))
    current = jnp.where(order == 0, first, zero)
    state = (first, zero, current, jnp.where(degree == 0, current, zero))
    if greatest < 1:
        return state[3]
    return scan(step, state, jnp.arange(1, greatest + 1, dtype=cosine.dtype))[0][3]


def lpmn_values(m: int, n: int, z: ArrayLike, is_normalized: bool) -> Value:
    """Returns the associated Legendre functions of all orders and degrees up to a greatest one.

    Args:
        m: The greatest order, the same as n.
        n: The greatest degree, static.
        z: Vector of floats in [-1, 1].
        is_normalized: Whether they are normalized as in orthonormal spherical harmonics.

    Returns:
        Array of shape (n + 1, n + 1, len(z)); first the orders, then the degrees.

    Raises:
        DTypeError: for anything but floats; ShapeError for anything but a vector.
        NotImplementedError: for m other than n.

    >>> import axir.numpy as jnp
    >>> from axir.scipy.special import lpmn_values
    >>> lpmn_values(1, 1, jnp.array([0.5]), False)[0, :, 0]
    Array([1. , 0.5], dtype=float32)
    """
    x, size = _legendre_arguments("lpmn_values", m, n, z)
    degrees, orders = np.meshgrid(np.arange(1.0, size), np.arange(0.0, size), indexing="ij")
    with np.errstate(all="ignore"):
        if is_normalized:
            factors = np.sqrt((4 * degrees**2 - 1) / (degrees**2 - orders**2))
            last = (degrees - 1) ** 2
            weights = factors * np.sqrt((last - orders**2) / (4 * last - 1))
            diagonals = -np.sqrt((2 * degrees[:, 0] + 1) / (2 * degrees[:, 0]))
        else:
            factors = (2 * degrees - 1) / (degrees - orders)
            weights = (degrees + orders - 1) / (degrees - orders)
            diagonals = -(2 * degrees[:, 0] - 1)
    factors = np.where(orders < degrees, factors, 0)
    weights = np.where(orders < degrees - 1, weights, 0)
    sine = jnp.sqrt(1 - jnp.square(x))
    tables = [factors, weights, diagonals, np.eye(size)[1:]]

    def step(
        state: tuple[Value, Value, Value], row: tuple[Value, ...]
    ) -> tuple[tuple[Value, Value, Value], Value]:
        diagonal, previous, current = state
        factor, weight, diagonal_factor, place = row
        diagonal = diagonal_factor * sine * diagonal
        following = factor[:, None] * x * current - weight[:, None] * previous
        following = following + place[:, None] * diagonal
        return (diagonal, current, following), following

    first = jnp.full_like(x, math.sqrt(0.25 / math.pi) if is_normalized else 1.0)
    start = jnp.zeros((size, x.size), x.dtype).at[0].set(first)
    state = (first, jnp.zeros_like(start), start)
    rows = tuple(jnp.asarray(table, x.dtype) for table in tables)
    values = start[None]
    if size > 1:
        values = jnp.concatenate([values, scan(step, state, rows)[1]])
    return jnp.swapaxes(values, 0, 1)


def lpmn(m: int, n: int, z: ArrayLike) -> tuple[Value, Value]:
    """Returns the associated Legendre functions up to a greatest degree, and their derivatives.

    Args:
        m, n, z: As of `lpmn_values`.

    Returns:
        Two arrays of the same shape as the result of `lpmn_values`.

    Raises:
        DTypeError, ShapeError, NotImplementedError: as `lpmn_values` does.

    >>> import axir.numpy as jnp
    >>> from axir.scipy.special import lpmn
    >>> lpmn(1, 1, jnp.array([0.5]))[1][0, 1]
    Array([1.], dtype=float32)
    """
    x, size = _legendre_arguments("lpmn", m, n, z)
    values = lpmn_values(m, n, x, False)
    orders, degrees = np.meshgrid(np.arange(0.0, size), np.arange(0.0, size), indexing="ij")
    below = jnp.concatenate([jnp.zeros_like(values[:, :1]), values[:, :-1]], axis=1)
    # DLMF 14.10.5; at the ends the limits, which are infinite for order 1.
    is_end = abs(x) == 1
    square = jnp.where(is_end, 1.0, jnp.square(x) - 1)
    degree, order = (jnp.asarray(a, x.dtype)[..., None] for a in (degrees, orders))
    inside = (degree * x * values - (degree + order) * below) / square
    limits = np.where(orders == 0, degrees * (degrees + 1) / 2, 0)
    of_two = -(degrees - 1) * degrees * (degrees + 1) * (degrees + 2) / 4
    limits = limits + np.where(orders == 2, of_two, 0)
    limits = limits + np.where((orders == 1) & (degrees > 0), np.inf, 0)
    sign = jnp.where((x < 0) & ((degree + (order != 1)) % 2 == 1), -1, 1)
    at_end = sign * jnp.asarray(limits, x.dtype)[..., None]
    return values, jnp.where(degree < order, 0, jnp.where(is_end, at_end, inside))


def _legendre_arguments(name: str, m: UserObject, n: UserObject, z: ArrayLike) -> tuple[Value, int]:
    x = array_argument(name, z)
    if x.dtype not in (np.float32, np.float64):
        raise DTypeError(f"{name} takes float32 and float64, not {x.dtype}.", "Use z.astype.")
    if x.ndim != 1:
        raise ShapeError(f"{name}: z must be a vector, but has shape {x.shape}.", "Use z.ravel().")
    greatest = operator.index(n)
    if operator.index(m) != greatest:
        raise NotImplementedError(f"{name}: m and n must be equal, but are {m} and {n}.")
    return x, greatest + 1
