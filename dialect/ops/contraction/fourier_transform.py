"""Fourier transforms: the op `fft` over the last axes, of complex and of real arrays.

Elsewhere: norms, padding and other axes (`axir.numpy.fft`), and the transforms in compiled programs
(`passes/legalize/fft/expand_fft.py`).
"""

from __future__ import annotations

import enum
import functools
import math
from collections.abc import Sequence
from operator import index

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Params
from axir.dialect.core.errors import DTypeError, ParameterError, ShapeError
from axir.dialect.core.late_modules import scipy_fft
from axir.dialect.core.symbolic_zeros import Zero
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.arithmetic import mul
from axir.dialect.ops.elementwise.conversion import conj, convert_element_type
from axir.dialect.ops.elementwise.family import as_value
from axir.dialect.ops.elementwise.samples import random_values
from axir.dialect.ops.shape.broadcasting import broadcast_in_dim
from axir.dialect.ops.shape.rearranging import moveaxis
from axir.dialect.program.dimensions import Dimensions, by_position
from axir.dialect.program.function_rules import LoweringContext
from axir.dialect.program.op_table import declare
from axir.dialect.program.operation import Sample
from axir.dialect.program.parameters import Ints
from axir.dialect.program.rules import (
    MlirValues,
    Operand,
    Tangent,
    Tangents,
    TransposeOperand,
    Value,
)

__all__ = ["FftType", "fft"]

MOST_AXES = 3
"""StableHLO transforms at most so many axes at once."""

# From this number of elements on, the cores share several transforms.
_PARALLEL_SIZE = 1 << 15


class FftType(enum.IntEnum):
    """The transforms of `fft`.

    | type | operand | result |
    | --- | --- | --- |
    | `FFT`, `IFFT` | complex, n elements | complex, n elements |
    | `RFFT` | real, n elements | complex, the first n // 2 + 1: the others are conjugates |
    | `IRFFT` | complex, n // 2 + 1 elements | real, n elements |
    """

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


_COMPLEX_OPERAND = ("FFT", "IFFT", "IRFFT")


def _halved(length: int) -> int:
    """Returns the number of elements that determine the transform of a number of real numbers."""
    return length // 2 + 1 if length else 0


# Rules -----------------------------------------------------------------------------------------


def _infer(x: ShapedArray, *, fft_type: str, fft_lengths: tuple[int, ...]) -> ShapedArray:
    if fft_type not in FftType.__members__:
        raise ParameterError(f"fft: unknown FFT type {fft_type!r}.", _WAY_OUT_TYPE)
    _check_dtype(fft_type, x.dtype)
    rank = len(fft_lengths)
    if rank > x.ndim:
        raise ParameterError(
            f"fft: an operand of shape {x.shape} has fewer dimensions than fft_lengths "
            f"{fft_lengths}.",
            "Give one length for each of the last axes that are to be transformed.",
        )
    if rank > MOST_AXES:
        raise ParameterError(
            f"fft: fft_lengths {fft_lengths} has {rank} entries; at most {MOST_AXES} axes can be "
            "transformed at once.",
            "Use axir.numpy.fft.fftn, or transform the axes one after the other.",
        )
    if not rank:
        return x
    *outer, last = fft_lengths
    expected = (*outer, _halved(last) if fft_type == "IRFFT" else last)
    if x.shape[x.ndim - rank :] != expected:
        raise LengthsError(fft_type, x, fft_lengths, expected)
    result = (*outer, _halved(last) if fft_type == "RFFT" else last)
    return ShapedArray((*x.shape[: x.ndim - rank], *result), _result_dtype(fft_type, x.dtype))


class LengthsError(ShapeError, ValueError):
    """The operand's last axes do not have the lengths of the transform."""

    def __init__(
        self, fft_type: str, x: ShapedArray, lengths: tuple[int, ...], expected: tuple[int, ...]
    ):
        super().__init__(
            f"fft: {fft_type} of lengths {lengths} takes an operand whose last axes are "
            f"{expected}, but got one of shape {x.shape}.",
            "Pad or slice the operand; the functions of axir.numpy.fft do so for their argument n.",
        )


_WAY_OUT_TYPE = "Choose a member of lax.FftType, or its name: 'fft', 'ifft', 'rfft' or 'irfft'."


def _check_dtype(fft_type: str, dtype: np.dtype) -> None:
    if fft_type in _COMPLEX_OPERAND and not dtypes.is_complex(dtype):
        raise DTypeError(f"fft: {fft_type} takes a complex operand, but got {dtype}.")
    if fft_type == "RFFT" and dtype not in (dtypes.float32, dtypes.float64):
        raise RealOperandError(
            f"fft: only real valued inputs of float32 or float64 are supported for RFFT, but got "
            f"{dtype}.",
            "Cast with astype(float32), or use FFT for complex numbers.",
        )


