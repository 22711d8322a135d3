"""`store-narrow-elements`: elements of fewer than eight bits, and floats of eight, as bytes.

Here: the pass, and the formulas of StableHLO between floats of at most eight bits and their codes.
A float of m fraction bits and bias b has the code (exponent + b) 2^m + fraction, and its sign above
that. Codes with an exponent field of 0 count in steps of 2^(1 - b - m). In all formats larger codes
are larger numbers, so that rounding may carry into the exponent. The formats differ in the meaning
of the last codes.
"""

from __future__ import annotations

import functools
from typing import ClassVar, NamedTuple

import ml_dtypes
import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Dtype
from axir.dialect.core.attributes import dense, dense_to_numpy
from axir.dialect.core.types import numpy_dtype
from axir.dialect.program.narrow_elements import bytes_of
from axir.passes.framework.base import Pass
from axir.passes.legalize.rewriting import operations_in_order, replace

_FRACTION_BITS = 23  # of float32
_BIAS = 127


class Format(NamedTuple):
    """How a float dtype uses its codes.

    Attributes:
        bits: Width of a code.
        fraction: Number of fraction bits.
        bias: The number that is added to exponents.
        is_signed: Whether the highest bit is a sign.
        has_negative_zero: Whether zero has a sign, too.
        largest: The code of the largest finite number.
        infinity: The code of infinity, or None.
        nan: The code of nan, or None.
        overflow: The code for numbers that are too large.
        of_nan: The code to which nan is converted.
    """

    bits: int
    fraction: int
    bias: int
    is_signed: bool
    has_negative_zero: bool
    largest: int
    infinity: int | None
    nan: int | None
    overflow: int
    of_nan: int


@functools.cache
def format_of(dtype: Dtype) -> Format:
    """Returns how a float dtype uses its codes.

    >>> format_of(np.dtype("float8_e4m3fn")).largest
    126
    """
    info = ml_dtypes.finfo(dtype)
    is_signed = float(info.min) < 0
    magnitudes = np.arange(2 ** (info.bits - is_signed), dtype=np.uint8)
    with np.errstate(all="ignore"):
        numbers = magnitudes.view(dtype).astype(np.float64)
        signs = np.array([2 ** (info.bits - 1)], np.uint8).view(dtype).astype(np.float64)
        codes = np.array([1e300, np.nan]).astype(dtype).view(np.uint8)
    infinite, undefined = magnitudes[np.isinf(numbers)], magnitudes[np.isnan(numbers)]
    has_sign_as_nan = is_signed and bool(np.isnan(signs[0]))
    nan = 2 ** (info.bits - 1) if has_sign_as_nan else None
    return Format(
        bits=info.bits,
        fraction=info.nmant,
        bias=int(np.ones(1).astype(dtype).view(np.uint8)[0]) >> info.nmant,
        is_signed=is_signed,
        has_negative_zero=is_signed and not has_sign_as_nan,
        largest=int(magnitudes[np.isfinite(numbers)].max()),
        infinity=int(infinite[0]) if infinite.size else None,
        nan=nan if nan is not None else int(undefined[0]) if undefined.size else None,
        overflow=int(codes[0]),
        of_nan=int(codes[1]),
    )


def float_of_code(code: ir.Value, dtype: Dtype) -> ir.Value:
    """Builds float32 numbers from codes, ui8.

    1. Shift the magnitude so that its exponent is at float32's place; add the difference of the
       biases to the exponent.
    2. Where the exponent field is 0, the number is the code times the smallest step.
    3. Replace infinities and nan; add the sign.
    """
    layout = format_of(dtype)
    word = hlo.convert(code, np.int32)
    magnitude = word
    if layout.is_signed:
        magnitude = _and(word, 2 ** (layout.bits - 1) - 1)
    shifted = hlo.shift_left(magnitude, hlo.full_like(word, _FRACTION_BITS - layout.fraction))
    bits = hlo.add(shifted, hlo.full_like(word, (_BIAS - layout.bias) << _FRACTION_BITS))
    shape = hlo.shape_of(code)
    normal = hlo.bitcast_convert(bits, np.float32, shape)
    step = hlo.full_like(normal, 2.0 ** (1 - layout.bias - layout.fraction))
    small = hlo.multiply(hlo.convert(magnitude, np.float32), step)
    if (
        not layout.is_signed
    ):  # only powers of two: code 0 is one, too, below float32's normal numbers
        small = hlo.bitcast_convert(
            hlo.full_like(word, 1 << (_FRACTION_BITS - 1)), np.float32, shape
        )
    is_small = hlo.compare(magnitude, hlo.full_like(word, 2**layout.fraction), "LT")
    number = hlo.select(is_small, small, normal)
    if layout.infinity is not None:
        is_infinite = hlo.compare(magnitude, hlo.full_like(word, layout.infinity), "EQ")
        number = hlo.select(is_infinite, hlo.full_like(number, np.inf), number)
    if layout.is_signed:
        is_negative = hlo.compare(word, magnitude, "NE")
        number = hlo.select(is_negative, hlo.negate(number), number)
    if layout.nan is not None:
        whole = word if layout.nan >= 2 ** (layout.bits - 1) else magnitude
        direction = "EQ" if whole is word else "GE"
        is_nan = hlo.compare(whole, hlo.full_like(word, layout.nan), direction)
        number = hlo.select(is_nan, hlo.full_like(number, np.nan), number)
    return number


