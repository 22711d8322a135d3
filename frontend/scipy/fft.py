"""`axir.scipy.fft`: cosine transforms.

Only type 2 and its inverse, as in JAX: `y[k] = 2 sum_j x[j] cos(pi k (2 j + 1) / (2 n))`, computed
by one Fourier transform of length n (J. Makhoul, "A fast cosine transform in one and two
dimensions", 1980).

>>> import axir.numpy as jnp
>>> from axir.scipy.fft import dct
>>> dct(jnp.ones(4))[0]
Array(8., dtype=float32)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Axes, UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import AxirError, ParameterError
from axir.dialect.ops.contraction.fourier_transform import fft
from axir.dialect.ops.elementwise.arithmetic import mul, neg
from axir.dialect.ops.elementwise.conversion import complex_, convert_element_type, imag, real
from axir.dialect.ops.indexing.static_slicing import slice_in_dim
from axir.dialect.ops.shape.broadcasting import expand_dims
from axir.dialect.ops.shape.concatenation import concatenate
from axir.dialect.ops.shape.padding import pad
from axir.dialect.ops.shape.rearranging import moveaxis, reshape, rev
from axir.dialect.program.rules import Value
from axir.numpy._arguments.checks import canonical_axes, canonical_axis, spread
from axir.numpy._arguments.promotion import array_argument, promote_inexact
from axir.numpy._fourier import resized

__all__ = ["dct", "dctn", "idct", "idctn"]


def __dir__() -> list[str]:
    return __all__


class TransformTypeError(AxirError, NotImplementedError):
    """An unsupported type of cosine transform was requested."""


def _check(name: str, type_: int, norm: str | None) -> None:
    if type_ != 2:
        raise TransformTypeError(
            f"{name}: type={type_} is not implemented, only type 2 is.",
            "scipy.fft has the other types, for NumPy arrays.",
        )
    if norm not in (None, "backward", "ortho"):
        raise ParameterError(
            f"{name}: norm={norm!r} is not implemented.", "Choose None, 'backward' or 'ortho'."
        )


def _prepared(name: str, x: ArrayLike) -> Value:
    (x,) = promote_inexact(name, array_argument(name, x))
    is_half = x.dtype in (dtypes.float16, dtypes.bfloat16)
    return convert_element_type(x, dtypes.float32) if is_half else x


def _along(transform: Callable[[Value, bool], Value], x: Value, axis: int, ortho: bool) -> Value:
    """Transforms an axis; complex numbers part by part."""
    last = moveaxis(x, axis, x.ndim - 1)
    if dtypes.is_complex(x.dtype):
        result = complex_(transform(real(last), ortho), transform(imag(last), ortho))
    else:
        result = transform(last, ortho)
    return moveaxis(result, x.ndim - 1, axis)


def _scales(length: int) -> np.ndarray:
    """Returns the factors that make the transform orthogonal."""
    scales = np.full(length, np.sqrt(0.5 / length))
    scales[0] = np.sqrt(0.25 / length)
    return scales


def _times(x: Value, factors: np.ndarray) -> Value:
    """Multiplies the last axis by a table."""
    return mul(x, spread(_constant(factors, x.dtype), x.shape))


def _constant(values: np.ndarray, dtype: np.dtype) -> Value:
    return array_argument("table", values.astype(dtype))


def _forward(x: Value, ortho: bool) -> Value:
    """Elements in even places, then those in odd ones backwards, have a Fourier transform V.

    With the phases w_k = exp(-pi i k / 2n), V_k w_k = (y_k - i y_(n-k)) / 2.
    """
    length, axis = x.shape[-1], x.ndim - 1
    evens = slice_in_dim(x, 0, length, 2, axis)
    odds = rev(slice_in_dim(x, 1, length, 2, axis), (axis,))
    spectrum = fft(concatenate([evens, odds], axis), "RFFT", (length,))
    phases = 2 * np.exp(-0.5j * np.pi * np.arange(length // 2 + 1) / length)
    turned = _times(spectrum, phases)
    rest = slice_in_dim(imag(turned), 1, (length + 1) // 2, 1, axis)
    result = concatenate([real(turned), neg(rev(rest, (axis,)))], axis)
    return _times(result, _scales(length)) if ortho else result


def _backward(y: Value, ortho: bool) -> Value:
    """Takes the same steps backwards."""
    length, axis = y.shape[-1], y.ndim - 1
    if ortho:
        y = _times(y, 1 / _scales(length))
    half = length // 2 + 1
    margin = [(0, 0, 0)] * axis
    others = rev(slice_in_dim(y, length - half + 1, length, 1, axis), (axis,))
    pairs = complex_(slice_in_dim(y, 0, half, 1, axis), neg(pad(others, 0, (*margin, (1, 0, 0)))))
    spectrum = _times(pairs, 0.5 * np.exp(0.5j * np.pi * np.arange(half) / length))
    sequence = fft(spectrum, "IRFFT", (length,))
    middle = (length + 1) // 2
    evens = slice_in_dim(sequence, 0, middle, 1, axis)
    odds = rev(slice_in_dim(sequence, middle, length, 1, axis), (axis,))
    odds = pad(odds, 0, (*margin, (0, middle - odds.shape[-1], 0)))
    both = concatenate([expand_dims(part, (axis + 1,)) for part in (evens, odds)], axis + 1)
    return slice_in_dim(reshape(both, (*y.shape[:-1], 2 * middle)), 0, length, 1, axis)


def _one_axis(
    name: str,
    transform: UserObject,
    x: ArrayLike,
    type_: int,
    n: int | None,
    axis: int,
    norm: str | None,
) -> Value:
    _check(name, type_, norm)
    x = _prepared(name, x)
    axis = canonical_axis(name, axis, x.ndim)
    length = x.shape[axis] if n is None else n
    if length < 1:
        raise ParameterError(
            f"{name}: the length {length} is not positive.", "Transform at least one element."
        )
    return _along(transform, resized(x, axis, length), axis, norm == "ortho")


def _several_axes(
    name: str,
    function: UserObject,
    x: UserObject,
    type_: int,
    s: Sequence[int] | None,
    axes: Axes,
    norm: str | None,
) -> Value:
    _check(name, type_, norm)
    x = _prepared(name, x)
    lengths: tuple[UserObject, ...] | None = None
    if s is not None:
        lengths = tuple(s) if isinstance(s, (tuple, list)) else (s,)
    if axes is None and lengths is not None:
        axes = tuple(range(x.ndim - len(lengths), x.ndim))
    axes = canonical_axes(name, axes, x.ndim)
    lengths = (None,) * len(axes) if lengths is None else lengths
    if len(lengths) != len(axes):
        raise ParameterError(
            f"{name}: s={lengths} and axes={axes} have different lengths.",
            "Give one length for each axis.",
        )
    for axis, length in zip(axes, lengths, strict=True):
        x = function(x, type_, length, axis, norm)
    return x


def dct(
    x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Value:
    """Returns the cosine transform of type 2 along an axis.

    Args:
        x: Array; integers and 16-bit floats become float32.
        type: 2.
        n: Length: the axis is cut off, or zeros are appended.
        axis: The axis.
        norm: None or 'backward' for the formula above, 'ortho' for an orthogonal transform.

    Raises:
        TransformTypeError: for another type.
        ParameterError: for an unknown norm, or no elements.
        AxisError: for an axis out of range.

    >>> import axir.numpy as jnp
    >>> dct(jnp.ones(4), norm="ortho")[0]
    Array(2., dtype=float32)
    """
    return _one_axis("dct", _forward, x, type, n, axis, norm)


def idct(
    x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Value:
    """Returns the inverse of the cosine transform of type 2; takes the arguments of `dct`.

    >>> import axir.numpy as jnp
    >>> idct(jnp.array([8.0, 0.0, 0.0, 0.0]))
    Array([1., 1., 1., 1.], dtype=float32)
    """
    return _one_axis("idct", _backward, x, type, n, axis, norm)


def dctn(
    x: object,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Value:
    """Returns the cosine transform of type 2 along several axes.

    Args:
        x: Array.
        type: 2.
        s: Lengths, one per axis, as `n` of `dct`.
        axes: The axes; by default the last ones, as many as lengths, or all.
        norm: As for `dct`.

    Raises:
        TransformTypeError: for another type.
        ParameterError: for an unknown norm, or lengths that are not as many as axes.
        AxisError: for an axis out of range or named twice.

    >>> import axir.numpy as jnp
    >>> dctn(jnp.ones((2, 2)))[0]
    Array([16.,  0.], dtype=float32)
    """
    return _several_axes("dctn", dct, x, type, s, axes, norm)


def idctn(
    x: object,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Value:
    """Returns the inverse of `dctn`; the arguments are the same.

    >>> import axir.numpy as jnp
    >>> idctn(dctn(jnp.ones((2, 2))))[0]
    Array([1., 1.], dtype=float32)
    """
    return _several_axes("idctn", idct, x, type, s, axes, norm)
