"""Axes, lengths and norms of the transforms of `axir.numpy.fft`, and the frequencies.

`one_axis` and `several_axes` are the functions of `axir.numpy.fft` for any kind of transform, named
as `axir.lax.fft` names it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import index

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Axes, DTypeLike, UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import AxisError, ConcretizationTypeError, ParameterError
from axir.dialect.ops.contraction.fourier_transform import MOST_AXES
from axir.dialect.ops.contraction.fourier_transform import fft as transform
from axir.dialect.ops.elementwise.arithmetic import mul
from axir.dialect.ops.indexing.static_slicing import slice_in_dim
from axir.dialect.ops.shape.padding import pad
from axir.dialect.ops.shape.rearranging import transpose
from axir.dialect.program.rules import Value
from axir.numpy._arguments.checks import canonical_axes, canonical_axis
from axir.numpy._arguments.promotion import array_argument, dtype_argument
from axir.numpy._arrays.creation import to_device
from axir.numpy._elementwise.arithmetic import divide, multiply
from axir.numpy._shape.reordering import roll

# The power of the number of elements by which each norm scales a transform and its inverse.
_POWERS = {"backward": (0.0, 0.0), "ortho": (-0.5, 0.5), "forward": (-1.0, 1.0)}
OTHER_WAY = {"backward": "forward", "ortho": "ortho", "forward": "backward"}
"""The norm of a transform that does the inverse's work."""


# Arguments -------------------------------------------------------------------------------------


def check_norm(name: str, norm: str | None) -> str:
    """Returns the norm, by default 'backward', if there is such a norm."""
    norm = "backward" if norm is None else norm
    if norm not in _POWERS:
        raise ParameterError(
            f"jnp.fft.{name}: norm={norm!r} is unknown.",
            "Choose 'backward', which scales inverses by 1/n, 'ortho' or 'forward'.",
        )
    return norm


def _length(name: str, length: UserObject) -> int:
    """Returns a number of elements, which must be positive."""
    try:
        number = index(length)
    except ConcretizationTypeError:
        raise
    except TypeError:
        raise ParameterError(
            f"jnp.fft.{name}: the length {length!r} is not an integer.",
            "Pass integers as n or s.",
        ) from None
    if number < 1:
        raise ParameterError(
            f"jnp.fft.{name}: the length {number} is not positive.", "Pass a positive n or s."
        )
    return number


def _axis(name: str, axis: Axes, ndim: int) -> int:
    if isinstance(axis, (tuple, list)):
        raise ParameterError(
            f"jnp.fft.{name} transforms one axis, but got axis={axis}.",
            f"Use jnp.fft.{name}n for several axes.",
        )
    return canonical_axis(f"fft.{name}", axis, ndim)


def _axes_and_lengths(
    name: str, a: Value, s: Sequence[int] | None, axes: Sequence[int] | None
) -> tuple[tuple[int, ...], list[int] | None]:
    """Returns the axes to transform, and the requested lengths."""
    lengths = None if s is None else [_length(name, length) for length in s]
    if axes is None:
        count = a.ndim if lengths is None else len(lengths)
        if count > a.ndim:
            raise ParameterError(
                f"jnp.fft.{name}: there are {count} lengths in s, but the array of shape {a.shape} "
                f"has {a.ndim} axes."
            )
        axes = range(a.ndim - count, a.ndim)
    canonical = canonical_axes(f"fft.{name}", tuple(axes), a.ndim)
    if lengths is not None and len(lengths) != len(canonical):
        raise ParameterError(
            f"jnp.fft.{name}: Shape and axes have different lengths: s={tuple(lengths)}, "
            f"axes={canonical}.",
            "Give one length for each axis.",
        )
    return canonical, lengths


def two_axes(name: str, axes: Sequence[int]) -> Sequence[int]:
    """Returns axes if they are two."""
    if len(axes) != 2:
        raise AxisError(
            f"jnp.fft.{name} transforms two axes, but got axes={tuple(axes)}.",
            f"Use jnp.fft.{name[:-1]}n for another number of axes.",
        )
    return axes


def resized(a: Value, axis: int, length: int) -> Value:
    """Cuts off an axis, or appends zeros, so that it has a length."""
    missing = length - a.shape[axis]
    if missing < 0:
        return slice_in_dim(a, 0, length, axis=axis)
    config = [(0, missing if d == axis else 0, 0) for d in range(a.ndim)]
    return pad(a, 0, config) if missing else a


# Transforms ------------------------------------------------------------------------------------


def _transform(
    kind: str, a: Value, axes: tuple[int, ...], lengths: list[int] | None, norm: str
) -> Value:
    """Transforms axes, of lengths of the operand, or for IRFFT of the result, given or its own."""
    is_inverse_of_real = kind == "IRFFT"
    if lengths is None:
        lengths = [a.shape[axis] for axis in axes]
        if is_inverse_of_real and axes:
            lengths[-1] = 2 * (lengths[-1] - 1)
    for axis, length in zip(axes, lengths, strict=True):
        is_halved = is_inverse_of_real and axis == axes[-1]
        a = resized(a, axis, length // 2 + 1 if is_halved and length else length)
    result = _unscaled(kind, a, axes, lengths)
    power, count = _POWERS[norm][kind in ("IFFT", "IRFFT")], math.prod(lengths)
    return mul(result, count**power) if power and count > 1 else result


def _unscaled(kind: str, a: Value, axes: tuple[int, ...], lengths: list[int]) -> Value:
    """Brings axes to the back and transforms as many of them at once as the op takes.

    The axis of real numbers is the first one to be transformed, and the last one to be made.
    """
    if len(axes) <= MOST_AXES:
        return _at_the_back(kind, a, axes, lengths)
    if kind == "IRFFT":
        a = _unscaled("IFFT", a, axes[:-MOST_AXES], lengths[:-MOST_AXES])
        return _at_the_back(kind, a, axes[-MOST_AXES:], lengths[-MOST_AXES:])
    a = _at_the_back(kind, a, axes[-MOST_AXES:], lengths[-MOST_AXES:])
    outer_kind = "FFT" if kind == "RFFT" else kind
    return _unscaled(outer_kind, a, axes[:-MOST_AXES], lengths[:-MOST_AXES])


def _at_the_back(kind: str, a: Value, axes: tuple[int, ...], lengths: list[int]) -> Value:
    order = (*(axis for axis in range(a.ndim) if axis not in axes), *axes)
    result = transform(_permuted(a, order), kind, lengths)
    return _permuted(result, tuple(int(place) for place in np.argsort(order)))


def _permuted(a: Value, order: tuple[int, ...]) -> Value:
    return a if order == tuple(range(a.ndim)) else transpose(a, order)


def one_axis(
    name: str, kind: str, a: ArrayLike, n: int | None, axis: Axes, norm: str | None
) -> Value:
    """Transforms an axis, of length n of the operand, for IRFFT of the result."""
    norm = check_norm(name, norm)
    a = array_argument(f"fft.{name}", a)
    lengths = None if n is None else [_length(name, n)]
    return _transform(kind, a, (_axis(name, axis, a.ndim),), lengths, norm)


def several_axes(
    name: str, kind: str, a: object, s: UserObject, axes: UserObject, norm: str | None
) -> Value:
    """Transforms axes, of lengths s of the operand, for IRFFT of the result."""
    norm = check_norm(name, norm)
    a = array_argument(f"fft.{name}", a)
    axes, lengths = _axes_and_lengths(name, a, s, axes)
    return _transform(kind, a, axes, lengths, norm)


# Frequencies --------------------------------------------------------------------------------------


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
