"""`axir.numpy.fft`: discrete Fourier transforms, with NumPy's norms, padding and axes.

Elsewhere: the transform itself (`axir.lax.fft`), the handling of arguments and the frequencies
(`_fourier.py`).

>>> import axir.numpy as jnp
>>> jnp.fft.rfft(jnp.array([1.0, 2.0, 3.0, 4.0])).real
Array([10., -2., -2.], dtype=float32)
"""

from __future__ import annotations

from collections.abc import Sequence

from axir.dialect.core.annotations import UserObject
from axir.dialect.core.dtypes import is_complex
from axir.dialect.ops.elementwise.conversion import conj
from axir.dialect.program.rules import Value

from ._arguments.promotion import array_argument
from ._fourier import (
    OTHER_WAY,
    check_norm,
    fftfreq,
    fftshift,
    ifftshift,
    one_axis,
    rfftfreq,
    several_axes,
    two_axes,
)

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift",
    "ihfft", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


def fft(a: UserObject, n: int | None = None, axis: int = -1, norm: str | None = None) -> Value:
    """Returns the discrete Fourier transform along an axis.

    Args:
        a: Array, real or complex.
        n: Length: the axis is cut off, or zeros are appended. By default its own.
        axis: The axis.
        norm: The scaling: 'backward' (the default) scales inverses by 1/n, 'forward' scales
            transforms by 1/n, 'ortho' scales both by 1/sqrt(n).

    Returns:
        complex64, or complex128 for operands of 64 bits.

    Raises:
        ParameterError: for a length that is not positive, or an unknown norm.
        AxisError: for an axis out of range.

    >>> import axir.numpy as jnp
    >>> jnp.fft.fft(jnp.array([1.0, 0.0])).real
    Array([1., 1.], dtype=float32)
    """
    return one_axis("fft", "FFT", a, n, axis, norm)


def ifft(a: UserObject, n: int | None = None, axis: int = -1, norm: str | None = None) -> Value:
    """Returns the inverse of `fft`.

    Takes the arguments and raises the errors of `fft`.

    >>> import axir.numpy as jnp
    >>> jnp.fft.ifft(jnp.array([2.0, 0.0])).real
    Array([1., 1.], dtype=float32)
    """
    return one_axis("ifft", "IFFT", a, n, axis, norm)


def rfft(a: UserObject, n: int | None = None, axis: int = -1, norm: str | None = None) -> Value:
    """Returns the transform of real numbers: its first n // 2 + 1 elements, which determine all.

    Args:
        a: Array of real numbers.
        n: Length: the axis is cut off, or zeros are appended. By default its own.
        axis: The axis.
        norm: 'backward', 'ortho' or 'forward', as for `fft`.

    Raises:
        RealOperandError: for complex numbers and 16-bit floats.
        ParameterError, AxisError: as `fft`.

    >>> import axir.numpy as jnp
    >>> jnp.fft.rfft(jnp.ones(4)).real
    Array([4., 0., 0.], dtype=float32)
    """
    return one_axis("rfft", "RFFT", a, n, axis, norm)


def irfft(a: UserObject, n: int | None = None, axis: int = -1, norm: str | None = None) -> Value:
    """Returns the real signal for n // 2 + 1 given elements of its transform.

    Args:
        a: Array of the first halves of spectra.
        n: Length of the result, by default the even one: 2 (m - 1) for m given elements.
        axis: The axis.
        norm: 'backward', 'ortho' or 'forward', as for `fft`.

    Raises:
        ParameterError, AxisError: as `fft`.

    >>> import axir.numpy as jnp
    >>> jnp.fft.irfft(jnp.array([4.0, 0.0, 0.0]))
    Array([1., 1., 1., 1.], dtype=float32)
    """
    return one_axis("irfft", "IRFFT", a, n, axis, norm)


def hfft(a: object, n: int | None = None, axis: int = -1, norm: str | None = None) -> Value:
    """Returns the real transform of a Hermitian signal, given its first half.

    Takes the arguments and raises the errors of `irfft`: `a` is the first half, `n` is the length
    of the result.

    >>> import axir.numpy as jnp
    >>> jnp.fft.hfft(jnp.array([1.0, 0.0, 0.0]))
    Array([1., 1., 1., 1.], dtype=float32)
    """
    norm = OTHER_WAY[check_norm("hfft", norm)]
    a = array_argument("fft.hfft", a)
    return one_axis("hfft", "IRFFT", conj(a) if is_complex(a.dtype) else a, n, axis, norm)


