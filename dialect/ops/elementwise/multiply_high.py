"""`mulhi`: the upper half of the product of two integers."""

from __future__ import annotations

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core import dtypes
from axir.dialect.core.types import numpy_dtype
from axir.dialect.program.rules import Operand, Value

from .family import INTEGER, binary
from .samples import Sampling

_WIDER = {8: 16, 16: 32, 32: 64}


def _evaluate(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    bits = x.dtype.itemsize * 8
    x, y = np.broadcast_arrays(x, y)
    if bits < 64:
        wide = np.dtype(f"{x.dtype.kind}{_WIDER[bits] // 8}")
        return (x.astype(wide) * y.astype(wide) >> np.array(bits, wide)).astype(x.dtype)
    # Python's integers do not lose the upper half.
    products = [a * b >> 64 for a, b in zip(x.ravel().tolist(), y.ravel().tolist(), strict=True)]
    return np.array(products, x.dtype).reshape(x.shape)


def _lower(x: ir.Value, y: ir.Value) -> ir.Value:
    dtype = numpy_dtype(hlo.element_type_of(x))
    bits = dtype.itemsize * 8
    if bits == 64:
        return _lower_64_bits(x, y, dtype)
    wide = np.dtype(f"{dtype.kind}{_WIDER[bits] // 8}")
    product = hlo.multiply(hlo.convert(x, wide), hlo.convert(y, wide))
    return hlo.convert(_shifted(product, bits, wide), dtype)


def _shifted(x: ir.Value, amount: int, dtype: np.dtype) -> ir.Value:
    shift = hlo.shift_right_logical if dtypes.is_unsigned(dtype) else hlo.shift_right_arithmetic
    return shift(x, hlo.full_like(x, amount))


def _lower_64_bits(x: ir.Value, y: ir.Value, dtype: np.dtype) -> ir.Value:
    """Multiplies by halves (Hacker's Delight, section 8-2).

    With x = x1 2^32 + x0 the middle terms are added one after the other, so that none overflows.
    """
    mask = hlo.full_like(x, 0xFFFFFFFF)
    x0, y0 = hlo.and_(x, mask), hlo.and_(y, mask)
    x1, y1 = _shifted(x, 32, dtype), _shifted(y, 32, dtype)
    lowest = hlo.shift_right_logical(hlo.multiply(x0, y0), hlo.full_like(x, 32))
    middle = hlo.add(hlo.multiply(x1, y0), lowest)
    carried = hlo.add(hlo.and_(middle, mask), hlo.multiply(x0, y1))
    upper = hlo.add(hlo.multiply(x1, y1), _shifted(middle, 32, dtype))
    return hlo.add(upper, _shifted(carried, 32, dtype))


_mulhi = binary(
    "mulhi",
    _evaluate,
    _lower,
    INTEGER,
    is_commutative=True,
    samples=Sampling(edges=(0, 1, -1, 2, 100)),
)


def mulhi(x: Operand, y: Operand, /) -> Value:
    """Returns the upper N bits of the 2N-bit products of N-bit integers.

    Args:
        x: Array of integers.
        y: Array of the same dtype; extents of 1 stretch, and so do arrays of rank 0.

    Raises:
        DTypeError: for other dtypes.

    >>> mulhi(np.uint32(0xFFFFFFFF), np.uint32(16))
    Array(15, dtype=uint32)
    """
    return _mulhi(x, y)
