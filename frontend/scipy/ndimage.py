"""`axir.scipy.ndimage`: images of any number of dimensions, read between pixels, and blurred."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np

import axir.numpy as jnp
from axir import lax
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Axes
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import ParameterError, ShapeError
from axir.dialect.program.rules import Value
from axir.numpy._arguments.checks import canonical_axes, is_sequence
from axir.numpy._arguments.promotion import promote_inexact

__all__ = ["gaussian_filter", "map_coordinates"]


def __dir__() -> list[str]:
    return __all__


def _mirrored(index: Value, size: int) -> Value:
    """Reflects at the centers of the outermost pixels."""
    if size == 1:
        return jnp.zeros_like(index)
    last = size - 1
    return jnp.abs((index + last) % (2 * last) - last)


def _reflected(index: Value, size: int) -> Value:
    """Reflects at the edges of the outermost pixels."""
    folded = index % (2 * size)
    return jnp.minimum(folded, 2 * size - 1 - folded)


_PLACES: dict[str, Callable[[Value, int], Value]] = {
    "constant": lambda index, size: jnp.clip(index, 0, size - 1),
    "nearest": lambda index, size: jnp.clip(index, 0, size - 1),
    "wrap": lambda index, size: index % size,
    "mirror": _mirrored,
    "reflect": _reflected,
}
# Other names that SciPy has for these.
_SAME = {"grid-constant": "constant", "grid-wrap": "wrap", "grid-mirror": "reflect"}
_PADDING = {
    "constant": "constant", "nearest": "edge", "wrap": "wrap", "mirror": "reflect",
    "reflect": "symmetric",
}  # fmt: skip


def _mode(name: str, mode: str) -> str:
    mode = _SAME.get(mode, mode)
    if mode not in _PLACES:
        raise ParameterError(
            f"{name}: the mode is {mode!r}.", f"It is one of {', '.join([*_PLACES, *_SAME])}."
        )
    return mode


def map_coordinates(
    input: ArrayLike,
    coordinates: Sequence[ArrayLike],
    order: int,
    mode: str = "constant",
    cval: ArrayLike = 0.0,
) -> Value:
    """Returns the values of an image at positions that need not be whole numbers.

    Args:
        input: Array of n dimensions.
        coordinates: n arrays of one shape, or an array with n of them along its first axis.
        order: 0 for the nearest pixel, 1 for linear interpolation, in every dimension.
        mode: The extension of the image: 'constant' (also 'grid-constant') is one value, 'nearest'
            the pixel at the edge, 'wrap' (also 'grid-wrap') repeated, 'mirror' reflected at the
            centers of the outermost pixels, 'reflect' (also 'grid-mirror') at their edges.
        cval: The value for 'constant'.

    Returns:
        Values of the dtype of the image; integers are rounded.

    Raises:
        ShapeError: for another number of coordinates, or an empty image.
        ParameterError: for another mode or order.

    The modes follow SciPy's documentation. SciPy's 'constant' and 'wrap' behave differently near
    the edges; the modes here equal SciPy's 'grid-constant' and 'grid-wrap'.

    >>> import axir.numpy as jnp
    >>> map_coordinates(jnp.arange(6.0).reshape(2, 3), [jnp.array([0.5]), jnp.array([1.5])], 1)
    Array([3.], dtype=float32)
    """
    image = jnp.asarray(input)
    places = [jnp.asarray(x) for x in coordinates]
    if len(places) != image.ndim:
        raise ShapeError(
            f"map_coordinates: there are {len(places)} coordinates, but the image has shape "
            f"{image.shape}.",
            "Pass an array of coordinates for each dimension.",
        )
    if order not in (0, 1):
        raise ParameterError(f"map_coordinates: the order is {order!r}.", "It is 0 or 1.")
    if not image.size:
        raise ShapeError(f"map_coordinates: the image, of shape {image.shape}, is empty.")
    mode = _mode("map_coordinates", mode)
    outside = jnp.asarray(cval).astype(image.dtype)
    ends = [_neighbors(x, order) for x in places]
    terms = []
    for corner in itertools.product(*ends):
        indices = [index for index, _ in corner]
        pixels = image[
            tuple(
                _PLACES[mode](index, size) for index, size in zip(indices, image.shape, strict=True)
            )
        ]
        if mode == "constant":
            is_inside = jnp.bool_(True)
            for index, size in zip(indices, image.shape, strict=True):
                is_inside &= (index >= 0) & (index < size)
            pixels = jnp.where(is_inside, pixels, outside)
        for _, weight in corner:
            pixels = pixels if weight is None else weight * pixels
        terms.append(pixels)
    total = functools.reduce(jnp.add, terms)
    if dtypes.is_integer(image.dtype) and dtypes.is_inexact(total.dtype):
        total = lax.round(total)
    return total.astype(image.dtype)


def _neighbors(x: Value, order: int) -> list[tuple[Value, Value | None]]:
    """Returns the pixels that count at a position along one axis, with their weights."""
    if dtypes.is_integer(x.dtype):
        return [(x, None)]
    if order == 0:
        return [(lax.round(x).astype(jnp.int32), None)]
    lower = jnp.floor(x)
    share = x - lower
    index = lower.astype(jnp.int32)
    return [(index, 1 - share), (index + 1, share)]


def gaussian_filter(
    input: ArrayLike,
    sigma: float | Sequence[float],
    order: int | Sequence[int] = 0,
    output: None = None,
    mode: str | Sequence[str] = "reflect",
    cval: ArrayLike = 0.0,
    truncate: float = 4.0,
    *,
    radius: int | Sequence[int] | None = None,
    axes: Axes = None,
) -> Value:
    """Returns an image convolved with a normal distribution, or with a derivative of it.

    Args:
        input: Array of any number of dimensions; integers become floats.
        sigma: The standard deviation in pixels, one or one for each of the axes: Python numbers.
        order: Which derivative, one or one for each of the axes.
        output: Must be None: arrays are immutable.
        mode: As in `map_coordinates`, one or one for each of the axes.
        cval: The value for 'constant'.
        truncate: Where the distribution is cut off, in standard deviations.
        radius: Where it is cut off, in pixels, instead.
        axes: Along which axes; by default all.

    Raises:
        ParameterError: for another mode, a negative sigma, order or radius, or an `output`.
        ShapeError: if there are more or fewer of something than axes.

    >>> import axir.numpy as jnp
    >>> gaussian_filter(jnp.array([0.0, 0.0, 1.0, 0.0, 0.0]), 0.5).round(3)
    Array([0.   , 0.106, 0.787, 0.106, 0.   ], dtype=float32)
    """
    if output is not None:
        raise ParameterError(
            "gaussian_filter: output must be None, since arrays are immutable.",
            "Use the returned array.",
        )
    (image,) = promote_inexact("scipy.ndimage.gaussian_filter", input)
    chosen = canonical_axes("scipy.ndimage.gaussian_filter", axes, image.ndim)
    count = len(chosen)
    columns = (
        _each("sigma", sigma, count), _each("order", order, count), _each("mode", mode, count),
        _each("radius", radius, count),
    )  # fmt: skip
    for axis, deviation, derivative, edge, reach in zip(chosen, *columns, strict=True):
        deviation, derivative = float(deviation), int(derivative)
        length = int(truncate * deviation + 0.5) if reach is None else int(reach)
        if min(deviation, derivative, length) < 0:
            raise ParameterError(
                f"gaussian_filter: sigma={deviation}, order={derivative} or radius={length} is "
                "negative.",
                "They are 0 or more.",
            )
        edge = _mode("gaussian_filter", edge)
        if deviation > 1e-15:
            weights = _gaussian(deviation, derivative, length)
            image = _convolved(image, axis, weights, edge, cval)
    return image


def _each(name: str, given: object, count: int) -> list:
    """Returns an argument that is one value or one for each axis as a list."""
    if isinstance(given, str) or not is_sequence(given):
        return [given] * count
    values = list(given)  # type: ignore[call-overload]
    if len(values) != count:
        raise ShapeError(
            f"gaussian_filter: {name} has {len(values)} entries for {count} axes.",
            "Pass one for all axes, or one for each.",
        )
    return values


def _gaussian(sigma: float, order: int, radius: int) -> np.ndarray:
    """Returns a normal distribution, or a derivative of it, by Hermite's polynomials."""
    x = np.arange(-radius, radius + 1) / sigma
    density = np.exp(-0.5 * x * x)
    density /= density.sum()
    polynomial = np.polynomial.hermite_e.HermiteE.basis(order)
    return density * polynomial(x) * math.pow(-1 / sigma, order)


def _convolved(image: Value, axis: int, weights: np.ndarray, mode: str, cval: ArrayLike) -> Value:
    if not image.size:
        return image
    radius = len(weights) // 2
    widths = [(0, 0)] * image.ndim
    widths[axis] = (radius, radius)
    options = {"constant_values": cval} if mode == "constant" else {}
    padded = jnp.moveaxis(jnp.pad(image, widths, _PADDING[mode], **options), axis, -1)
    rows = padded.reshape(-1, 1, padded.shape[-1])
    kernel = jnp.asarray(weights[::-1][None, None].copy()).astype(image.dtype)
    result = lax.conv_general_dilated(rows, kernel, (1,), "VALID", precision=lax.Precision.HIGHEST)
    return jnp.moveaxis(result.reshape(*padded.shape[:-1], -1), -1, axis)