def ihfft(a: UserObject, n: int | None = None, axis: int = -1, norm: str | None = None) -> Value:
    """Returns the inverse of `hfft`: the first half of the signal with a real transform.

    Takes the arguments and raises the errors of `rfft`.

    >>> import axir.numpy as jnp
    >>> jnp.fft.ihfft(jnp.ones(4)).real
    Array([1., 0., 0.], dtype=float32)
    """
    norm = OTHER_WAY[check_norm("ihfft", norm)]
    return conj(one_axis("ihfft", "RFFT", a, n, axis, norm))


def fftn(
    a: object,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Value:
    """Returns the discrete Fourier transform along several axes.

    Args:
        a: Array, real or complex.
        s: Lengths, one per axis: axes are cut off, or zeros are appended. By default their own.
        axes: The axes; by default the last ones, as many as lengths, or all.
        norm: 'backward', 'ortho' or 'forward', as for `fft`; n is the number of elements.

    Raises:
        ParameterError: for lengths that are not positive or not as many as axes, or an unknown
            norm.
        AxisError: for an axis out of range or named twice.

    >>> import axir.numpy as jnp
    >>> jnp.fft.fftn(jnp.ones((2, 2))).real.sum()
    Array(4., dtype=float32)
    """
    return several_axes("fftn", "FFT", a, s, axes, norm)


def ifftn(
    a: object,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Value:
    """Returns the inverse of `fftn`.

    Takes the arguments and raises the errors of `fftn`.

    >>> import axir.numpy as jnp
    >>> jnp.fft.ifftn(jnp.ones((2, 2))).real.sum()
    Array(1., dtype=float32)
    """
    return several_axes("ifftn", "IFFT", a, s, axes, norm)


def rfftn(
    a: object,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Value:
    """Returns the transform of real numbers along several axes: half of the last axis.

    Takes the arguments and raises the errors of `fftn`; complex numbers raise a RealOperandError.

    >>> import axir.numpy as jnp
    >>> jnp.fft.rfftn(jnp.ones((2, 4))).shape
    (2, 3)
    """
    return several_axes("rfftn", "RFFT", a, s, axes, norm)


def irfftn(
    a: object,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Value:
    """Returns the inverse of `rfftn`.

    Takes the arguments and raises the errors of `fftn`, but the lengths are the result's: the last
    one is by default 2 (m - 1) for m given elements.

    >>> import axir.numpy as jnp
    >>> jnp.fft.irfftn(jnp.ones((2, 3))).shape
    (2, 4)
    """
    return several_axes("irfftn", "IRFFT", a, s, axes, norm)


def fft2(
    a: object,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: str | None = None,
) -> Value:
    """Returns `fftn` along two axes, by default the last two.

    Raises:
        AxisError: if there are not two axes, and as `fftn`.
        ParameterError: as `fftn`.

    >>> import axir.numpy as jnp
    >>> jnp.fft.fft2(jnp.ones((2, 2))).real.sum()
    Array(4., dtype=float32)
    """
    return several_axes("fft2", "FFT", a, s, two_axes("fft2", axes), norm)


def ifft2(
    a: object,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: str | None = None,
) -> Value:
    """Returns `ifftn` along two axes, by default the last two.

    Raises:
        AxisError: if there are not two axes, and as `fftn`.
        ParameterError: as `fftn`.

    >>> import axir.numpy as jnp
    >>> jnp.fft.ifft2(jnp.ones((2, 2))).real.sum()
    Array(1., dtype=float32)
    """
    return several_axes("ifft2", "IFFT", a, s, two_axes("ifft2", axes), norm)


def rfft2(
    a: object,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: str | None = None,
) -> Value:
    """Returns `rfftn` along two axes, by default the last two.

    Raises:
        AxisError: if there are not two axes, and as `fftn`.
        ParameterError: as `fftn`.

    >>> import axir.numpy as jnp
    >>> jnp.fft.rfft2(jnp.ones((2, 4))).shape
    (2, 3)
    """
    return several_axes("rfft2", "RFFT", a, s, two_axes("rfft2", axes), norm)


def irfft2(
    a: object,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: str | None = None,
) -> Value:
    """Returns `irfftn` along two axes, by default the last two.

    Raises:
        AxisError: if there are not two axes, and as `fftn`.
        ParameterError: as `fftn`.

    >>> import axir.numpy as jnp
    >>> jnp.fft.irfft2(jnp.ones((2, 3))).shape
    (2, 4)
    """
    return several_axes("irfft2", "IRFFT", a, s, two_axes("irfft2", axes), norm)
