"""Spectra of signals: `stft`, `istft`, `csd`, `welch`, `detrend` (found in `axir.scipy.signal`).

Segments of a signal are read and added by index, so all of it has derivatives. Elsewhere:
convolutions (`signal.py`), and windows, which are SciPy's.
"""

from __future__ import annotations

import dataclasses
import itertools
import operator
import warnings
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

import axir.numpy as jnp
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import HostArray, UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import ParameterError
from axir.dialect.core.late_modules import scipy_signal
from axir.dialect.program.rules import Value
from axir.numpy._arguments.checks import canonical_axis
from axir.numpy._arguments.promotion import array_argument, promote_inexact

__all__ = ["csd", "detrend", "istft", "stft", "welch"]

Detrending: TypeAlias = bool | str | Callable[[Value], Value]
_BOUNDARIES = {"even": "reflect", "constant": "edge", "zeros": "constant"}


class SegmentError(ParameterError, ValueError):
    """Lengths of segments, overlaps, transforms and windows do not fit."""


def detrend(
    data: ArrayLike,
    axis: int = -1,
    type: str = "linear",
    bp: int | Sequence[int] | HostArray = 0,
    overwrite_data: None = None,
) -> Value:
    """Returns data without their trend along an axis.

    Args:
        data: Array; integers become floats.
        axis: Which axis.
        type: 'linear' for a line that is fitted by least squares, 'constant' for the mean.
        bp: Where lines begin anew, static.
        overwrite_data: Must be None: arrays are immutable.

    Raises:
        ParameterError: for another type, or places outside the data.
        NotImplementedError: if `overwrite_data` is not None.

    >>> import axir.numpy as jnp
    >>> detrend(jnp.array([1.0, 3.0]), type="constant")
    Array([-1.,  1.], dtype=float32)
    """
    if overwrite_data is not None:
        raise NotImplementedError("detrend: overwrite_data must be None, arrays are immutable.")
    if type not in ("linear", "constant"):
        raise ParameterError(
            f"detrend: type {type!r} is neither 'linear' nor 'constant'.", "Pass one of them."
        )
    (x,) = promote_inexact("detrend", data)
    if type == "constant":
        return x - jnp.mean(x, axis=axis, keepdims=True)
    axis = canonical_axis("detrend", axis, x.ndim)
    size = x.shape[axis]
    places = np.unique(np.append(np.asarray(bp), [0, size]))
    if places[0] < 0 or places[-1] > size:
        raise ParameterError(
            f"detrend: breakpoints must lie in the {size} elements along axis {axis}, but are {bp}."
        )
    x = jnp.moveaxis(x, axis, -1)
    parts = []
    for start, stop in itertools.pairwise(places):
        length = int(stop - start)
        line = np.stack([np.ones(length), np.arange(1.0, length + 1) / length], axis=1)
        basis = jnp.asarray(np.linalg.qr(line[:, : min(length, 2)])[0], x.dtype)
        part = x[..., int(start) : int(stop)]
        parts.append(part - (part @ basis) @ basis.T)
    return jnp.moveaxis(jnp.concatenate(parts, axis=-1), -1, axis) if parts else x


def stft(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: object = "hann",
    nperseg: int = 256,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Detrending = False,
    return_onesided: bool = True,
    boundary: str | None = "zeros",
    padded: bool = True,
    axis: int = -1,
) -> tuple[Value, Value, Value]:
    """Returns the short-time Fourier transform: of segments, each times a window.

    Args:
        x: Signal.
        fs: Number of samples per unit of time.
        window: A name or tuple as of `scipy.signal.get_window`, or a vector.
        nperseg: Length of segments.
        noverlap: By how much they overlap; by half by default.
        nfft: Length of the transforms, to which segments are filled up with zeros.
        detrend: The trend removed from each segment: nothing, 'constant', 'linear', or a function
            that maps segments along the last axis to detrended segments.
        return_onesided: Whether negative frequencies are left out, for real signals.
        boundary: How the signal is continued at both ends by half a segment: 'zeros', 'even',
            'odd', 'constant', or None for not at all.
        padded: Whether zeros fill the last segment.
        axis: The axis of time.

    Returns:
        Frequencies, times, and the transform, with frequencies in the place of the axis, and times
        last.

    Raises:
        SegmentError: for lengths that do not fit; ParameterError for other unknown choices.

    >>> import axir.numpy as jnp
    >>> f, t, transform = stft(jnp.ones(8), nperseg=4)
    >>> transform.shape
    (3, 5)
    """
    segments = _Segments("stft", fs, window, nperseg, noverlap, nfft, detrend, return_onesided)
    return _spectra(segments, x, None, "spectrum", axis, boundary, padded)


