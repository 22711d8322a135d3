"""Arithmetic between quantized numbers and floats, by the formulas of StableHLO's specification.

    dequantize(q) = (q - zero_point) * scale
    quantize(x)   = round_to_even(clamp(low, x / scale + zero_point, high))

The specification computes these in the expressed type. So does axir, except for types of 16 bits,
which have too few digits for a zero point of 8 bits and a fraction: it computes in float32 and
rounds once. Elsewhere: which operations use these (`quantized_operations.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from iree.compiler import ir

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Dtype, Extent, HostArray
from axir.dialect.core.array import from_numpy
from axir.dialect.core.quantized_types import Quantization, quantization
from axir.dialect.ops.elementwise.arithmetic import add, clamp, div, mul, round, sub
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.program.rules import Value

from .shapes import spread

_TO_EVEN = 1
# Integers of up to so many bytes, and their differences, are exact in float32.
_EXACT_BYTES = 2


def quantizations(values: Sequence[ir.Value]) -> list[Quantization | None]:
    """Returns the quantizations of values; None for values of other types."""
    return [quantization(value.type) for value in values]


def computed_in(q: Quantization) -> Dtype:
    """Returns the dtype of floats that quantized numbers are computed in."""
    return dtypes.float64 if q.expressed == dtypes.float64 else dtypes.float32


def dequantized(x: Value, q: Quantization, dtype: Dtype | None = None) -> Value:
    """Returns the numbers that integers represent.

    Args:
        x: The integers.
        q: Their quantization.
        dtype: The dtype of the numbers; by default the one in which they are computed.
    """
    kind = computed_in(q)
    if any(q.zero_points) and q.storage.itemsize > _EXACT_BYTES:
        wide = convert_element_type(x, dtypes.int64)
        zeros = along(np.array(q.zero_points), q.axis, dtypes.int64, x.aval.shape)
        numbers = convert_element_type(sub(wide, zeros), kind)
    else:
        numbers = convert_element_type(x, kind)
        if any(q.zero_points):
            zeros = along(np.array(q.zero_points), q.axis, kind, x.aval.shape)
            numbers = sub(numbers, zeros)
    found = mul(numbers, along(scales_of(q), q.axis, kind, x.aval.shape))
    return convert_element_type(found, kind if dtype is None else dtype)


def quantized(x: Value, q: Quantization) -> Value:
    """Returns the integers that represent numbers."""
    kind = computed_in(q)
    scaled = div(convert_element_type(x, kind), along(scales_of(q), q.axis, kind, x.aval.shape))
    return rounded(scaled, q)


def rounded(scaled: Value, q: Quantization) -> Value:
    """Returns the integers that represent numbers which were divided by the scale."""
    kind, shape = scaled.dtype, scaled.aval.shape
    if any(q.zero_points):
        scaled = add(scaled, along(np.array(q.zero_points), q.axis, kind, shape))
    found = convert_element_type(round(_limited(scaled, q), _TO_EVEN), q.storage)
    # A nan becomes 0, which may be outside of the bounds.
    return found if q.low <= 0 <= q.high else _limited(found, q)


def requantized(x: Value, given: Quantization, wanted: Quantization) -> Value:
    """Returns integers of one quantized type converted to another quantized type."""
    return x if given == wanted else quantized(dequantized(x, given), wanted)


def narrowed(x: Value, q: Quantization) -> Value:
    """Returns integers of a wider dtype as the nearest integers of a quantized type."""
    return convert_element_type(_limited(x, q), q.storage)


def _limited(x: Value, q: Quantization) -> Value:
    if x.dtype == q.storage and q.uses_all_integers:
        return x
    low, high = (np.array(bound).astype(x.dtype) for bound in (q.low, q.high))
    return clamp(from_numpy(low), x, from_numpy(high))


def scales_of(q: Quantization) -> HostArray:
    """Returns the scales, rounded to the dtype that they are expressed in."""
    kind = computed_in(q)
    return np.array(q.scales).astype(kind)


def along(numbers: HostArray, axis: int | None, dtype: Dtype, shape: Sequence[Extent]) -> Value:
    """Returns numbers, one for all elements or one for each place along an axis, as an array."""
    values = numbers.astype(dtype)
    if (values == values.flat[0]).all():
        values, axis = values.reshape(-1)[0], None
    known = from_numpy(np.asarray(values))
    return spread(known, tuple(shape), () if axis is None else (axis,))
