"""`axir.image`: images, of any number of dimensions, resized, scaled and moved.

>>> import axir.numpy as jnp
>>> from axir.image import resize
>>> resize(jnp.array([[0.0, 1.0]]), (1, 4), "linear")
Array([[0.  , 0.25, 0.75, 1.  ]], dtype=float32)
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

import axir.numpy as jnp
from axir import lax
from axir.dialect.core.annotations import PrecisionLike
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import ParameterError, ShapeError
from axir.dialect.core.symbolic_dims import as_extent
from axir.dialect.program.rules import Value
from axir.numpy._arguments.checks import canonical_axes
from axir.numpy._arguments.promotion import array_argument, promote_inexact

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]


def __dir__() -> list[str]:
    return __all__


class ResizeMethod(enum.Enum):
    """The ways to interpolate between pixels.

    Attributes:
        NEAREST: The value of the nearest pixel.
        LINEAR: Linear interpolation.
        LANCZOS3, LANCZOS5: Lanczos' kernels of radius 3 and 5.
        CUBIC: The cubic kernel of R. G. Keys (1981) with a = -1/2.
        CUBIC_PYTORCH: The same with a = -3/4, as PyTorch and OpenCV have it.
        AREA: The mean of the pixels that an output pixel covers.
    """

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """Returns the method of a name.

        Raises:
            ParameterError: for a name that no method has.

        >>> ResizeMethod.from_string("bilinear")
        <ResizeMethod.LINEAR: 1>
        """
        method = _NAMES.get(s)
        if method is None:
            raise ParameterError(
                f"Unknown resize method {s!r}.", f"The names are {', '.join(_NAMES)}."
            )
        return method


_NAMES = {
    "nearest": ResizeMethod.NEAREST,
    "linear": ResizeMethod.LINEAR,
    "bilinear": ResizeMethod.LINEAR,
    "trilinear": ResizeMethod.LINEAR,
    "triangle": ResizeMethod.LINEAR,
    "lanczos3": ResizeMethod.LANCZOS3,
    "lanczos5": ResizeMethod.LANCZOS5,
    "cubic": ResizeMethod.CUBIC,
    "bicubic": ResizeMethod.CUBIC,
    "tricubic": ResizeMethod.CUBIC,
    "cubic-pytorch": ResizeMethod.CUBIC_PYTORCH,
    "bicubic-pytorch": ResizeMethod.CUBIC_PYTORCH,
    "area": ResizeMethod.AREA,
}


def _triangle(x: Value) -> Value:
    return jnp.maximum(0, 1 - x)


def _lanczos(radius: int, x: Value) -> Value:
    """Computes sinc(x) sinc(x / radius) up to the radius."""
    is_far = x > 1e-3
    angle = jnp.where(is_far, math.pi * x, 1)
    product = jnp.sin(angle) * jnp.sin(angle / radius) * radius / (angle * angle)
    return jnp.where(x > radius, 0, jnp.where(is_far, product, 1))


def _cubic(a: float, x: Value) -> Value:
    """Computes the kernel of Keys, formula 15 of his article for a = -1/2."""
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return jnp.where(x < 1, near, jnp.where(x < 2, far, 0))


KERNELS: dict[ResizeMethod, Callable[[Value], Value]] = {
    ResizeMethod.LINEAR: _triangle,
    ResizeMethod.LANCZOS3: partial(_lanczos, 3),
    ResizeMethod.LANCZOS5: partial(_lanczos, 5),
    ResizeMethod.CUBIC: partial(_cubic, -0.5),
    ResizeMethod.CUBIC_PYTORCH: partial(_cubic, -0.75),
}
"""How much a pixel counts at a distance that is not negative, in pixels."""

RADIUS = {ResizeMethod.CUBIC_PYTORCH: 2}
"""How far a kernel reaches whose method repeats the pixels at the edges."""


# Resampling ---------------------------------------------------------------------------------------


# A smaller sum of weights means that no pixel contributes.
_SMALLEST_SUM = 1000 * float(np.finfo(np.float32).eps)


def resize(
    image: ArrayLike,
    shape: Sequence[int],
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: PrecisionLike = lax.Precision.HIGHEST,
) -> Value:
    """Returns an image in another shape; pixels are squares around their centers.

    Args:
        image: Array of any number of dimensions; integers become floats unless the method is
            'nearest'.
        shape: The new shape, with the old extents along axes of batches and channels.
        method: 'nearest'; 'linear' ('bilinear', 'trilinear', 'triangle'); 'cubic' ('bicubic',
            'tricubic'); 'cubic-pytorch' ('bicubic-pytorch'), which without `antialias` takes
            another kernel and repeats the edges; 'lanczos3'; 'lanczos5'; 'area'; or a
            `ResizeMethod`.
        antialias: Whether the kernel of an image that shrinks is widened, so that all pixels count.
        precision: As in `axir.lax.dot_general`.

    Raises:
        ShapeError: if `shape` is of another length than the image's.
        ParameterError: for another method, or a negative extent.

    >>> import axir.numpy as jnp
    >>> resize(jnp.arange(4.0), (2,), "area")
    Array([0.5, 2.5], dtype=float32)
    """
    method = _method(method)
    if method is ResizeMethod.NEAREST:
        return _nearest(array_argument("image.resize", image, 0), _shape("resize", image, shape))
    (x,) = promote_inexact("image.resize", image)
    shape = _shape("resize", x, shape)
    # The kernels interpolate: along an axis that keeps its extent nothing changes.
    for axis in _changed(x, shape):
        scale = shape[axis] / x.shape[axis] if shape[axis] and x.shape[axis] else 1.0
        weights = _weights(x.shape[axis], shape[axis], scale, 0.0, method, antialias)
        x = _contracted(x, axis, weights, precision)
    return x


def scale_and_translate(
    image: ArrayLike,
    shape: Sequence[int],
    spatial_dims: Sequence[int],
    scale: ArrayLike,
    translation: ArrayLike,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: PrecisionLike = lax.Precision.HIGHEST,
) -> Value:
    """Returns an image scaled and moved: a point x moves to x * scale + translation.

    The pixel at position i has its center at i + 1/2. Pixels outside the image count as 0, or with
    'cubic-pytorch' and without `antialias` the pixel at the edge.

    Args:
        image: Array of any number of dimensions; integers become floats.
        shape: The shape of the result.
        spatial_dims: The axes along which the image is scaled and moved, d of them; along the
            others `shape` has the extents of the image.
        scale, translation: Arrays of shape (d,), in the order of `spatial_dims`. The result has
            derivatives with regard to them, too.
        method: As in `resize`, save for 'nearest'.
        antialias: Whether the kernel of an image that shrinks is widened, so that all pixels count.
        precision: As in `axir.lax.dot_general`.

    Raises:
        ShapeError: if the lengths of `shape`, `scale` or `translation` do not fit.
        ParameterError: for another method, or a negative extent.
        AxisError: for axes that the image does not have, or that are named twice.

    >>> import axir.numpy as jnp
    >>> x = jnp.array([1.0, 2.0, 3.0])
    >>> scale_and_translate(x, (4,), (0,), jnp.ones(1), jnp.ones(1), "linear")
    Array([0., 1., 2., 3.], dtype=float32)
    """
    method = _method(method)
    if method is ResizeMethod.NEAREST:
        raise ParameterError(
            "scale_and_translate: the method 'nearest' is not one of a matrix of weights.",
            "Use 'linear', or jnp.take with positions of your own.",
        )
    (x,) = promote_inexact("image.scale_and_translate", image)
    shape = _shape("scale_and_translate", x, shape)
    axes = canonical_axes("image.scale_and_translate", list(spatial_dims), x.ndim)
    scale, translation = promote_inexact("image.scale_and_translate", scale, translation)
    for name, values in (("scale", scale), ("translation", translation)):
        if values.shape != (len(axes),):
            raise ShapeError(
                f"scale_and_translate: {name} is of shape {values.shape}, but there are "
                f"{len(axes)} spatial_dims.",
                f"Pass an array of shape ({len(axes)},).",
            )
    for axis in set(_changed(x, shape)) - set(axes):
        raise ShapeError(
            f"scale_and_translate: axis {axis} is to change from {x.shape[axis]} to {shape[axis]}, "
            f"but is not among spatial_dims={tuple(spatial_dims)}."
        )
    for number, axis in enumerate(axes):
        weights = _weights(
            x.shape[axis], shape[axis], scale[number], translation[number], method, antialias
        )
        x = _contracted(x, axis, weights, precision)
    return x


def _method(method: str | ResizeMethod) -> ResizeMethod:
    return method if isinstance(method, ResizeMethod) else ResizeMethod.from_string(method)


def _shape(name: str, image: ArrayLike, shape: Sequence[int]) -> tuple[int, ...]:
    sizes = tuple(as_extent(size) for size in shape)
    if len(sizes) != jnp.ndim(image):
        raise ShapeError(
            f"{name}: the shape {sizes} has {len(sizes)} extents, but the image of shape "
            f"{jnp.shape(image)} has {jnp.ndim(image)} dimensions.",
            "Give the extents of all dimensions, those of batches and channels too.",
        )
    if any(size < 0 for size in sizes):
        raise ParameterError(f"{name}: the shape {sizes} has a negative extent.")
    return sizes


def _changed(x: Value, shape: Sequence[int]) -> list[int]:
    """Returns the axes along which a shape is another one, those that shrink most first."""
    axes = [axis for axis in range(x.ndim) if x.shape[axis] != shape[axis]]
    return sorted(axes, key=lambda axis: shape[axis] / max(x.shape[axis], 1))


def _contracted(x: Value, axis: int, weights: Value, precision: PrecisionLike) -> Value:
    product = jnp.tensordot(x, weights.astype(x.dtype), axes=(axis, 0), precision=precision)
    return jnp.moveaxis(product, -1, axis)


def _nearest(x: Value, shape: tuple[int, ...]) -> Value:
    for axis in _changed(x, shape):
        if not x.shape[axis]:
            return jnp.zeros(shape, x.dtype)
        middles = 2 * np.arange(shape[axis], dtype=np.int64) + 1
        positions = middles * x.shape[axis] // (2 * shape[axis])
        x = jnp.take(x, positions.astype(np.int32), axis=axis)
    return x


def _weights(
    size: int,
    new_size: int,
    scale: ArrayLike,
    translation: ArrayLike,
    method: ResizeMethod,
    antialias: bool,
) -> Value:
    """Returns how much each of the old pixels counts for each of the new ones.

    Args:
        size, new_size: The numbers of pixels.
        scale, translation: Where they go, scalars.
        method: The kernel.
        antialias: Whether it is widened when pixels become fewer.

    Returns:
        An array of shape (size, new_size). Its columns have the sum 1, or are 0 outside.
    """
    if method is ResizeMethod.CUBIC_PYTORCH and antialias:
        method = ResizeMethod.CUBIC
    padding = RADIUS.get(method, 0)  # how often the pixels at the edges are repeated
    inverse = 1 / jnp.asarray(scale)
    new = jnp.arange(new_size, dtype=inverse.dtype)[None, :]
    start = (new - translation) * inverse
    middle = start + 0.5 * inverse - 0.5
    old = jnp.arange(-padding, size + padding, dtype=inverse.dtype)[:, None]
    if method is ResizeMethod.AREA:
        overlap = jnp.minimum(start + inverse, old + 1) - jnp.maximum(start, old)
        weights = jnp.maximum(overlap, 0)
    else:
        width = jnp.maximum(inverse, 1) if antialias else 1
        weights = KERNELS[method](jnp.abs(middle - old) / width)
    if padding:
        inner = weights[padding : size + padding]
        inner = inner.at[0].add(weights[:padding].sum(0))
        weights = inner.at[-1].add(weights[size + padding :].sum(0))
    total = weights.sum(0, keepdims=True)
    is_covered = jnp.abs(total) > _SMALLEST_SUM
    if not padding:
        is_covered &= (middle >= -0.5) & (middle <= size - 0.5)
    return jnp.where(is_covered, weights / jnp.where(is_covered, total, 1), 0)