def csd(
    x: ArrayLike,
    y: ArrayLike | None,
    fs: ArrayLike = 1.0,
    window: object = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Detrending = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Value, Value]:
    """Returns the cross spectral density of two signals, by Welch's method.

    Args:
        x: Signal.
        y: Signal that broadcasts against it; zeros fill the shorter one. None for x.
        fs, window, nperseg, noverlap, nfft, detrend, return_onesided, axis: As of `stft`.
        scaling: 'density' for power per frequency, 'spectrum' for power.
        average: Over segments: 'mean' or 'median'.

    Returns:
        Frequencies, and the density with frequencies in the place of the axis.

    Raises:
        SegmentError, ParameterError: as `stft` does.

    >>> import axir.numpy as jnp
    >>> f, density = csd(jnp.ones(8), jnp.ones(8), nperseg=4)
    >>> density.shape
    (3,)
    """
    segments = _Segments("csd", fs, window, nperseg, noverlap, nfft, detrend, return_onesided)
    other = x if y is None else y
    frequencies, _, density = _spectra(segments, x, other, scaling, axis, None, False)
    if average not in ("mean", "median"):
        raise ParameterError(
            f"csd: average {average!r} is neither 'mean' nor 'median'.", "Pass one of them."
        )
    if not density.size:
        return frequencies, density
    if y is None or y is x:
        density = density.real
    if average == "mean":
        return frequencies, jnp.mean(density, axis=-1)
    middle = jnp.median(density.real, axis=-1)
    if dtypes.is_complex(density.dtype):
        middle = middle + 1j * jnp.median(density.imag, axis=-1)
    # The median of exponentially distributed numbers over their mean (B. Allen et al., 2012).
    even = 2 * np.arange(1.0, (density.shape[-1] - 1) // 2 + 1)
    return frequencies, middle / float(1 + np.sum(1 / (even + 1) - 1 / even))


def welch(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: object = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Detrending = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Value, Value]:
    """Returns the power spectral density of a signal, by Welch's method.

    Args:
        x, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average:
            As of `csd`.

    Returns:
        Frequencies, and the density, which is real.

    >>> import axir.numpy as jnp
    >>> welch(jnp.ones(8), nperseg=4)[1]
    Array([0., 0., 0.], dtype=float32)
    """
    options = (fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling)
    return csd(x, None, *options, axis, average)


def istft(
    Zxx: ArrayLike,
    fs: ArrayLike = 1.0,
    window: object = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: int = -1,
    freq_axis: int = -2,
) -> tuple[Value, Value]:
    """Returns the signal of a short-time Fourier transform, the inverse of `stft`.

    Args:
        Zxx: Transform.
        fs, window, nperseg, noverlap, nfft: As of `stft`.
        input_onesided: Whether negative frequencies are left out.
        boundary: Whether the signal was continued at its ends, which then are cut off.
        time_axis: The axis of segments.
        freq_axis: The axis of frequencies.

    Returns:
        Times, and the signal. Its last axis is time unless `time_axis` is another axis.

    Raises:
        SegmentError: for lengths that do not fit.

    >>> import axir.numpy as jnp
    >>> istft(stft(jnp.arange(8.0), nperseg=4)[2], nperseg=4)[1].round(4)
    Array([0., 1., 2., 3., 4., 5., 6., 7.], dtype=float32)
    """
    transform = array_argument("istft", Zxx)
    if transform.ndim < 2:
        raise SegmentError("istft: the transform needs an axis of time and one of frequencies.")
    place = canonical_axis("istft", time_axis, transform.ndim)
    frequency = canonical_axis("istft", freq_axis, transform.ndim)
    if place == frequency:
        raise SegmentError("istft: time_axis and freq_axis must be different axes.")
    usual = transform.shape[frequency]
    usual = 2 * (usual - 1) if input_onesided else usual
    length = usual if nperseg is None else operator.index(nperseg)
    if nfft is None:
        points = usual + 1 if input_onesided and length == usual + 1 else usual
    else:
        points = operator.index(nfft)
    overlap = length // 2 if noverlap is None else operator.index(noverlap)
    _check_lengths("istft", length, overlap, points)
    transform = jnp.moveaxis(transform, (place, frequency), (-2, -1))
    inverse = jnp.fft.irfft if input_onesided else jnp.fft.ifft
    parts = inverse(transform, n=points, axis=-1)[..., :length]
    taper = jnp.asarray(_window("istft", window, length)).astype(parts.real.dtype)
    index = _positions(parts.shape[-2], length, length - overlap)
    size = int(index[-1, -1]) + 1
    signal = jnp.zeros((*parts.shape[:-2], size), parts.dtype)
    signal = signal.at[..., index].add(parts * (taper * jnp.sum(taper)))
    total = jnp.zeros(size, taper.dtype).at[index].add(jnp.square(taper))
    signal = signal / jnp.where(total > 1e-10, total, 1.0)
    if boundary:
        signal = signal[..., length // 2 : size - length // 2]
    time = jnp.arange(signal.shape[-1], dtype=taper.dtype) / fs
    if place != transform.ndim - 1:
        signal = jnp.moveaxis(signal, -1, place - (frequency < place))
    return time, signal


# Segments --------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class _Segments:
    """Segmentation and transform of a signal; fields as in `stft`, `name` for errors."""

    name: str
    fs: ArrayLike
    window: UserObject
    nperseg: int | None
    noverlap: int | None
    nfft: int | None
    detrend: Detrending
    return_onesided: bool

    def length(self, available: int) -> int:
        """Returns the length of segments of a signal of a length."""
        if isinstance(self.window, (str, tuple)):
            length = 256 if self.nperseg is None else operator.index(self.nperseg)
            if length > available > 0:
                warnings.warn(
                    f"{self.name}: nperseg = {length} is greater than the signal's length, and "
                    f"becomes {available}.",
                    stacklevel=4,
                )
                length = available
            return length
        length = np.shape(self.window)[0]
        if length > available or self.nperseg not in (None, length):
            raise SegmentError(
                f"{self.name}: a window of {length} elements needs segments of as many, but "
                f"nperseg is {self.nperseg} and the signal has {available}."
            )
        return length

    def without_trend(self, parts: Value) -> Value:
        """Returns segments along the last axis without their trend."""
        if isinstance(self.detrend, str):
            return detrend(parts, -1, self.detrend)
        return self.detrend(parts) if callable(self.detrend) else parts


def _check_lengths(name: str, length: int, overlap: int, points: int) -> None:
    if length < 1 or not overlap < length or points < length:
        raise SegmentError(
            f"{name}: segments need at least one element, an overlap of fewer than they have, and "
            f"transforms of as many at least, but nperseg = {length}, noverlap = {overlap}, "
            f"nfft = {points}."
        )


def _window(name: str, window: UserObject, length: int) -> UserObject:
    if not isinstance(window, (str, tuple)):
        if np.shape(window) != (length,):
            raise SegmentError(
                f"{name}: the window must be a vector of {length} elements, but has shape "
                f"{np.shape(window)}."
            )
        return window
    return scipy_signal.get_window(window, length)


def _positions(count: int, length: int, step: int) -> HostArray:
    """Returns where the elements of segments lie in the signal, a row for each."""
    return step * np.arange(count)[:, None] + np.arange(length)


def _continued(name: str, x: Value, boundary: str | None, count: int) -> Value:
    """Returns a signal with elements at both ends of the last axis."""
    if boundary is None or not count:
        return x
    if boundary == "odd":
        first, last = x[..., :1], x[..., -1:]
        before, after = x[..., count:0:-1], x[..., -2 : -count - 2 : -1]
        return jnp.concatenate([2 * first - before, x, 2 * last - after], axis=-1)
    if boundary not in _BOUNDARIES:
        raise ParameterError(
            f"{name}: boundary {boundary!r} is not one of {('odd', *_BOUNDARIES)} or None.",
            "Pass one of them.",
        )
    return jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(count, count)], _BOUNDARIES[boundary])


