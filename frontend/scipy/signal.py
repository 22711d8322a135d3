"""`axir.scipy.signal`: convolutions and correlations of arrays; spectra (`_spectra.py`).

Elsewhere: convolutions of vectors (`axir.numpy.convolve`) and of neural networks, with batches,
features and strides (`axir.lax.conv_general_dilated`).
"""

from __future__ import annotations

from collections.abc import Sequence

from axir.dialect.core.annotations import PrecisionLike
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import ParameterError
from axir.dialect.ops.contraction.fourier_transform import fft
from axir.dialect.ops.convolution.types import ConvolutionShapeError
from axir.dialect.ops.elementwise.arithmetic import mul
from axir.dialect.ops.elementwise.conversion import conj
from axir.dialect.ops.indexing.static_slicing import slice as slice_array
from axir.dialect.ops.shape.rearranging import moveaxis, rev
from axir.dialect.program.rules import Value
from axir.numpy._arguments.checks import canonical_axes
from axir.numpy._arguments.promotion import broadcast_arguments, promote_inexact
from axir.numpy._products.convolutions import check_mode, convolve_range
from axir.numpy._shape.padding import pad

from ._spectra import csd, detrend, istft, stft, welch

__all__ = [
    "convolve", "convolve2d", "correlate", "correlate2d", "csd", "detrend", "fftconvolve", "istft",
    "stft", "welch",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


# Factors of powers of two for lengths of transforms: these are at most a tenth too long.
_ODD_FACTORS = (1, 3, 5, 7, 9, 15, 21, 25, 27, 35, 45, 63, 75, 81, 105, 125)
_METHODS = ("auto", "direct", "fft")
_BOUNDARIES = {"fill": "constant", "wrap": "wrap", "symm": "symmetric"}


def convolve(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    method: str = "auto",
    precision: PrecisionLike = None,
) -> Value:
    """Returns the convolution of two arrays.

    Args:
        in1: Array.
        in2: Array with as many dimensions; integers become floats.
        mode: 'full' for all elements with at least one term; 'same' for the middle, in the shape of
            `in1`; 'valid' for the elements with all terms. For 'valid' one array must be at least
            as large as the other in every dimension.
        method: 'direct' for sums of products; 'fft' for products of Fourier transforms, which are
            faster for large arrays and less precise; 'auto' for the direct one.
        precision: As in `lax.conv_general_dilated`; of the direct method.

    Raises:
        ShapeError: for arrays of different numbers of dimensions, empty ones, and for 'valid'
            such that neither fits into the other.
        ParameterError: for another mode or method.

    >>> import axir.numpy as jnp
    >>> convolve(jnp.ones((2, 2)), jnp.ones((2, 2)), mode="same")
    Array([[1., 2.],
           [2., 4.]], dtype=float32)
    """
    _check_method("convolve", method)
    in1, in2 = _operands("convolve", in1, in2, mode)
    if method == "fft":
        return fftconvolve(in1, in2, mode)
    starts, sizes = _region(mode, in1.shape, in2.shape)
    return convolve_range(in1, in2, starts, sizes, precision)


def correlate(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    method: str = "auto",
    precision: PrecisionLike = None,
) -> Value:
    """Returns the cross-correlation of two arrays: of the conjugate of `in2` with `in1`.

    Args:
        in1: Array.
        in2: Array with as many dimensions; integers become floats.
        mode, method, precision: As in `convolve`.

    Raises:
        ShapeError, ParameterError: as `convolve` does.

    >>> import axir.numpy as jnp
    >>> correlate(jnp.array([1.0, 2.0, 3.0]), jnp.array([0.0, 1.0]), mode="valid")
    Array([2., 3.], dtype=float32)
    """
    _check_method("correlate", method)
    in1, in2 = _operands("correlate", in1, in2, mode)
    return convolve(in1, _reflected(in2), mode, method, precision)


def convolve2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: object = 0,
    precision: PrecisionLike = None,
) -> Value:
    """Returns the convolution of two matrices.

    Args:
        in1: Matrix.
        in2: Matrix; integers become floats.
        mode: As in `convolve`.
        boundary: What `in1` is taken to be outside: 'fill' a value, 'wrap' repeated, 'symm'
            mirrored.
        fillvalue: That value.
        precision: As in `lax.conv_general_dilated`.

    Raises:
        ShapeError: for anything but matrices, and as `convolve` does.
        ParameterError: for another mode or boundary.

    >>> import axir.numpy as jnp
    >>> convolve2d(jnp.ones((2, 2)), jnp.ones((1, 2)), mode="same", boundary="wrap")
    Array([[2., 2.],
           [2., 2.]], dtype=float32)
    """
    in1, in2 = _matrices("convolve2d", in1, in2, mode, boundary)
    starts, sizes = _region(mode, in1.shape, in2.shape)
    return _with_boundary(in1, in2, starts, sizes, mode, boundary, fillvalue, precision)