class RealOperandError(DTypeError, ValueError):
    """The operand of `RFFT` is not an array of real numbers of 32 or 64 bits."""


def _result_dtype(fft_type: str, dtype: np.dtype) -> np.dtype:
    if fft_type == "RFFT":
        return dtypes.complex_dtype(dtype)
    return dtypes.real_dtype(dtype) if fft_type == "IRFFT" else dtype


@functools.cache
def _transforms() -> Params:
    fft = scipy_fft
    return {"FFT": fft.fftn, "IFFT": fft.ifftn, "RFFT": fft.rfftn, "IRFFT": fft.irfftn}


def _evaluate(x: np.ndarray, *, fft_type: str, fft_lengths: tuple[int, ...]) -> np.ndarray:
    if not fft_lengths:
        return x
    if 0 in x.shape or 0 in fft_lengths:
        result = _infer(ShapedArray(x.shape, x.dtype), fft_type=fft_type, fft_lengths=fft_lengths)
        return np.zeros(result.shape, result.dtype)
    axes = tuple(range(x.ndim - len(fft_lengths), x.ndim))
    workers = -1 if x.size >= _PARALLEL_SIZE and x.ndim > 1 else 1
    return _transforms()[fft_type](x, fft_lengths, axes, workers=workers)


def _jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], out: Value, **params: object
) -> Tangents:
    (tangent,) = tangents
    if type(tangent) is Zero:
        return Zero(out.aval.to_tangent_aval())
    return _fft.bind(tangent, **params)


def _transpose(
    ct: Value, x: TransposeOperand, *, fft_type: str, fft_lengths: tuple[int, ...]
) -> list[Value]:
    """Transforms cotangents: complex ones by the same transform, real ones by the other.

    Each element of half a spectrum stands for itself and its conjugate, unless it is its own
    conjugate. The weights count this.
    """
    if fft_type in ("FFT", "IFFT") or not fft_lengths:
        return [_fft.bind(ct, fft_type=fft_type, fft_lengths=fft_lengths)]
    size = math.prod(fft_lengths)
    if fft_type == "RFFT":
        weights = size / _multiplicities(fft_lengths[-1])
        spectrum = conj(mul(ct, _along_last(weights, ct)))
        return [_fft.bind(spectrum, fft_type="IRFFT", fft_lengths=fft_lengths)]
    spectrum = _fft.bind(ct, fft_type="RFFT", fft_lengths=fft_lengths)
    weights = _multiplicities(fft_lengths[-1]) / max(size, 1)
    return [conj(mul(spectrum, _along_last(weights, spectrum)))]


def _multiplicities(length: int) -> np.ndarray:
    """Returns how many elements of a spectrum each element of its half represents."""
    weights = np.full(_halved(length), 2.0)
    weights[:1] = 1
    if length % 2 == 0:
        weights[-1:] = 1
    return weights


def _along_last(weights: np.ndarray, like: Value) -> Value:
    return broadcast_in_dim(weights.astype(like.dtype), like.shape, (like.ndim - 1,))


def _batch(
    operands: Sequence[Value],
    axes: Sequence[int | None],
    *,
    fft_type: str,
    fft_lengths: tuple[int, ...],
) -> tuple[Value, int]:
    (x,), (axis,) = operands, axes
    assert axis is not None
    if axis > x.ndim - 1 - len(fft_lengths):
        x, axis = moveaxis(x, axis, 0), 0
    return _fft.bind(x, fft_type=fft_type, fft_lengths=fft_lengths), axis


def _lower(
    context: LoweringContext, x: ir.Value, *, fft_type: str, fft_lengths: tuple[int, ...]
) -> MlirValues:
    (result,) = context.types_out
    if not result.size:
        return hlo.full(0, result.shape, result.dtype)
    if not fft_lengths:
        return x
    return hlo.fft(x, fft_type, fft_lengths)


