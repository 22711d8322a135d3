"""`ResizeMethod` and the kernels of the methods: how much a pixel counts at a distance."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from functools import partial

import axir.numpy as jnp
from axir.dialect.core.errors import ParameterError
from axir.dialect.program.rules import Value


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
