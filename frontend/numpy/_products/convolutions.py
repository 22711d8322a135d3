"""Convolutions of vectors: `convolve` and `correlate`.

Elsewhere: convolutions of arrays (`axir.scipy.signal`, `axir.lax`).
"""

from __future__ import annotations

from collections.abc import Sequence

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import DTypeLike, PrecisionLike
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import ParameterError
from axir.dialect.core.symbolic_dims import symbolic_dim_bounds
from axir.dialect.ops.convolution.conv_general_dilated import conv_general_dilated
from axir.dialect.ops.convolution.types import ConvolutionShapeError
from axir.dialect.ops.elementwise.conversion import conj
from axir.dialect.ops.shape.rearranging import reshape, rev
from axir.dialect.program.rules import Value
from axir.numpy._arguments.promotion import promote_inexact, promote_numeric

__all__ = ["convolve", "correlate"]


MODES = ("full", "same", "valid")


def convolve(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "full",
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike = None,
) -> Value:
    """Returns the convolution of two vectors: c[n] = sum over m of a[m] v[n - m].

    Args:
        a: Vector of length M.
        v: Vector of length N; integers become floats, unless an integer dtype is preferred.
        mode: 'full' for all M + N - 1 elements with at least one term; 'same' for the middle max(M,
            N) of them; 'valid' for the elements with all terms.
        precision: As in `lax.conv_general_dilated`.
        preferred_element_type: dtype to accumulate in, and of the result.

    Raises:
        ShapeError: for anything but vectors that are not empty.
        ParameterError: for another mode.

    >>> import axir.numpy as jnp
    >>> jnp.convolve(jnp.array([1.0, 2.0, 3.0]), jnp.array([1.0, 0.5]))
    Array([1. , 2.5, 4. , 1.5], dtype=float32)
    """
    a, v = _vectors("convolve", a, v, mode, preferred_element_type)
    if symbolic_dim_bounds(a.shape[0])[1] < symbolic_dim_bounds(v.shape[0])[0]:
        a, v = v, a
    start, size = _middle(mode, a.shape[0], v.shape[0])
    return convolve_range(a, v, (start,), (size,), precision, preferred_element_type)


def correlate(
    a: ArrayLike, v: ArrayLike, mode: str = "valid", *, precision: PrecisionLike = None,
    preferred_element_type: DTypeLike = None,
) -> Value:  # fmt: skip
    """Returns the cross-correlation of two vectors: c[k] = sum over n of a[n + k] conj(v[n]).

    Args:
        a: Vector of length M.
        v: Vector of length N; integers become floats, unless an integer dtype is preferred.
        mode: As in `convolve`.
        precision: As in `lax.conv_general_dilated`.
        preferred_element_type: dtype to accumulate in, and of the result.

    Raises:
        ShapeError: for anything but vectors that are not empty.
        ParameterError: for another mode.

    >>> import axir.numpy as jnp
    >>> jnp.correlate(jnp.array([1.0, 2.0, 3.0]), jnp.array([1.0, 0.5]))
    Array([2. , 3.5], dtype=float32)
    """
    a, v = _vectors("correlate", a, v, mode, preferred_element_type)
    start, size = _middle(mode, max(a.shape[0], v.shape[0]), min(a.shape[0], v.shape[0]))
    if a.shape < v.shape:
        # The middle of the result of the exchanged vectors, which is the same backwards.
        start = a.shape[0] + v.shape[0] - 1 - start - size
    reversed_v = rev(conj(v), (0,)) if v.dtype.kind == "c" else rev(v, (0,))
    return convolve_range(a, reversed_v, (start,), (size,), precision, preferred_element_type)


def _vectors(name: str, a: ArrayLike, v: ArrayLike, mode: str, preferred: DTypeLike) -> list[Value]:
    check_mode(name, mode)
    keeps_integers = preferred is not None and dtypes.is_integer(
        dtypes.canonicalize_dtype(preferred)
    )
    vectors = (promote_numeric if keeps_integers else promote_inexact)(name, a, v)
    shapes = [getattr(x, "shape", ()) for x in vectors]
    if any(len(shape) != 1 or 0 in shape for shape in shapes):
        raise ConvolutionShapeError(
            f"jnp.{name} takes vectors of at least one element, but got shapes {shapes[0]} and "
            f"{shapes[1]}.",
            "Flatten them with ravel, or use axir.scipy.signal for arrays.",
        )
    return vectors


def check_mode(name: str, mode: str) -> None:
    """Raises `ParameterError` unless a mode is one of `MODES`."""
    if mode not in MODES:
        raise ParameterError(f"{name}: mode {mode!r} is not one of {MODES}.", "Pass one of them.")


def _middle(mode: str, longer: int, shorter: int) -> tuple[int, int]:
    """Returns where the elements that a mode keeps begin in the full result, and their number."""
    if mode == "full":
        return 0, longer + shorter - 1
    if mode == "same":
        return (shorter - 1) // 2, longer
    return shorter - 1, longer - shorter + 1


def convolve_range(
    x: Value,
    y: Value,
    starts: Sequence[int],
    sizes: Sequence[int],
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike = None,
) -> Value:
    """Returns part of the convolution of two arrays of one dtype and number of dimensions.

    Args:
        x, y: Arrays.
        starts: The start of the part in the full result, one number for each dimension.
        sizes: Its shape.
        precision, preferred_element_type: As in `lax.conv_general_dilated`.
    """
    if x.size < y.size:
        x, y = y, x
    axes = tuple(range(x.ndim))
    padding = [
        (window - 1 - start, start + size - extent)
        for window, start, size, extent in zip(y.shape, starts, sizes, x.shape, strict=True)
    ]
    result = conv_general_dilated(
        reshape(x, (1, 1, *x.shape)),
        reshape(rev(y, axes) if axes else y, (1, 1, *y.shape)),
        (1,) * x.ndim,
        padding,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )
    return reshape(result, tuple(sizes))