def code_of_float(x: ir.Value, dtype: Dtype) -> ir.Value:
    """Builds codes, ui8, from floats: rounded to the nearest, ties to even.

    1. Round away the low bits of float32's code and subtract the difference of the biases; a carry
       goes into the exponent, which is correct.
    2. For numbers below the smallest normal number: divide by the smallest step, and round to an
       integer.
    3. Replace numbers that are too large, and nan; add the sign.
    """
    layout = format_of(dtype)
    x = hlo.convert(x, np.float32)  # doubles are rounded twice, as NumPy does
    shape = hlo.shape_of(x)
    magnitude = hlo.abs(x)
    bits = hlo.bitcast_convert(magnitude, np.int32, shape)
    dropped = _FRACTION_BITS - layout.fraction
    is_odd = _and(hlo.shift_right_logical(bits, hlo.full_like(bits, dropped)), 1)
    if not layout.fraction:  # the last bit kept is the leading bit, which is not part of the code
        is_odd = hlo.full_like(bits, 1)
    half = hlo.add(is_odd, hlo.full_like(bits, 2 ** (dropped - 1) - 1))
    rounded = hlo.shift_right_logical(hlo.add(bits, half), hlo.full_like(bits, dropped))
    normal = hlo.subtract(rounded, hlo.full_like(bits, (_BIAS - layout.bias) << layout.fraction))
    steps = hlo.full_like(x, 2.0 ** min(layout.bias + layout.fraction - 1, _BIAS))
    # Limited, because the conversion of large numbers to integers is undefined.
    small = hlo.minimum(hlo.multiply(magnitude, steps), hlo.full_like(x, 256.0))
    first = hlo.full_like(x, 2.0 ** (1 - layout.bias))
    is_small = hlo.compare(magnitude, first, "LT")
    few = hlo.convert(hlo.round_nearest_even(small), np.int32)
    code = hlo.select(is_small, few, normal)
    is_over = hlo.compare(code, hlo.full_like(code, layout.largest), "GT")
    code = hlo.select(is_over, hlo.full_like(code, layout.overflow), code)
    code = _signed(code, x, layout)
    is_nan = hlo.compare(x, x, "NE")
    undefined = hlo.full_like(code, layout.of_nan)
    if layout.nan is None:  # a zero of the other sign represents nan
        flipped = hlo.full_like(code, layout.of_nan ^ 2 ** (layout.bits - 1))
        undefined = hlo.select(_is_negative(x), flipped, undefined)
    code = hlo.select(is_nan, undefined, code)
    return hlo.convert(code, np.uint8)


def _signed(code: ir.Value, x: ir.Value, layout: Format) -> ir.Value:
    bits = hlo.bitcast_convert(x, np.int32, hlo.shape_of(x))
    zero = hlo.full_like(bits, 0)
    if not layout.is_signed:  # such a format has nan for negative numbers, and for zero
        is_positive = hlo.compare(bits, zero, "GT")
        return hlo.select(is_positive, code, hlo.full_like(code, layout.of_nan))
    is_negative = hlo.compare(bits, zero, "LT")
    if not layout.has_negative_zero:
        is_nonzero = hlo.compare(code, hlo.full_like(code, 0), "NE")
        is_negative = hlo.and_(is_negative, is_nonzero)
    with_sign = hlo.or_(code, hlo.full_like(code, 2 ** (layout.bits - 1)))
    return hlo.select(is_negative, with_sign, code)


def _is_negative(x: ir.Value) -> ir.Value:
    bits = hlo.bitcast_convert(x, np.int32, hlo.shape_of(x))
    return hlo.compare(bits, hlo.full_like(bits, 0), "LT")


def _and(x: ir.Value, mask: int) -> ir.Value:
    return hlo.and_(x, hlo.full_like(x, mask))


_CONVERSIONS = ("stablehlo.convert", "stablehlo.bitcast_convert")
# Gives a value another type until all values have their new types.
_CAST = "builtin.unrealized_conversion_cast"