def correlate2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: object = 0,
    precision: PrecisionLike = None,
) -> Value:
    """Returns the cross-correlation of two matrices.

    Args:
        in1: Matrix.
        in2: Matrix; integers become floats.
        mode: As in `convolve`; for 'same' and an even extent of `in2` the middle is one further
            than in `correlate`, and for 'valid' the larger matrix is the conjugated one, as in
            SciPy.
        boundary, fillvalue: As in `convolve2d`.
        precision: As in `lax.conv_general_dilated`.

    Raises:
        ShapeError, ParameterError: as `convolve2d` does.

    >>> import axir.numpy as jnp
    >>> correlate2d(jnp.array([[1.0, 2.0, 3.0]]), jnp.array([[0.0, 1.0]]), mode="valid")
    Array([[2., 3.]], dtype=float32)
    """
    in1, in2 = _matrices("correlate2d", in1, in2, mode, boundary)
    starts, sizes = _region(mode, in1.shape, in2.shape)
    if mode == "same":
        starts = tuple(extent // 2 for extent in in2.shape)
    result = _with_boundary(
        in1, _reflected(in2), starts, sizes, mode, boundary, fillvalue, precision
    )
    is_exchanged = mode == "valid" and any(map(int.__lt__, in1.shape, in2.shape))
    return conj(result) if is_exchanged and result.dtype.kind == "c" else result


def fftconvolve(
    in1: ArrayLike, in2: ArrayLike, mode: str = "full", axes: int | Sequence[int] | None = None
) -> Value:
    """Returns the convolution of two arrays along some axes, by Fourier transforms.

    Args:
        in1: Array.
        in2: Array with as many dimensions; integers become floats. The other axes broadcast.
        mode: As in `convolve`.
        axes: The axes; by default all.

    Raises:
        ShapeError, ParameterError: as `convolve` does; AxisError for axes out of range.

    >>> import axir.numpy as jnp
    >>> fftconvolve(jnp.array([1.0, 2.0]), jnp.array([1.0, 1.0])).round(3)
    Array([1., 3., 2.], dtype=float32)
    """
    in1, in2 = _operands("fftconvolve", in1, in2, mode)
    chosen = range(in1.ndim) if axes is None else canonical_axes("fftconvolve", axes, in1.ndim)
    others = [axis for axis in range(in1.ndim) if axis not in chosen]
    for axis in others:
        if in1.shape[axis] != in2.shape[axis] and 1 not in (in1.shape[axis], in2.shape[axis]):
            raise ConvolutionShapeError(
                f"fftconvolve: the shapes {in1.shape} and {in2.shape} do not broadcast along axis "
                f"{axis}, which is not among axes={axes}.",
                "Make the extents there equal, or one of them 1.",
            )
    starts, sizes = _region(mode, in1.shape, in2.shape, tuple(chosen))
    lengths = {
        axis: _fast_length(in1.shape[axis] + in2.shape[axis] - 1) for axis in reversed(chosen)
    }
    is_real = in1.dtype.kind != "c"
    spectra = [_spectrum(x, lengths, is_real) for x in (in1, in2)]
    product = mul(*broadcast_arguments("fftconvolve", *spectra))
    result = _from_spectrum(product, lengths, is_real)
    result = slice_array(
        result,
        starts,
        tuple(
            start + (size if axis in lengths else result.shape[axis])
            for axis, (start, size) in enumerate(zip(starts, sizes, strict=True))
        ),
    )
    return result.astype(in1.dtype)


# Arguments -------------------------------------------------------------------------------------


def _operands(name: str, in1: ArrayLike, in2: ArrayLike, mode: str) -> list[Value]:
    check_mode(name, mode)
    in1, in2 = promote_inexact(name, in1, in2)
    if in1.ndim != in2.ndim or 0 in (in1.size, in2.size):
        raise ConvolutionShapeError(
            f"{name} takes arrays of one number of dimensions which are not empty, but got shapes "
            f"{in1.shape} and {in2.shape}.",
            "Add dimensions of size 1 with jnp.expand_dims.",
        )
    return [in1, in2]


def _matrices(name: str, in1: ArrayLike, in2: ArrayLike, mode: str, boundary: str) -> list[Value]:
    if boundary not in _BOUNDARIES:
        raise ParameterError(
            f"{name}: boundary {boundary!r} is not one of {tuple(_BOUNDARIES)}.",
            "Pass one of them.",
        )
    in1, in2 = _operands(name, in1, in2, mode)
    if in1.ndim != 2:
        raise ConvolutionShapeError(
            f"{name} takes matrices, but got shapes {in1.shape} and {in2.shape}.",
            "convolve and correlate take arrays of any number of dimensions.",
        )
    return [in1, in2]


def _check_method(name: str, method: str) -> None:
    if method not in _METHODS:
        raise ParameterError(
            f"{name}: method {method!r} is not one of {_METHODS}.", "Pass one of them."
        )


def _region(
    mode: str,
    first: tuple[int, ...],
    second: tuple[int, ...],
    axes: Sequence[int] | None = None,
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Returns where the elements that a mode keeps begin in the full result, and their shape."""
    chosen = range(len(first)) if axes is None else axes
    regions = []
    is_first_larger = [first[axis] >= second[axis] for axis in chosen]
    is_second_larger = [first[axis] <= second[axis] for axis in chosen]
    if mode == "valid" and not (all(is_first_larger) or all(is_second_larger)):
        raise ConvolutionShapeError(
            f"mode 'valid' needs one array at least as large as the other in every dimension, but "
            f"the shapes are {first} and {second}.",
            "Use the mode 'full' or 'same'.",
        )
    for axis, (size, other) in enumerate(zip(first, second, strict=True)):
        if axis not in chosen:
            regions.append((0, max(size, other)))
        elif mode == "full":
            regions.append((0, size + other - 1))
        elif mode == "same":
            regions.append(((other - 1) // 2, size))
        else:
            regions.append((min(size, other) - 1, abs(size - other) + 1))
    starts, sizes = zip(*regions, strict=True) if regions else ((), ())
    return starts, sizes


# Parts -----------------------------------------------------------------------------------------


def _reflected(x: Value) -> Value:
    """Returns an array conjugated and in reverse order along all axes."""
    x = conj(x) if x.dtype.kind == "c" else x
    return rev(x, tuple(range(x.ndim))) if x.ndim else x


def _with_boundary(
    in1: Value, in2: Value, starts: tuple[int, ...], sizes: tuple[int, ...], mode: str,
    boundary: str, fillvalue: object, precision: PrecisionLike,
) -> Value:  # fmt: skip
    """Returns part of the convolution with a matrix that does not end at its edges.

    It is written out as far as the other matrix reaches; 'valid' elements do not look there.
    """
    is_zero = boundary == "fill" and isinstance(fillvalue, (int, float)) and fillvalue == 0
    if not is_zero and mode != "valid":
        widths = [(extent - 1, extent - 1) for extent in in2.shape]
        options = {"constant_values": fillvalue} if boundary == "fill" else {}
        in1 = pad(in1, widths, _BOUNDARIES[boundary], **options)
        starts = tuple(start + low for start, (low, _) in zip(starts, widths, strict=True))
    return convolve_range(in1, in2, starts, sizes, precision)


def _fast_length(least: int) -> int:
    """Returns a length of at least `least` with fast Fourier transforms."""
    return min(q << (-(-least // q) - 1).bit_length() for q in _ODD_FACTORS)


def _spectrum(x: Value, lengths: dict[int, int], is_real: bool) -> Value:
    """Transforms axes, filled up with zeros; of real numbers, half of the first."""
    widths = [(0, lengths.get(axis, size) - size) for axis, size in enumerate(x.shape)]
    x = pad(x, widths) if any(high for _, high in widths) else x
    for number, (axis, length) in enumerate(lengths.items()):
        x = _along(x, axis, "RFFT" if is_real and not number else "FFT", length)
    return x


def _from_spectrum(x: Value, lengths: dict[int, int], is_real: bool) -> Value:
    """Returns the inverse of `_spectrum`."""
    for number, (axis, length) in reversed(list(enumerate(lengths.items()))):
        x = _along(x, axis, "IRFFT" if is_real and not number else "IFFT", length)
    return x


def _along(x: Value, axis: int, kind: str, length: int) -> Value:
    return moveaxis(fft(moveaxis(x, axis, x.ndim - 1), kind, (length,)), x.ndim - 1, axis)
