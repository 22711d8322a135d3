"""Compares functions of axir with JAX's of the same name: shapes, dtypes, weak types and values."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest

from axir.dialect.core.array import ConcreteArray, as_array, from_numpy

# Units in the last place by which sums in another order may differ.
RESOLUTION = {
    "float16": 2e-3, "bfloat16": 1.6e-2, "float32": 2e-6, "float64": 1e-14,
    "complex64": 2e-6, "complex128": 1e-14,
}  # fmt: skip


class Weak:
    """Marks an argument that is to be a weakly typed array."""

    def __init__(self, value: Any):
        self.value = np.asarray(value)


def to_axir(x: Any) -> Any:
    """Makes arrays of axir from the NumPy arrays of an argument."""
    if isinstance(x, Weak):
        narrow = np.asarray(jax.numpy.asarray(x.value))
        return from_numpy(narrow, weak_type=True)
    if isinstance(x, np.ndarray):
        return as_array(x)
    if isinstance(x, (tuple, list)):
        return type(x)(to_axir(entry) for entry in x)
    return x


def to_jax(x: Any) -> Any:
    """Makes arrays of JAX from the NumPy arrays of an argument."""
    if isinstance(x, Weak):
        return jax.lax.full(x.value.shape, x.value.flat[0].item()) if x.value.size else x.value
    if isinstance(x, np.ndarray):
        return jax.numpy.asarray(x)
    if isinstance(x, (tuple, list)):
        return type(x)(to_jax(entry) for entry in x)
    return x


def assert_same(ours: Any, theirs: Any, factor: float = 4.0, what: str = "") -> None:
    """Asserts that results agree in structure, type and value, NaNs included."""
    if isinstance(theirs, (tuple, list)):
        assert isinstance(ours, (tuple, list)), f"{what}: {type(ours)} is not a sequence"
        assert len(ours) == len(theirs), f"{what}: {len(ours)} results, not {len(theirs)}"
        for mine, other in zip(ours, theirs, strict=True):
            assert_same(mine, other, factor, what)
        return
    if not isinstance(theirs, jax.Array):
        assert ours == theirs, what
        return
    assert type(ours) is ConcreteArray, f"{what}: {ours!r}"
    assert ours.shape == theirs.shape, f"{what}: shape {ours.shape}, not {theirs.shape}"
    assert ours.dtype == theirs.dtype, f"{what}: dtype {ours.dtype}, not {theirs.dtype}"
    assert ours.weak_type == theirs.weak_type, f"{what}: weak_type is {ours.weak_type}"
    assert_close(np.asarray(ours), np.asarray(theirs), factor, what)


def assert_close(ours: np.ndarray, theirs: np.ndarray, factor: float = 4.0, what: str = "") -> None:
    """Asserts that values agree to `factor` times the resolution of the dtype; others exactly."""
    resolution = RESOLUTION.get(str(theirs.dtype))
    if resolution is None:
        np.testing.assert_array_equal(ours, theirs, err_msg=what)
        return
    if theirs.dtype in (ml_dtypes.bfloat16, np.float16):
        ours, theirs = ours.astype(np.float32), theirs.astype(np.float32)
    finite = np.abs(theirs)[np.isfinite(theirs)]
    scale = float(finite.max()) if finite.size else 1.0
    tolerance = factor * resolution
    np.testing.assert_allclose(
        ours, theirs, rtol=tolerance, atol=tolerance * max(scale, 1e-30), err_msg=what
    )


def compare(
    ours: Callable[..., Any],
    theirs: Callable[..., Any],
    *args: Any,
    factor: float = 4.0,
    **kwargs: Any,
) -> None:
    """Calls both functions with the same arguments and asserts that the results agree."""
    shown = ", ".join([*map(_show, args), *(f"{k}={_show(v)}" for k, v in kwargs.items())])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = theirs(*map(to_jax, args), **{k: to_jax(v) for k, v in kwargs.items()})
    result = ours(*map(to_axir, args), **{k: to_axir(v) for k, v in kwargs.items()})
    name = getattr(theirs, "__name__", "?")
    assert_same(result, expected, factor, f"{name}({shown})")


def _show(x: Any) -> str:
    if isinstance(x, np.ndarray):
        return f"{x.dtype}{list(x.shape)}"
    return f"Weak{list(x.value.shape)}" if isinstance(x, Weak) else repr(x)


def same_error(
    ours: Callable[..., Any], theirs: Callable[..., Any], *args: Any, **kwargs: Any
) -> Exception:
    """Asserts that both raise errors, and that ours can be caught as JAX's; returns ours."""
    error: Exception | None = None
    try:
        theirs(*map(to_jax, args), **{k: to_jax(v) for k, v in kwargs.items()})
    except Exception as raised:
        error = raised
    assert error is not None, "JAX raises no error"
    common = (TypeError, ValueError, NotImplementedError, IndexError)
    kinds = tuple(kind for kind in common if isinstance(error, kind))
    with pytest.raises(kinds) as caught:
        ours(*map(to_axir, args), **{k: to_axir(v) for k, v in kwargs.items()})
    return caught.value
