"""Elementwise operations of StableHLO as kernel code on scalars or vectors.

Where `arith` leaves the result for integers open (division by zero, shifts by more than the width),
the code follows StableHLO. Elsewhere: functions that legalizations write out before, such as sine
and power of single precision; the kernels (`dialect/builders/kernels`, and the passes that write
them), and loops over arrays that IREE makes itself (`elementwise_loops.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.expressions import exp, select, sqrt
from axir.dialect.builders.scalars import (
    Scalar,
    bitcast,
    boolean,
    broadcast,
    constant,
    convert_float,
    float32,
    integer,
    operation,
    signless,
    truncate,
)
from axir.dialect.core.annotations import Returning
from axir.passes.legalize import doubles
from axir.passes.legalize.copies import uniform_number

Lanes: TypeAlias = Returning[Scalar]  # from the operands' elements to the result's element
Describe: TypeAlias = Callable[[ir.Operation], Lanes]

_NARROW = 16


def lanes_of(made: ir.Operation) -> Lanes | None:
    """Returns a function that computes an elementwise operation lane by lane.

    Args:
        made: An operation of StableHLO.

    Returns:
        A function of scalars or vectors of the operands' element types, with signless integers;
        None if no formula exists for the operation or the type.
    """
    return _FORMULAS[made.name](made) if has_lanes(made) else None


def has_lanes(made: ir.Operation) -> bool:
    """Tells whether `lanes_of` knows an operation."""
    name = made.name
    if name not in _FORMULAS or any(map(hlo.is_complex, (*made.operands, *made.results))):
        return False
    if name in _OF_C_LIBRARY:
        return isinstance(made.results[0].type.element_type, ir.F64Type)
    if name == "stablehlo.compare":
        return not _is_total_order(made)
    if name == "stablehlo.bitcast_convert":
        widths = {x.type.element_type.width for x in (made.operands[0], made.results[0])}
        return len(widths) == 1
    return True


def body_lanes(block: ir.Block) -> Returning[tuple[Scalar, ...]] | None:
    """Returns a function that computes a block of elementwise operations lane by lane.

    Args:
        block: Takes and returns numbers, as scalar tensors.

    Returns:
        A function of the numbers that the block takes; None if an operation is not elementwise.
    """
    *body, end = (made.operation for made in block.operations)
    numbers = {
        made.results[0]: uniform_number(made.results[0]) for made in body if _is_number(made)
    }
    steps = {made.results[0]: lanes_of(made) for made in body if not _is_number(made)}
    known = {*block.arguments, *numbers, *steps}
    if None in (*numbers.values(), *steps.values()):
        return None
    if not all(x in known for made in (*body, end) for x in made.operands):
        return None

    def compute(*given: Scalar) -> tuple[Scalar, ...]:
        found = dict(zip(block.arguments, given, strict=True))
        for value, number in numbers.items():
            if number is not None:
                kind = signless(value.type.element_type)
                found[value] = broadcast(constant(number, kind), given[0].lanes)
        for value, step in steps.items():
            if step is not None:
                found[value] = step(*(found[x] for x in value.owner.operands))
        return tuple(found[x] for x in end.operands)

    return compute


def _is_number(made: ir.Operation) -> bool:
    return bool(made.name == "stablehlo.constant")


def combination(block: ir.Block) -> Lanes | None:
    """Returns a function that computes the body of a reduction or scatter of one array by lanes.

    Args:
        block: Takes two numbers and returns one, as a scalar tensor.

    Returns:
        A function of the two; None if an operation is not elementwise.
    """
    compute = body_lanes(block)
    if compute is None or len(block.arguments) != 2:
        return None
    return lambda x, y: compute(x, y)[0]


# Formulas ---------------------------------------------------------------------------------------


def _is_unsigned(value: ir.Value) -> bool:
    element = value.type.element_type
    return isinstance(element, ir.IntegerType) and (element.is_unsigned or element.width == 1)


def _arith(float_name: str, signed: str, unsigned: str, truth: str) -> Describe:
    """Returns operations of `arith` by the kind of the first operand."""

    def describe(created: ir.Operation) -> Lanes:
        element = created.operands[0].type.element_type
        if isinstance(element, ir.FloatType):
            return _in_single(lambda *xs: operation(float_name, xs))
        if element.width == 1:
            name = truth
        else:
            name = unsigned if element.is_unsigned else signed
        return lambda *xs: operation(name, xs)

    return describe


def _extremum(name: str, truth: str) -> Describe:
    return _arith(f"arith.{name}f", f"arith.{name[:3]}si", f"arith.{name[:3]}ui", truth)


def _in_single(formula: Lanes) -> Lanes:
    """Computes with half precision numbers as IREE does: in single precision, rounding each."""

    def compute(*xs: Scalar) -> Scalar:
        if not xs[0].is_float or xs[0].width > _NARROW:
            return formula(*xs)
        wide = formula(*(convert_float(x, float32()) for x in xs))
        return convert_float(wide, xs[0].element)

    return compute


def _by_operator(formula: Lanes) -> Describe:
    return lambda created: formula


def _math(name: str) -> Describe:
    return lambda created: _in_single(lambda x: operation(f"math.{name}", (x,)))


def _of_doubles(formula: Describe, vectors: Returning[Scalar]) -> Describe:
    """Computes vectors of doubles by a vector formula, and single doubles by the given one.

    IREE calls the C library for each number, which is faster only for single numbers.
    """

    def describe(created: ir.Operation) -> Lanes:
        alone = formula(created)
        if not isinstance(created.operands[0].type.element_type, ir.F64Type):
            return alone
        return lambda x: alone(x) if x.lanes is None else vectors(x)

    return describe


def _divide(created: ir.Operation) -> Lanes:
    if isinstance(created.operands[0].type.element_type, ir.FloatType):
        return _in_single(lambda x, y: x / y)
    return _divide_unsigned if _is_unsigned(created.operands[0]) else _divide_signed


def _divide_unsigned(x: Scalar, y: Scalar) -> Scalar:
    quotient = operation("arith.divui", (x, select(y == 0, 1, y)))
    return select(y == 0, -1, quotient)


def _divide_signed(x: Scalar, y: Scalar) -> Scalar:
    smallest = -(1 << (x.width - 1))
    overflows = (x == smallest) & (y == -1)
    quotient = operation("arith.divsi", (x, select((y == 0) | overflows, 1, y)))
    return select(y == 0, -1, quotient)


def _remainder(created: ir.Operation) -> Lanes:
    if isinstance(created.operands[0].type.element_type, ir.FloatType):
        return _in_single(lambda x, y: operation("arith.remf", (x, y)))
    if _is_unsigned(created.operands[0]):
        return lambda x, y: select(y == 0, x, operation("arith.remui", (x, select(y == 0, 1, y))))

    def signed(x: Scalar, y: Scalar) -> Scalar:
        rest = operation("arith.remsi", (x, select((y == 0) | (y == -1), 1, y)))
        return select(y == 0, x, rest)

    return signed


def _shift(name: str) -> Describe:
    """Shifts by the width or more give zeros, or copies of the sign."""

    def formula(x: Scalar, by: Scalar) -> Scalar:
        fits = operation(
            "arith.cmpi",
            (by, constant(x.width, by.type)),
            by.like(boolean()),
            {"predicate": ir.IntegerAttr.get(integer(64), 6)},  # unsigned: less than
        )
        if name == "shrsi":
            return operation("arith.shrsi", (x, select(fits, by, x.width - 1)))
        return select(fits, operation(f"arith.{name}", (x, select(fits, by, 0))), 0)

    return _by_operator(formula)


_ORDERED = {"EQ": 1, "GT": 2, "GE": 3, "LT": 4, "LE": 5, "NE": 13}
_SIGNED = {"EQ": 0, "NE": 1, "LT": 2, "LE": 3, "GT": 4, "GE": 5}
_UNSIGNED = {"EQ": 0, "NE": 1, "LT": 6, "LE": 7, "GT": 8, "GE": 9}


def _compare(created: ir.Operation) -> Lanes:
    direction = str(created.attributes["comparison_direction"]).split()[-1].rstrip(">")
    if isinstance(created.operands[0].type.element_type, ir.FloatType):
        name, number = "arith.cmpf", _ORDERED[direction]
    else:
        table = _UNSIGNED if _is_unsigned(created.operands[0]) else _SIGNED
        name, number = "arith.cmpi", table[direction]
    predicate = ir.IntegerAttr.get(integer(64), number)

    def compare(x: Scalar, y: Scalar) -> Scalar:
        x, y = _widened(x), _widened(y)
        return operation(name, (x, y), x.like(boolean()), {"predicate": predicate})

    return compare


def _widened(x: Scalar) -> Scalar:
    return convert_float(x, float32()) if x.is_float and x.width <= _NARROW else x


def _is_total_order(created: ir.Operation) -> bool:
    return "TOTALORDER" in str(created.attributes.get("compare_type", ""))


def _sign(created: ir.Operation) -> Lanes:
    if isinstance(created.operands[0].type.element_type, ir.FloatType):

        def of_float(x: Scalar) -> Scalar:
            one = operation("math.copysign", (x.constant(1.0), x))
            return select((x == 0.0) | (x != x), x, one)

        return of_float
    if _is_unsigned(created.operands[0]):
        return lambda x: select(x == 0, x, 1)
    return lambda x: select(x == 0, 0, (x.shift_right_signed(x.width - 1)) | x.constant(1))


def _convert(created: ir.Operation) -> Lanes:
    source = created.operands[0].type.element_type
    target = created.results[0].type.element_type
    if isinstance(source, ir.FloatType) and isinstance(target, ir.FloatType):
        return lambda x: convert_float(x, target)
    if source == target:
        return lambda x: x
    if source.width == 1:
        kind = target if isinstance(target, ir.FloatType) else integer(target.width)
        # A select between two vectors is one instruction, a conversion of a mask three.
        return lambda x: x.choose(constant(1, x.like(kind)), constant(0, x.like(kind)))
    if isinstance(target, ir.FloatType):
        to_float = "arith.uitofp" if _is_unsigned(created.operands[0]) else "arith.sitofp"
        return lambda x: operation(to_float, (x,), x.like(target))
    if target.width == 1:
        return lambda x: x != 0
    kind = integer(target.width)
    if isinstance(source, ir.FloatType):
        name = "arith.fptoui" if _is_unsigned(created.results[0]) else "arith.fptosi"
        return lambda x: operation(name, (x,), x.like(kind))
    if source.width >= target.width:
        return lambda x: truncate(x, target.width)
    name = "arith.extui" if _is_unsigned(created.operands[0]) else "arith.extsi"
    return lambda x: operation(name, (x,), x.like(kind))


def _bitcast(created: ir.Operation) -> Lanes:
    target = created.results[0].type.element_type
    kind = integer(target.width) if isinstance(target, ir.IntegerType) else target
    return lambda x: x if x.element == kind else bitcast(x, x.like(kind))


def _clamp(created: ir.Operation) -> Lanes:
    smaller = _extremum("minimum", "arith.andi")(created)
    larger = _extremum("maximum", "arith.ori")(created)
    return lambda low, x, high: smaller(larger(low, x), high)


def _logistic(x: Scalar) -> Scalar:
    return 1.0 / (exp(-x) + 1.0)


def _is_finite(x: Scalar) -> Scalar:
    return abs(x) < float("inf")


def _count(name: str) -> Describe:
    return lambda created: lambda x: operation(f"math.{name}", (x,))


# Functions of doubles for which IREE calls the C library. Without a C library, a program has them
# written out earlier; functions of narrower numbers are written out in all programs.
_OF_C_LIBRARY: dict[str, Describe] = {
    "chlo.acos": _math("acos"),
    "chlo.asin": _math("asin"),
    "chlo.atan": _math("atan"),
    "chlo.tan": _math("tan"),
    "stablehlo.atan2": _by_operator(doubles.arc_tangent_2_of_c),
    "stablehlo.cosine": _math("cos"),
    "stablehlo.sine": _math("sin"),
    "stablehlo.tan": _math("tan"),
}
_FORMULAS: dict[str, Describe] = _OF_C_LIBRARY | {
    "stablehlo.abs": lambda created: (
        (lambda x: x) if _is_unsigned(created.operands[0]) else (lambda x: abs(x))
    ),
    "stablehlo.add": _arith("arith.addf", "arith.addi", "arith.addi", "arith.ori"),
    "stablehlo.and": _by_operator(lambda x, y: operation("arith.andi", (x, y))),
    "stablehlo.bitcast_convert": _bitcast,
    "stablehlo.ceil": _math("ceil"),
    "stablehlo.clamp": _clamp,
    "stablehlo.compare": _compare,
    "stablehlo.convert": _convert,
    "stablehlo.count_leading_zeros": _count("ctlz"),
    "stablehlo.divide": _divide,
    "stablehlo.exponential": _of_doubles(_math("exp"), doubles.exponential),
    "stablehlo.exponential_minus_one": _math("expm1"),
    "stablehlo.floor": _math("floor"),
    "stablehlo.is_finite": _by_operator(_is_finite),
    "stablehlo.log": _of_doubles(_math("log"), doubles.logarithm),
    "stablehlo.log_plus_one": _math("log1p"),
    "stablehlo.logistic": _of_doubles(_by_operator(_in_single(_logistic)), doubles.logistic),
    "stablehlo.maximum": _extremum("maximum", "arith.ori"),
    "stablehlo.minimum": _extremum("minimum", "arith.andi"),
    "stablehlo.multiply": _arith("arith.mulf", "arith.muli", "arith.muli", "arith.andi"),
    "stablehlo.negate": _by_operator(lambda x: -x),
    "stablehlo.not": _by_operator(lambda x: ~x),
    "stablehlo.or": _by_operator(lambda x, y: operation("arith.ori", (x, y))),
    "stablehlo.popcnt": _count("ctpop"),
    "stablehlo.remainder": _remainder,
    "stablehlo.round_nearest_afz": _math("round"),
    "stablehlo.round_nearest_even": _math("roundeven"),
    "stablehlo.rsqrt": _by_operator(_in_single(lambda x: 1.0 / sqrt(x))),
    "stablehlo.select": _by_operator(select),
    "stablehlo.shift_left": _shift("shli"),
    "stablehlo.shift_right_arithmetic": _shift("shrsi"),
    "stablehlo.shift_right_logical": _shift("shrui"),
    "stablehlo.sign": _sign,
    "stablehlo.sqrt": _math("sqrt"),
    "stablehlo.subtract": _arith("arith.subf", "arith.subi", "arith.subi", "arith.xori"),
    "stablehlo.tanh": _of_doubles(_math("tanh"), doubles.hyperbolic_tangent),
    "stablehlo.xor": _by_operator(lambda x, y: operation("arith.xori", (x, y))),
}
