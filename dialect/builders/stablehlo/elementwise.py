"""Elementwise StableHLO and CHLO operations; operand shapes are equal, nothing broadcasts here."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from iree.compiler import ir

from .core import (
    ElementType,
    as_element_type,
    attribute,
    build,
    element_type_of,
    integer,
    shape_of,
    tensor_type,
)

Unary = Callable[[ir.Value], ir.Value]
Binary = Callable[[ir.Value, ir.Value], ir.Value]


def _real_part(element: ir.Type) -> ir.Type:
    return element.element_type if isinstance(element, ir.ComplexType) else element


def _truth_value(element: ir.Type) -> ir.Type:
    return ir.IntegerType.get_signless(1)


# The element types that MLIR infers. On open shapes its inference would lose the symbolic extents,
# so this table replaces it.
_INFERRED: dict[str, Callable[[ir.Type], ir.Type]] = {
    "abs": _real_part,
    "complex": lambda element: ir.ComplexType.get(element),
    "imag": _real_part,
    "is_finite": _truth_value,
    "is_inf": _truth_value,
    "real": _real_part,
}


def _unary(name: str, dialect: str = "stablehlo", *, is_inferred: bool = False) -> Unary:
    """Returns the builder of an operation of one operand, which has the result's type or infers
    it.
    """
    operation = f"{dialect}.{name}"

    def builder(operand: ir.Value) -> ir.Value:
        kinds = None if is_inferred else (operand.type,)
        if kinds is None and not operand.type.has_static_shape:
            kinds = (tensor_type(shape_of(operand), _INFERRED[name](element_type_of(operand))),)
        return build(name, operation, (operand,), kinds).result

    builder.__name__ = builder.__qualname__ = name
    builder.__doc__ = f"`{operation}`, elementwise."
    return builder


def _binary(name: str, dialect: str = "stablehlo", *, is_inferred: bool = False) -> Binary:
    """Returns the builder of an operation of two operands, which have the result's type or infer
    it.
    """
    operation = f"{dialect}.{name}"

    def builder(lhs: ir.Value, rhs: ir.Value) -> ir.Value:
        kinds = None if is_inferred else (lhs.type,)
        if kinds is None and not lhs.type.has_static_shape:
            kinds = (tensor_type(shape_of(lhs), _INFERRED[name](element_type_of(lhs))),)
        return build(name, operation, (lhs, rhs), kinds).result

    builder.__name__ = builder.__qualname__ = name
    builder.__doc__ = f"`{operation}`, elementwise."
    return builder


abs = _unary("abs", is_inferred=True)  # |complex| is real
negate = _unary("negate")
sign = _unary("sign")
floor = _unary("floor")
ceil = _unary("ceil")
round_nearest_even = _unary("round_nearest_even")
round_nearest_afz = _unary("round_nearest_afz")
exponential = _unary("exponential")
exponential_minus_one = _unary("exponential_minus_one")
log = _unary("log")
log_plus_one = _unary("log_plus_one")
sqrt = _unary("sqrt")
rsqrt = _unary("rsqrt")
cbrt = _unary("cbrt")
sine = _unary("sine")
cosine = _unary("cosine")
tan = _unary("tan")
tanh = _unary("tanh")
logistic = _unary("logistic")
is_finite = _unary("is_finite", is_inferred=True)
not_ = _unary("not")
popcnt = _unary("popcnt")
count_leading_zeros = _unary("count_leading_zeros")
real = _unary("real", is_inferred=True)
imag = _unary("imag", is_inferred=True)

asin = _unary("asin", "chlo")
acos = _unary("acos", "chlo")
atan = _unary("atan", "chlo")
sinh = _unary("sinh", "chlo")
cosh = _unary("cosh", "chlo")
asinh = _unary("asinh", "chlo")
acosh = _unary("acosh", "chlo")
atanh = _unary("atanh", "chlo")
erf = _unary("erf", "chlo")
erfc = _unary("erfc", "chlo")
erf_inv = _unary("erf_inv", "chlo")
lgamma = _unary("lgamma", "chlo")
digamma = _unary("digamma", "chlo")
bessel_i1e = _unary("bessel_i1e", "chlo")
square = _unary("square", "chlo")
conj = _unary("conj", "chlo")
is_inf = _unary("is_inf", "chlo", is_inferred=True)

add = _binary("add")
subtract = _binary("subtract")
multiply = _binary("multiply")
divide = _binary("divide")
remainder = _binary("remainder")
maximum = _binary("maximum")
minimum = _binary("minimum")
power = _binary("power")
atan2 = _binary("atan2")
and_ = _binary("and")
or_ = _binary("or")
xor = _binary("xor")
shift_left = _binary("shift_left")
shift_right_arithmetic = _binary("shift_right_arithmetic")
shift_right_logical = _binary("shift_right_logical")
complex = _binary("complex", is_inferred=True)

next_after = _binary("next_after", "chlo")
zeta = _binary("zeta", "chlo")
polygamma = _binary("polygamma", "chlo")
mulhi = _binary("mulhi", "chlo")


def compare(
    lhs: ir.Value, rhs: ir.Value, direction: str, *, is_total_order: bool = False
) -> ir.Value:
    """`lhs <direction> rhs` as `i1`; `direction` is one of EQ NE GE GT LE LT.

    `is_total_order` compares floating point numbers by IEEE total order: -nan < -inf < … < -0 < 0
    < … < inf < nan.
    """
    element = element_type_of(lhs)
    if isinstance(element, ir.IntegerType):
        is_without_sign = element.is_unsigned or element.width == 1
        kind = "UNSIGNED" if is_without_sign else "SIGNED"
    else:
        kind = "TOTALORDER" if is_total_order else "FLOAT"
    attributes = {
        "comparison_direction": attribute(f"#stablehlo<comparison_direction {direction}>"),
        "compare_type": attribute(f"#stablehlo<comparison_type {kind}>"),
    }
    result_type = tensor_type(shape_of(lhs), ir.IntegerType.get_signless(1))
    return build("compare", "stablehlo.compare", (lhs, rhs), (result_type,), attributes).result


def select(predicate: ir.Value, on_true: ir.Value, on_false: ir.Value) -> ir.Value:
    """`on_true` where `predicate` (same shape, or a scalar) holds, else `on_false`."""
    return build(
        "select", "stablehlo.select", (predicate, on_true, on_false), (on_true.type,)
    ).result


def clamp(minimum: ir.Value, operand: ir.Value, maximum: ir.Value) -> ir.Value:
    """`operand` within [`minimum`, `maximum`], which have the operand's shape or are scalars."""
    return build("clamp", "stablehlo.clamp", (minimum, operand, maximum), (operand.type,)).result


def convert(operand: ir.Value, element: ElementType) -> ir.Value:
    """Values converted to another element type; no operation when the type is the same."""
    target = as_element_type(element)
    if element_type_of(operand) == target:
        return operand
    result_type = tensor_type(shape_of(operand), target)
    return build("convert", "stablehlo.convert", (operand,), (result_type,)).result


def bitcast_convert(
    operand: ir.Value, element: ElementType, shape: Sequence[int] | None = None
) -> ir.Value:
    """Bits seen as another element type.

    If the widths differ, `shape` has or lacks the trailing dimension of parts.
    """
    result_type = tensor_type(shape_of(operand) if shape is None else shape, element)
    if result_type == operand.type:
        return operand
    return build("bitcast_convert", "stablehlo.bitcast_convert", (operand,), (result_type,)).result


def reduce_precision(operand: ir.Value, exponent_bits: int, mantissa_bits: int) -> ir.Value:
    """Values rounded to a float format with given exponent and mantissa bits."""
    attributes = {
        "exponent_bits": integer(exponent_bits, 32),
        "mantissa_bits": integer(mantissa_bits, 32),
    }
    name = "reduce_precision"
    return build(name, "stablehlo.reduce_precision", (operand,), (operand.type,), attributes).result
