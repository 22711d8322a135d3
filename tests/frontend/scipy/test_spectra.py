"""Spectra of `axir.scipy.signal` against SciPy's."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import jax.scipy.signal
import numpy as np
import pytest
import scipy.signal

import axir
from axir.dialect.core.config import config
from axir.dialect.core.errors import ParameterError
from axir.scipy import signal
from axir.scipy._spectra import SegmentError

_GENERATOR = np.random.default_rng(0)
X, Y = _GENERATOR.normal(size=(2, 3, 50)), _GENERATOR.normal(size=(2, 3, 44))


@pytest.fixture(autouse=True)
def wide_dtypes() -> Iterator[None]:
    with config(jax_enable_x64=True):
        yield


def assert_same(got: Any, want: Any) -> None:
    for mine, theirs in zip(got, want, strict=True):
        assert mine.shape == np.shape(theirs)
        np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-13)


def test_signatures_are_those_of_jax() -> None:
    for name in ("csd", "detrend", "istft", "stft", "welch"):
        mine, theirs = (
            [(p.name, p.default) for p in inspect.signature(getattr(m, name)).parameters.values()]
            for m in (signal, jax.scipy.signal)
        )
        assert mine == theirs


@pytest.mark.parametrize(
    "options",
    [
        {}, {"nperseg": 15, "noverlap": 4}, {"window": "hamming", "nfft": 32},
        {"boundary": "even"}, {"boundary": "odd"}, {"boundary": "constant", "padded": False},
        {"boundary": None, "fs": 10.0}, {"return_onesided": False}, {"detrend": "linear"},
        {"axis": 1, "nperseg": 2}, {"window": np.hanning(16)}, {"window": ("kaiser", 3.0)},
    ],
)  # fmt: skip
def test_short_time_transform(options: dict[str, Any]) -> None:
    options = {"nperseg": 16, **options}
    transform = signal.stft(X, **options)
    assert_same(transform, scipy.signal.stft(X, **options))
    if "detrend" in options or options.get("boundary", "zeros") is None:
        return
    kept = {"fs", "window", "nperseg", "noverlap", "nfft"} & options.keys()
    back = {name: options[name] for name in kept}
    back["input_onesided"] = options.get("return_onesided", True)
    if "axis" in options:
        back |= {"freq_axis": 1, "time_axis": -1}
    time, got = signal.istft(transform[2], **back)
    _, want = scipy.signal.istft(np.asarray(transform[2]), **back)
    np.testing.assert_allclose(got, want, atol=1e-13)
    assert time.shape == (got.shape[-1],)
    if "axis" not in options and options.get("padded", True):
        np.testing.assert_allclose(got[..., :50].real, X, atol=1e-13)


@pytest.mark.parametrize(
    "options",
    [
        {}, {"scaling": "spectrum", "average": "median"}, {"detrend": False, "nfft": 21},
        {"window": "boxcar", "noverlap": 3, "return_onesided": False}, {"nperseg": 50},
    ],
)  # fmt: skip
def test_densities(options: dict[str, Any]) -> None:
    options = {"nperseg": 16, "fs": 3.0, **options}
    assert_same(signal.welch(X, **options), scipy.signal.welch(X, **options))
    assert_same(signal.csd(X, Y, **options), scipy.signal.csd(X, Y, **options))
    assert signal.welch(X, **options)[1].dtype == np.float64


def test_trends() -> None:
    for options in ({}, {"type": "constant"}, {"bp": [10, 20]}, {"axis": 0}, {"axis": 1, "bp": 1}):
        want = scipy.signal.detrend(X, **options)
        np.testing.assert_allclose(signal.detrend(X, **options), want, atol=1e-13)
    with pytest.raises(ParameterError, match="neither 'linear' nor 'constant'"):
        signal.detrend(X, type="cubic")
    with pytest.raises(ParameterError, match="must lie in the 50 elements"):
        signal.detrend(X, bp=60)
    with pytest.raises(NotImplementedError, match="arrays are immutable"):
        signal.detrend(X, overwrite_data=True)


def test_transforms_are_compiled_and_differentiated() -> None:
    def power(x: Any) -> Any:
        _, _, transform = signal.stft(x, nperseg=8)
        return (abs(signal.istft(transform, nperseg=8)[1]) ** 2).sum()

    x = X[0, 0, :24]
    np.testing.assert_allclose(axir.jit(axir.grad(power))(x), 2 * x, atol=1e-12)
    narrow = axir.jit(lambda x: signal.welch(x, nperseg=8))(np.float32(x))
    assert [a.dtype for a in narrow] == [np.float32, np.float32]


def test_segments_must_fit() -> None:
    with pytest.warns(UserWarning, match="nperseg = 256 is greater"):
        signal.welch(X[0, 0])
    with pytest.warns(UserWarning, match="complex signal has negative frequencies"):
        assert signal.stft(X + 0j, nperseg=8)[2].shape == (2, 3, 8, 14)
    for options in ({"nperseg": 0}, {"nperseg": 8, "noverlap": 8}, {"nperseg": 8, "nfft": 7}):
        with pytest.raises(SegmentError, match="segments need at least one element"):
            signal.stft(X, **options)
    with pytest.raises(SegmentError, match="a window of 8 elements needs"):
        signal.stft(X, window=np.ones(8), nperseg=9)
    with pytest.raises(ParameterError, match="boundary 'none' is not one of"):
        signal.stft(X, nperseg=8, boundary="none")
    with pytest.raises(ParameterError, match="scaling 'power'"):
        signal.welch(X, nperseg=8, scaling="power")
    with pytest.raises(ParameterError, match="average 'sum'"):
        signal.welch(X, nperseg=8, average="sum")
    with pytest.raises(SegmentError, match="must be different axes"):
        signal.istft(X, freq_axis=-1)
    with pytest.raises(SegmentError, match="needs an axis of time"):
        signal.istft(np.ones(3))
    assert signal.welch(np.zeros((2, 0)), nperseg=8)[1].shape == (2, 0)
