"""Elementwise operations of StableHLO on the numbers of a kernel.

A formula takes and returns `Scalar`s, single ones or vectors. What integers do where `arith` leaves
it open (division by zero, shifts by more than the width) is what StableHLO says. What does not live
here: functions that the legalizations before have written out, such as sine and power, which arrive
as the bodies of loops (`formula_of_loop`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from iree.compiler import ir

from axir.dialect.builders.expressions import exp, select, sqrt
from axir.dialect.builders.scalars import (
    Scalar,
    bitcast,
    boolean,
    broadcast,
    constant,
    convert_float,
    element_of,
    float32,
    integer,
    operation,
    truncate,
)
from axir.dialect.core.annotations import Returning

from .regions import operations_of

Formula: TypeAlias = Returning[Scalar]
Describe: TypeAlias = Callable[[ir.Operation], Formula]

CHEAP = 1
DEAR = 12
_DEAR = frozenset(
    "tanh logistic exponential exponential_minus_one log log_plus_one divide remainder sqrt rsqrt "
    "erf power".split()
)


def cost_of(name: str) -> int:
    """Returns what an element of an operation costs, compared with an addition."""
    return DEAR if name.rpartition(".")[2] in _DEAR or name == "linalg.generic" else CHEAP


def formula_of(created: ir.Operation) -> Formula | None:
    """Returns what an operation does to elements, None if it is not elementwise or unknown."""
    if created.name == "linalg.generic":
        return _formula_of_loop(created)
    describe = _FORMULAS.get(created.name)
    return None if describe is None else describe(created)


def _is_unsigned(value: ir.Value) -> bool:
    element = value.type.element_type
    return isinstance(element, ir.IntegerType) and (element.is_unsigned or element.width == 1)


def _arith(float_name: str, signed: str, unsigned: str, truth: str) -> Describe:
    """Operations of `arith` by the kind of the first operand."""

    def describe(created: ir.Operation) -> Formula:
        element = created.operands[0].type.element_type
        if isinstance(element, ir.FloatType):
            name = float_name
        elif element.width == 1:
            name = truth
        else:
            name = unsigned if element.is_unsigned else signed
        return lambda *xs: operation(name, xs)

    return describe


def _extremum(name: str, truth: str) -> Describe:
    """Returns what gives the larger or smaller of two; halves are compared in single precision.

    (IREE does not compile it for vectors of halves.)
    """
    of_all = _arith(f"arith.{name}f", f"arith.{name[:3]}si", f"arith.{name[:3]}ui", truth)

    def describe(created: ir.Operation) -> Formula:
        formula = of_all(created)
        half = created.operands[0].type.element_type
        if not isinstance(half, ir.F16Type):
            return formula
        return lambda x, y: convert_float(
            formula(convert_float(x, float32()), convert_float(y, float32())), half
        )

    return describe


def _by_operator(formula: Formula) -> Describe:
    return lambda created: formula


def _math(name: str) -> Describe:
    return lambda created: lambda x: operation(f"math.{name}", (x,))


def _divide(created: ir.Operation) -> Formula:
    if isinstance(created.operands[0].type.element_type, ir.FloatType):
        return lambda x, y: x / y
    return _divide_unsigned if _is_unsigned(created.operands[0]) else _divide_signed


def _divide_unsigned(x: Scalar, y: Scalar) -> Scalar:
    quotient = operation("arith.divui", (x, select(y == 0, 1, y)))
    return select(y == 0, -1, quotient)


def _divide_signed(x: Scalar, y: Scalar) -> Scalar:
    smallest = -(1 << (x.width - 1))
    overflows = (x == smallest) & (y == -1)
    quotient = operation("arith.divsi", (x, select((y == 0) | overflows, 1, y)))
    return select(y == 0, -1, quotient)


def _remainder(created: ir.Operation) -> Formula:
    if isinstance(created.operands[0].type.element_type, ir.FloatType):
        return lambda x, y: operation("arith.remf", (x, y))
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


def _compare(created: ir.Operation) -> Formula:
    direction = str(created.attributes["comparison_direction"]).split()[-1].rstrip(">")
    if isinstance(created.operands[0].type.element_type, ir.FloatType):
        name, number = "arith.cmpf", _ORDERED[direction]
    else:
        table = _UNSIGNED if _is_unsigned(created.operands[0]) else _SIGNED
        name, number = "arith.cmpi", table[direction]
    predicate = ir.IntegerAttr.get(integer(64), number)
    return lambda x, y: operation(name, (x, y), x.like(boolean()), {"predicate": predicate})


def _is_total_order(created: ir.Operation) -> bool:
    return "TOTALORDER" in str(created.attributes.get("compare_type", ""))


def _sign(created: ir.Operation) -> Formula:
    if isinstance(created.operands[0].type.element_type, ir.FloatType):

        def of_float(x: Scalar) -> Scalar:
            one = operation("math.copysign", (x.constant(1.0), x))
            return select((x == 0.0) | (x != x), x, one)

        return of_float
    if _is_unsigned(created.operands[0]):
        return lambda x: select(x == 0, x, 1)
    return lambda x: select(x == 0, 0, (x.shift_right_signed(x.width - 1)) | x.constant(1))


def _convert(created: ir.Operation) -> Formula:
    source = created.operands[0].type.element_type
    target = created.results[0].type.element_type
    if isinstance(source, ir.FloatType) and isinstance(target, ir.FloatType):
        return lambda x: convert_float(x, target)
    if source == target:
        return lambda x: x
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


def _bitcast(created: ir.Operation) -> Formula:
    target = created.results[0].type.element_type
    kind = integer(target.width) if isinstance(target, ir.IntegerType) else target
    return lambda x: x if x.element == kind else bitcast(x, x.like(kind))


def _clamp(created: ir.Operation) -> Formula:
    smaller = _extremum("minimum", "arith.andi")(created)
    larger = _extremum("maximum", "arith.ori")(created)
    return lambda low, x, high: smaller(larger(low, x), high)


def _logistic(x: Scalar) -> Scalar:
    return 1.0 / (exp(-x) + 1.0)


def _is_finite(x: Scalar) -> Scalar:
    return abs(x) < float("inf")


def _count(name: str) -> Describe:
    return lambda created: lambda x: operation(f"math.{name}", (x,))


_FORMULAS: dict[str, Describe] = {
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
    "stablehlo.exponential": _math("exp"),
    "stablehlo.exponential_minus_one": _math("expm1"),
    "stablehlo.floor": _math("floor"),
    "stablehlo.is_finite": _by_operator(_is_finite),
    "stablehlo.log": _math("log"),
    "stablehlo.log_plus_one": _math("log1p"),
    "stablehlo.logistic": _by_operator(_logistic),
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
    "stablehlo.rsqrt": _by_operator(lambda x: 1.0 / sqrt(x)),
    "stablehlo.select": _by_operator(select),
    "stablehlo.shift_left": _shift("shli"),
    "stablehlo.shift_right_arithmetic": _shift("shrsi"),
    "stablehlo.shift_right_logical": _shift("shrui"),
    "stablehlo.sign": _sign,
    "stablehlo.sqrt": _math("sqrt"),
    "stablehlo.subtract": _arith("arith.subf", "arith.subi", "arith.subi", "arith.xori"),
    "stablehlo.tanh": _math("tanh"),
    "stablehlo.xor": _by_operator(lambda x, y: operation("arith.xori", (x, y))),
}

ELEMENTWISE = frozenset(_FORMULAS)
"""Names of the operations that have a formula."""


def can_compute(created: ir.Operation) -> bool:
    """Tells whether an elementwise operation has a formula for its types."""
    if created.name == "linalg.generic":
        return _is_elementwise_loop(created)
    if created.name == "stablehlo.compare" and _is_total_order(created):
        return False
    if created.name == "stablehlo.bitcast_convert":
        before, after = (
            x.type.element_type.width for x in (created.operands[0], created.results[0])
        )
        return before == after
    return created.name in _FORMULAS


# Loops over elements ----------------------------------------------------------------------------


def _is_elementwise_loop(loop: ir.Operation) -> bool:
    kinds = str(loop.attributes["iterator_types"])
    maps = loop.attributes["indexing_maps"]
    identity = ir.AffineMapAttr.get(ir.AffineMap.get_identity(loop.results[0].type.rank))
    is_plain = all(x == identity for x in maps)
    plain = all(not len(inner.regions) for inner in operations_of(loop)[0])
    return is_plain and plain and len(loop.results) == 1 and "reduction" not in kinds


def _formula_of_loop(loop: ir.Operation) -> Formula:
    """Returns the body of a loop over all elements, with vectors for its scalars."""
    block = loop.regions[0].blocks[0]
    body = [(inner, inner.name) for inner in operations_of(loop)[0]]

    def formula(*xs: Scalar) -> Scalar:
        values = dict(zip(block.arguments, xs, strict=False))
        like = xs[0].like
        for inner, name in body:
            operands = [values[x] for x in inner.operands]
            if name == "linalg.yield":
                return operands[0]
            attributes = {key: inner.attributes[key] for key in inner.attributes}
            kind = like(inner.results[0].type)
            if name == "arith.constant" and isinstance(kind, ir.VectorType):
                attributes["value"] = ir.DenseElementsAttr.get_splat(kind, attributes["value"])
            values[inner.results[0]] = operation(name, operands, kind, attributes)
        raise AssertionError("a loop without a yield")

    return formula


def reducer_of(parent: ir.Operation) -> str | None:
    """Returns the name of the one operation that a region applies to its two arguments."""
    block = parent.regions[0].blocks[0]
    [operations] = operations_of(parent)
    if len(operations) != 2 or len(block.arguments) != 2:
        return None
    first, last = operations
    is_plain = set(first.operands) == set(block.arguments) and len(first.operands) == 2
    yields = len(last.operands) == 1 and last.operands[0] == first.results[0]
    return first.name if is_plain and yields else None


def combine(parent: ir.Operation, xs: Sequence[Scalar]) -> list[Scalar]:
    """Runs the elementwise operations of a region on tensors of rank 0, on numbers or vectors."""
    [operations] = operations_of(parent)
    lanes = next((x.lanes for x in xs if x.lanes is not None), None)
    arguments = parent.regions[0].blocks[0].arguments
    values: dict[ir.Value, Scalar] = dict(zip(arguments, xs, strict=True))
    for created in operations:
        if created.name == "stablehlo.return":
            return [values[x] for x in created.operands]
        if created.name == "stablehlo.constant":
            values[created.results[0]] = broadcast(splat(created), lanes)
            continue
        formula = formula_of(created)
        assert formula is not None
        values[created.results[0]] = formula(*(values[x] for x in created.operands))
    raise AssertionError("a region without a return")


def is_uniform(x: ir.Value) -> bool:
    """Tells whether a value is a constant of equal elements."""
    if isinstance(x, ir.BlockArgument):
        return False
    owner = x.owner.operation
    if owner.name != "stablehlo.constant":
        return False
    return bool(ir.DenseElementsAttr(owner.attributes["value"]).is_splat)


def splat(created: ir.Operation) -> Scalar:
    """Returns the number of which a constant consists."""
    dense = ir.DenseElementsAttr(created.attributes["value"])
    attribute = dense.get_splat_value()
    element = element_of(created.results[0].type.element_type)
    kind = integer(element.width) if isinstance(element, ir.IntegerType) else element
    if isinstance(kind, ir.FloatType):
        return operation("arith.constant", (), kind, {"value": attribute})
    value = ir.IntegerAttr.get(kind, _signed_value(attribute, kind.width))
    return operation("arith.constant", (), kind, {"value": value})


def _signed_value(attribute: ir.Attribute, width: int) -> int:
    number = int(attribute.value)
    if width == 1:
        return number & 1
    half = 1 << (width - 1)
    return (number + half) % (2 * half) - half