def _samples() -> list[Sample]:
    variants: list[tuple[str, tuple[int, ...], tuple[int, ...]]] = [
        ("FFT", (2, 3), (5,)),
        ("FFT", (), (1,)),
        ("FFT", (2,), (4, 3)),
        ("FFT", (), (2, 3, 4)),
        ("FFT", (2,), ()),
        ("FFT", (0,), (4,)),
        ("FFT", (2,), (0,)),
        ("FFT", (2,), (60,)),
        ("IFFT", (3,), (16,)),
        ("IFFT", (), (3, 2)),
        ("IFFT", (2,), (67,)),
        ("RFFT", (2,), (5,)),
        ("RFFT", (), (8,)),
        ("RFFT", (2,), (1,)),
        ("RFFT", (), (3, 6)),
        ("RFFT", (2,), (2, 3, 5)),
        ("RFFT", (2,), (0,)),
        ("RFFT", (), (66,)),
        ("IRFFT", (2,), (5,)),
        ("IRFFT", (), (6,)),
        ("IRFFT", (3,), (1,)),
        ("IRFFT", (2,), (3, 4)),
        ("IRFFT", (), (2, 3, 3)),
        ("IRFFT", (), (70,)),
    ]
    generator = np.random.default_rng(0)
    samples = []
    for number, (fft_type, batch, lengths) in enumerate(variants):
        dtype = dtypes.complex128 if number % 3 == 1 else dtypes.complex64
        dtype = dtypes.real_dtype(dtype) if fft_type == "RFFT" else dtype
        last = (_halved(n) if fft_type == "IRFFT" else n for n in lengths[-1:])
        x = random_values(generator, (*batch, *lengths[:-1], *last), dtype, -2, 2)
        samples.append(Sample((x,), {"fft_type": fft_type, "fft_lengths": lengths}))
    x = random_values(generator, (1, 2, 1, 1, 2, 5), dtypes.complex64, -2, 2)
    x[:, 1] = complex(np.nan, np.nan)
    params = {"fft_type": "FFT", "fft_lengths": (5,)}
    return [*samples, Sample((x,), params, is_smooth=False)]


def _dimensions(
    operands: Sequence[ShapedArray],
    results: Sequence[ShapedArray],
    *,
    fft_type: str,
    fft_lengths: tuple[int, ...],
) -> Dimensions:
    rank = operands[0].ndim
    return by_position(operands, results, range(rank - len(fft_lengths), rank))


_fft = declare(
    "fft",
    parameters={"fft_type": str, "fft_lengths": Ints},
    infer=_infer,
    evaluate=_evaluate,
    jvp=_jvp,
    transpose=_transpose,
    dimensions=_dimensions,
    batch=_batch,
    lower=_lower,
    samples=_samples,
)


# The function ----------------------------------------------------------------------------------


def fft(x: Operand, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Value:
    """Returns the discrete Fourier transform over the last axes.

    `FFT` is `X[k] = sum_j x[j] exp(-2 pi i j k / n)` along each axis; `IFFT` and `IRFFT` are the
    inverses, divided by the number of elements.

    Args:
        x: Array. It becomes complex for a transform of complex numbers, and for `RFFT` integers
            become floats.
        fft_type: A member of `FftType`, or its name.
        fft_lengths: The lengths of the last axes, at most three. In `IRFFT` these are the result's
            lengths, because n // 2 + 1 elements do not determine them.

    Returns:
        The transform, in the precision of `x`.

    Raises:
        ParameterError: for an unknown type or too many lengths.
        ShapeError: if the operand does not have these lengths.
        DTypeError: if `x` has a dtype without this transform: complex numbers in `RFFT`.

    >>> fft(np.array([1.0, 0.0, 0.0, 0.0], np.float32), "rfft", (4,))
    Array([1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)
    """
    name = _type_name(fft_type)
    x = as_value(x)
    if name == "RFFT" and dtypes.kind(x.dtype) in "biu":
        x = convert_element_type(x, _float_of(x.dtype))
    elif name in _COMPLEX_OPERAND and not dtypes.is_complex(x.dtype):
        x = convert_element_type(x, dtypes.complex_dtype(_float_of(x.dtype)))
    try:
        lengths = tuple([index(length) for length in fft_lengths])
    except TypeError:
        raise ParameterError(
            f"fft: fft_lengths must be a sequence of integers, but it is {fft_lengths!r}."
        ) from None
    return _fft.bind(x, fft_type=name, fft_lengths=lengths)


def _type_name(fft_type: object) -> str:
    """Returns the name of a type from a member of an enumeration or a string."""
    name = fft_type.name if isinstance(fft_type, enum.Enum) else fft_type
    if not isinstance(name, str) or name.upper() not in FftType.__members__:
        raise ParameterError(f"fft: unknown FFT type {fft_type!r}.", _WAY_OUT_TYPE)
    return name.upper()


def _float_of(dtype: np.dtype) -> np.dtype:
    is_wide = dtype.itemsize == 8 and dtype != dtypes.complex64
    return dtypes.canonicalize_dtype(dtypes.float64) if is_wide else dtypes.float32