class StoreNarrowElements(Pass):
    """Keeps float8, float6, float4, int4, int2 and the like in bytes, and converts by formulas.

    The fact: IREE packs elements of fewer than eight bits. For most floats of eight bits it has no
    storage type and no conversion.

    1. Replace conversions from and to such elements by formulas on bytes; an element is in the low
       bits of its byte, with zeros above. The formulas for floats are in `narrow_elements.py`.
    2. Give all values, the types of functions and constants elements of type ui8.

    Precondition: such elements are only moved and converted, which `lower-to-stablehlo` ensures.

    Before::

        %0 = stablehlo.convert %x : (tensor<4xi8>) -> tensor<4xi4>

    After::

        %0 = stablehlo.bitcast_convert %x : (tensor<4xi8>) -> tensor<4xui8>
        %1 = stablehlo.and %0, %fifteen : tensor<4xui8>
    """

    name: ClassVar[str] = "store-narrow-elements"

    def run(self, module: ir.Module) -> None:
        """Rewrites the module."""
        for operation in operations_in_order(module.operation, _CONVERSIONS):
            if _narrow_dtype(operation.operands[0]) or _narrow_dtype(operation.results[0]):
                with ir.InsertionPoint(operation), operation.location:
                    replace(operation, _converted(operation))
        module.operation.walk(_retype, ir.WalkOrder.PRE_ORDER)
        for cast in operations_in_order(module.operation, (_CAST,)):
            replace(cast, cast.operands[0])


def _narrow_dtype(value: ir.Value) -> Dtype | None:
    """Returns the dtype of a tensor's elements if it has few bits."""
    is_narrow = hlo.is_narrow_tensor(value.type)
    return numpy_dtype(value.type.element_type) if is_narrow else None


def _as_bytes(x: ir.Value) -> ir.Value:
    """Returns a value with the type that it will have when all values are stored in bytes."""
    if not hlo.is_narrow_tensor(x.type):
        return x
    result = _stored_type(x.type)
    return ir.Operation.create(_CAST, results=[result], operands=[x]).result


def _converted(operation: ir.Operation) -> ir.Value:
    """Builds a conversion on bytes; the result gets its own type back."""
    operand, result = operation.operands[0], operation.results[0]
    source, target = _narrow_dtype(operand), _narrow_dtype(result)
    found = _as_bytes(operand)
    if operation.name == "stablehlo.bitcast_convert":
        found = hlo.bitcast_convert(found, np.uint8 if target else hlo.element_type_of(result))
    else:
        if source is not None:
            found = (
                float_of_code(found, source) if dtypes.is_float(source) else _number(found, source)
            )
        if target is not None:
            found = (
                code_of_float(found, target) if dtypes.is_float(target) else _code(found, target)
            )
        else:
            found = hlo.convert(found, hlo.element_type_of(result))
    if target is None:
        return found
    return ir.Operation.create(_CAST, results=[result.type], operands=[found]).result


def _number(code: ir.Value, dtype: Dtype) -> ir.Value:
    """Returns the integers of codes."""
    if dtypes.is_unsigned(dtype):
        return code
    sign = hlo.full_like(code, 2 ** (ml_dtypes.iinfo(dtype).bits - 1))
    return hlo.bitcast_convert(hlo.subtract(hlo.xor(code, sign), sign), np.int8)


def _code(x: ir.Value, dtype: Dtype) -> ir.Value:
    """Returns the low bits of integers."""
    low = hlo.bitcast_convert(hlo.convert(x, dtypes.wide(dtype)), np.uint8)
    return hlo.and_(low, hlo.full_like(low, 2 ** ml_dtypes.iinfo(dtype).bits - 1))


def _retype(operation: ir.Operation) -> ir.WalkResult:
    """Gives the values, constants and functions of an operation the types of bytes."""
    for region in operation.regions:
        for block in region.blocks:
            for argument in block.arguments:
                _set_bytes(argument)
    for result in operation.results:
        _set_bytes(result)
    attributes = operation.attributes
    if operation.name == "func.func":
        function_type = attributes["function_type"].value
        attributes["function_type"] = ir.TypeAttr.get(
            ir.FunctionType.get(
                [_stored_type(t) for t in function_type.inputs],
                [_stored_type(t) for t in function_type.results],
            )
        )
    elif operation.name == "stablehlo.constant":
        value = attributes["value"]
        if hlo.is_narrow_tensor(value.type):
            attributes["value"] = dense(bytes_of(dense_to_numpy(value)))
    return ir.WalkResult.ADVANCE


def _set_bytes(value: ir.Value) -> None:
    stored = _stored_type(value.type)
    if stored != value.type:
        value.set_type(stored)


def _stored_type(value_type: ir.Type) -> ir.Type:
    return (
        hlo.tensor_type(value_type.shape, np.uint8)
        if hlo.is_narrow_tensor(value_type)
        else value_type
    )
