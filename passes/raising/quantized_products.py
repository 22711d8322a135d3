"""Products of quantized arrays: products of their integers, scaled afterwards.

Products of integers are exact. One factor converts them to integers of the result: the product of
both sides' scales, divided by the result's scale. Products of a float array with a quantized one
are computed with floats. Elsewhere: products of integers as such (`byte_products.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from iree.compiler import ir

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Dtype, Extent, HostArray
from axir.dialect.core.array import from_numpy
from axir.dialect.core.quantized_types import Quantization
from axir.dialect.core.symbolic_dims import is_symbolic_dim
from axir.dialect.ops.elementwise.arithmetic import add, mul
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.program.rules import Value
from axir.passes.legalize.attributes import Convolution

from .byte_products import (
    Factors,
    Zeros,
    convolution_of_integers,
    dot_of_integers,
    places_of,
)
from .products import convolved, dot_dimensions, product
from .quantized_operations import (
    QUANTIZED_RULES,
    along,
    computed_in,
    dequantized,
    narrowed,
    quantizations,
    quantized,
    rounded,
)
from .shapes import known
from .table import RaisingContext, raises, result_dtype

_Shape = Sequence[Extent]

# A factor this close to 1 counts as 1, because it is computed from scales that were rounded to
# float32.
_NEARLY_ONE = 2.0**-22


@raises("stablehlo.dot", "stablehlo.dot_general", table=QUANTIZED_RULES)
def _dot(context: RaisingContext, operation: ir.Operation, lhs: Value, rhs: Value) -> Value:
    left, right, wanted = quantizations([*operation.operands, operation.results[0]])
    numbers = dot_dimensions(operation)
    places = places_of(numbers, lhs.ndim, rhs.ndim)
    count = math.prod(lhs.shape[d] for d in numbers["lhs_contracting_dimensions"])
    kind = None if left is None or right is None else _accumulator(left, right, count)
    axes = [side and side.axis for side in (left, right)]
    is_mixed = any(a is not None and p[a] is None for a, p in zip(axes, places, strict=True))
    if left is None or right is None or kind is None or is_mixed:
        floats = _as_floats(operation, lhs, rhs, left, right, wanted)
        made = product(operation, floats[0], floats[1], numbers, _float_result(operation, wanted))
        return made if wanted is None else quantized(made, wanted)
    total = dot_of_integers(
        operation, _factors(lhs, left, kind), _factors(rhs, right, kind), numbers, kind
    )
    sides = [(q, a if a is None else p[a]) for q, a, p in
             zip((left, right), axes, places, strict=True)]  # fmt: skip
    return _scaled(total, sides, wanted, _float_result(operation, wanted))


@raises("stablehlo.convolution", table=QUANTIZED_RULES)
def _convolution(context: RaisingContext, operation: ir.Operation, lhs: Value, rhs: Value) -> Value:
    padding = [tuple(pair) for pair in Convolution.read(operation).padding]
    return _any_convolution(operation, lhs, rhs, padding)


@raises("stablehlo.dynamic_conv", table=QUANTIZED_RULES)
def _dynamic_conv(
    context: RaisingContext, operation: ir.Operation, lhs: Value, rhs: Value, padding: Value
) -> Value:
    pairs = [tuple(pair) for pair in known(context, operation, 2).tolist()]
    return _any_convolution(operation, lhs, rhs, pairs)


def _any_convolution(
    operation: ir.Operation, lhs: Value, rhs: Value, padding: list[tuple[int, ...]]
) -> Value:
    left, right, wanted = quantizations([*list(operation.operands)[:2], operation.results[0]])
    read = Convolution.read(operation)
    count = math.prod(rhs.shape[d] for d in read.rhs[1:])
    kind = None if left is None or right is None else _accumulator(left, right, count)
    is_mixed = left is not None and left.axis is not None
    is_mixed = is_mixed or (right is not None and right.axis not in (None, read.rhs[0]))
    if left is None or right is None or kind is None or is_mixed:
        floats = _as_floats(operation, lhs, rhs, left, right, wanted)
        dtype = _float_result(operation, wanted)
        made = convolved(operation, floats[0], floats[1], read, padding, dtype)
        return made if wanted is None else quantized(made, wanted)
    factors = _factors(lhs, left, kind), _factors(rhs, right, kind)
    total = convolution_of_integers(operation, *factors, read, padding, kind)
    place = None if right.axis is None else read.result[1]
    sides = [(left, None), (right, place)]
    return _scaled(total, sides, wanted, _float_result(operation, wanted))


# Products of floats -------------------------------------------------------------------------------


def _as_floats(
    operation: ir.Operation,
    lhs: Value,
    rhs: Value,
    left: Quantization | None,
    right: Quantization | None,
    wanted: Quantization | None,
) -> list[Value]:
    is_hybrid = left is None or right is None
    kind = None if wanted is not None or not is_hybrid else result_dtype(operation)
    return [
        x if q is None else dequantized(x, q, kind or (q.expressed if is_hybrid else None))
        for x, q in ((lhs, left), (rhs, right))
    ]


def _float_result(operation: ir.Operation, wanted: Quantization | None) -> Dtype:
    """Returns the dtype of the numbers that a product returns."""
    return result_dtype(operation) if wanted is None else computed_in(wanted)


# Products of integers -----------------------------------------------------------------------------


def _accumulator(left: Quantization, right: Quantization, count: Extent) -> Dtype | None:
    """Returns the integer dtype that holds sums of so many products; None if no dtype does."""
    if is_symbolic_dim(count):
        return None
    most = count * left.reach * right.reach
    if most <= np.iinfo(np.int32).max:
        return dtypes.int32
    return dtypes.int64 if most <= np.iinfo(np.int64).max else None


def _factors(x: Value, q: Quantization, kind: Dtype) -> Factors:
    """Returns integers as operands of a product: signed bytes, or the type of the sums."""
    numbers = np.array(q.zero_points)
    zeros = None
    if numbers.any():
        is_one = (numbers == numbers[0]).all()
        values = from_numpy((numbers[0] if is_one else numbers).astype(kind))
        zeros = Zeros(values, None if is_one else q.axis)
    found = Factors(x, zeros)
    is_byte = q.storage.itemsize == 1 and kind == dtypes.int32
    return found.with_signs() if is_byte else found.centred(kind)


def _scaled(
    total: Value,
    sides: Sequence[tuple[Quantization, int | None]],
    wanted: Quantization | None,
    dtype: Dtype,
) -> Value:
    """Returns the numbers that sums of products of integers represent, quantized if wanted.

    Args:
        total: The sums.
        sides: The quantization of each side, and the axis of the sums along which its scales
            change.
        wanted: The quantization of the result; None for floats.
        dtype: The dtype of the numbers.
    """
    shape = total.aval.shape
    factors: dict[int | None, HostArray] = {}
    ratios = [(q, axis, 1) for q, axis in sides]
    if wanted is not None:
        ratios.append((wanted, wanted.axis, -1))
    for q, axis, sign in ratios:
        scales = np.array(q.scales).astype(computed_in(q)).astype(np.float64)
        factors[axis] = factors.get(axis, np.float64(1)) * scales**sign
    if None in factors and len(factors) == 2:
        (axis,) = (axis for axis in factors if axis is not None)
        factors = {axis: factors[axis] * factors[None]}
    is_one = all((np.abs(factor - 1) <= _NEARLY_ONE).all() for factor in factors.values())
    if wanted is not None and is_one:
        if any(wanted.zero_points):
            zeros = np.array(wanted.zero_points)
            total = add(total, along(zeros, wanted.axis, total.dtype, shape))
        return narrowed(total, wanted)
    numbers = convert_element_type(total, computed_in(sides[0][0]))
    for axis, factor in factors.items():
        numbers = mul(numbers, along(np.atleast_1d(factor), axis, numbers.dtype, shape))
    return convert_element_type(numbers, dtype) if wanted is None else rounded(numbers, wanted)
