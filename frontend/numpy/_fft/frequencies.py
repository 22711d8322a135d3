"""Frequencies of the elements of Fourier transforms, and their order, for `axir.numpy.fft`."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import DTypeLike, UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import ConcretizationTypeError, ParameterError
from axir.dialect.program.rules import Value
from axir.numpy._arguments.checks import canonical_axes
from axir.numpy._arguments.promotion import array_argument, dtype_argument
from axir.numpy._arrays.creation import to_device
from axir.numpy._elementwise.arithmetic import divide, multiply
from axir.numpy._shape.manipulation import roll

__all__ = ["fftfreq", "fftshift", "ifftshift", "rfftfreq"]


def fftfreq(n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike = None, device: object = None) -> Value:
    """Returns the frequencies of the elements of a transform, those above the middle as negative.

    Args:
        n: Number of samples.
        d: Time between two samples, real.
        dtype: Of the result, by default the default float.
        device: Where to put it.

    Raises:
        ParameterError: if `n` is not an integer.

    >>> import axir.numpy as jnp
    >>> jnp.fft.fftfreq(5, 0.2)
    Array([ 0.,  1.,  2., -2., -1.], dtype=float32)
    """
    n = _count("fftfreq", n)
    places = np.arange(n)
    cycles = np.where(places < (n + 1) // 2, places, places - n)
    return _frequencies("fftfreq", cycles, n, d, dtype, device)


def rfftfreq(
    n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike = None, device: object = None
) -> Value:
    """Returns the frequencies of the n // 2 + 1 elements of `rfft`.

    Takes the arguments of `fftfreq`.

    >>> import axir.numpy as jnp
    >>> jnp.fft.rfftfreq(5, 0.2)
    Array([0., 1., 2.], dtype=float32)
    """
    n = _count("rfftfreq", n)
    return _frequencies("rfftfreq", np.arange(n // 2 + 1), n, d, dtype, device)


def _count(name: str, n: UserObject) -> int:
    try:
        return index(n)
    except ConcretizationTypeError:
        raise
    except TypeError:
        raise ParameterError(
            f"jnp.fft.{name}: the number of samples n must be an integer, but it is {n!r}."
        ) from None


def _frequencies(
    name: str, cycles: np.ndarray, n: int, d: ArrayLike, dtype: DTypeLike, device: object
) -> Value:
    dtype = dtype_argument(f"fft.{name}", float if dtype is None else dtype)
    wide = dtype if dtypes.is_inexact(dtype) else dtypes.float32
    d = array_argument(f"fft.{name}", d, 1)
    if dtypes.is_complex(d.dtype):
        raise ParameterError(f"jnp.fft.{name}: the time d between samples must be real, not {d}.")
    result = divide(cycles.astype(wide), multiply(d, n).astype(wide))
    return to_device(result.astype(dtype), device)


def fftshift(x: object, axes: int | Sequence[int] | None = None) -> Value:
    """Moves the element of frequency zero to the middle of axes.

    Args:
        x: Array.
        axes: The axis or axes; all by default.

    Raises:
        AxisError: for an axis out of range.

    >>> import axir.numpy as jnp
    >>> jnp.fft.fftshift(jnp.fft.fftfreq(5, 0.2))
    Array([-2., -1.,  0.,  1.,  2.], dtype=float32)
    """
    x = array_argument("fft.fftshift", x)
    shifted = canonical_axes("fft.fftshift", axes, x.ndim)
    return roll(x, [x.shape[axis] // 2 for axis in shifted], shifted) if shifted else x


def ifftshift(x: object, axes: int | Sequence[int] | None = None) -> Value:
    """Undoes `fftshift`: moves the element in the middle of axes to their start.

    >>> import axir.numpy as jnp
    >>> jnp.fft.ifftshift(jnp.array([-2, -1, 0, 1, 2]))
    Array([ 0,  1,  2, -2, -1], dtype=int32)
    """
    x = array_argument("fft.ifftshift", x)
    shifted = canonical_axes("fft.ifftshift", axes, x.ndim)
    return roll(x, [-(x.shape[axis] // 2) for axis in shifted], shifted) if shifted else x