def _spectra(
    segments: _Segments,
    x: ArrayLike,
    y: ArrayLike | None,
    scaling: str,
    axis: int,
    boundary: str | None,
    padded: bool,
) -> tuple[Value, Value, Value]:
    """Returns frequencies, times, and x's transforms, or their conjugates times y's transforms."""
    name, has_power = segments.name, y is not None
    signals = promote_inexact(name, x, *([] if y is None else [y]))
    signals = [
        jnp.moveaxis(signal, canonical_axis(name, axis, signal.ndim), -1) for signal in signals
    ]
    axis = canonical_axis(name, axis, max(signal.ndim for signal in signals))
    size = max(signal.shape[-1] for signal in signals)
    dtype = signals[0].real.dtype
    length = segments.length(size)
    overlap = length // 2 if segments.noverlap is None else operator.index(segments.noverlap)
    points = length if segments.nfft is None else operator.index(segments.nfft)
    _check_lengths(name, length, overlap, points)
    if any(not signal.size for signal in signals):
        empty = jnp.zeros(np.shape(x), dtype)
        return empty, empty, empty + 0j
    step, half = length - overlap, length // 2 if boundary is not None else 0
    size += 2 * half
    fill = (-(size - length) % step) % length if padded else 0
    taper = jnp.asarray(_window(name, segments.window, length)).astype(dtype)
    is_onesided = segments.return_onesided
    if is_onesided and dtypes.is_complex(signals[0].dtype):
        warnings.warn(
            f"{name}: a complex signal has negative frequencies, as of return_onesided=False.",
            stacklevel=3,
        )
        is_onesided = False
    index = _positions((size + fill - overlap) // step, length, step)
    transforms = []
    for signal in signals:
        missing = size - 2 * half - signal.shape[-1]
        signal = jnp.pad(signal, [(0, 0)] * (signal.ndim - 1) + [(0, missing)])
        signal = _continued(name, signal, boundary, half)
        signal = jnp.pad(signal, [(0, 0)] * (signal.ndim - 1) + [(0, fill)])
        parts = segments.without_trend(signal[..., index]) * taper
        transforms.append((jnp.fft.rfft if is_onesided else jnp.fft.fft)(parts, n=points))
    scale = _scale(name, scaling, taper, segments.fs)
    if has_power:
        result = jnp.conj(transforms[0]) * transforms[-1] * scale
        if is_onesided:  # negative frequencies have the same power
            twice = np.full(result.shape[-1], 2.0)
            twice[0] = 1
            twice[-1] = 2 - (points % 2 == 0)
            result = result * jnp.asarray(twice, dtype)
    else:
        result = transforms[0] * jnp.sqrt(scale)
    spacing = 1 / jnp.asarray(segments.fs, dtype)
    count = np.arange(points // 2 + 1) if is_onesided else np.fft.fftfreq(points, 1 / points)
    frequencies = jnp.asarray(count / points, dtype) / spacing
    time = jnp.asarray(index[:, 0] + 0.5 * length - (0.5 * length if half else 0), dtype) * spacing
    return frequencies, time, jnp.moveaxis(result, -1, axis)


def _scale(name: str, scaling: str, taper: Value, fs: ArrayLike) -> Value:
    if scaling == "density":
        return 1 / (jnp.sum(jnp.square(taper)) * fs)
    if scaling == "spectrum":
        return 1 / jnp.square(jnp.sum(taper))
    raise ParameterError(
        f"{name}: scaling {scaling!r} is neither 'density' nor 'spectrum'.", "Pass one of them."
    )
