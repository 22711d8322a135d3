"""Elementwise operations of StableHLO as code on numbers of a kernel, or on vectors of them.

What does not live here: the kernels (`dialect/builders/kernels.py`, and the passes that write
them), and loops over arrays that IREE makes itself (`elementwise_loops.py`).
"""

from __future__ import annotations

import functools
import re
from typing import TypeAlias

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.expressions import exp, select
from axir.dialect.builders.scalars import (
    Scalar,
    boolean,
    convert_float,
    extend_unsigned,
    float32,
    operation,
    truncate,
)
from axir.dialect.core.annotations import Returning

Lanes: TypeAlias = Returning[Scalar]  # from numbers of the operands to that of the result

_FLOAT = {
    "abs": "math.absf",
    "add": "arith.addf",
    "ceil": "math.ceil",
    "cosine": "math.cos",
    "divide": "arith.divf",
    "exponential": "math.exp",
    "floor": "math.floor",
    "log": "math.log",
    "maximum": "arith.maximumf",
    "minimum": "arith.minimumf",
    "multiply": "arith.mulf",
    "negate": "arith.negf",
    "rsqrt": "math.rsqrt",
    "sine": "math.sin",
    "sqrt": "math.sqrt",
    "subtract": "arith.subf",
    "tanh": "math.tanh",
}
_INTEGER = {
    "add": "arith.addi",
    "and": "arith.andi",
    "maximum": "arith.maxsi",
    "minimum": "arith.minsi",
    "multiply": "arith.muli",
    "or": "arith.ori",
    "subtract": "arith.subi",
    "xor": "arith.xori",
}
_UNSIGNED = {**_INTEGER, "maximum": "arith.maxui", "minimum": "arith.minui"}
_TRUTH = {
    "and": "arith.andi",
    "or": "arith.ori",
    "xor": "arith.xori",
    "add": "arith.xori",
    "maximum": "arith.ori",
    "minimum": "arith.andi",
    "multiply": "arith.andi",
}
_DIRECTION = re.compile(r"comparison_direction (\w+)")
_PREDICATES = {
    "FLOAT": {"EQ": 1, "GT": 2, "GE": 3, "LT": 4, "LE": 5, "NE": 13},
    "SIGNED": {"EQ": 0, "NE": 1, "LT": 2, "LE": 3, "GT": 4, "GE": 5},
    "UNSIGNED": {"EQ": 0, "NE": 1, "LT": 6, "LE": 7, "GT": 8, "GE": 9},
}
_NARROW = 16


def lanes_of(made: ir.Operation) -> Lanes | None:
    """Returns what computes an elementwise operation lane by lane.

    Args:
        made: An operation of StableHLO.

    Returns:
        A function of numbers, or vectors, of the types of the elements of the operands, integers
        without sign; None for an operation, or a type, that has none.
    """
    name = made.name.removeprefix("stablehlo.")
    if name == made.name or not made.operands or any(map(hlo.is_complex, made.operands)):
        return None
    if name == "select":
        return select
    if name == "convert":
        return _conversion(*map(hlo.element_type_of, (made.operands[0], made.results[0])))
    if name == "compare":
        return _comparison(made)
    element = hlo.element_type_of(made.operands[0])
    if name == "logistic" and isinstance(element, ir.FloatType):
        return functools.partial(_in_single, _logistic)
    built = _table(element).get(name)
    if built is not None:
        return functools.partial(_in_single, functools.partial(_built, built))
    if name == "negate":
        return lambda x: 0 - x
    return (lambda x: ~x) if name == "not" else None


def body_lanes(block: ir.Block) -> Returning[tuple[Scalar, ...]] | None:
    """Returns what a block of elementwise operations computes, lane by lane.

    Args:
        block: Takes and returns numbers, as scalar tensors.

    Returns:
        A function of the numbers that the block takes; None if an operation is not elementwise.
    """
    *body, end = (made.operation for made in block.operations)
    steps = [lanes_of(made) for made in body]
    known = {*block.arguments, *(made.results[0] for made in body if len(made.results) == 1)}
    if None in steps or not all(x in known for made in (*body, end) for x in made.operands):
        return None

    def compute(*numbers: Scalar) -> tuple[Scalar, ...]:
        found = dict(zip(block.arguments, numbers, strict=True))
        for made, step in zip(body, steps, strict=True):
            if step is not None:
                found[made.results[0]] = step(*(found[x] for x in made.operands))
        return tuple(found[x] for x in end.operands)

    return compute


def combination(block: ir.Block) -> Lanes | None:
    """Returns what the body of a reduction or a scatter of one array does, lane by lane.

    Args:
        block: Takes two numbers and returns one, as a scalar tensor.

    Returns:
        A function of the two; None if an operation is not elementwise.
    """
    compute = body_lanes(block)
    if compute is None or len(block.arguments) != 2:
        return None
    return lambda x, y: compute(x, y)[0]


def _table(element: ir.Type) -> dict[str, str]:
    if isinstance(element, ir.FloatType):
        return _FLOAT
    if element == boolean():
        return _TRUTH
    return _UNSIGNED if element.is_unsigned else _INTEGER


def _built(name: str, *operands: Scalar) -> Scalar:
    return operation(name, operands)


def _logistic(x: Scalar) -> Scalar:
    return 1 / (1 + exp(-x))


def _in_single(function: Lanes, *operands: Scalar) -> Scalar:
    """Computes with half precision numbers as IREE does: in single precision, rounding each."""
    element = operands[0].element
    if not operands[0].is_float or operands[0].width > _NARROW:
        return function(*operands)
    return convert_float(function(*(convert_float(x, float32()) for x in operands)), element)


def _comparison(made: ir.Operation) -> Lanes | None:
    element = hlo.element_type_of(made.operands[0])
    found = _DIRECTION.search(str(made.attributes["comparison_direction"]))
    is_total = "compare_type" in made.attributes and "TOTAL" in str(made.attributes["compare_type"])
    if found is None or is_total:
        return None
    if isinstance(element, ir.FloatType):
        kind, name = "FLOAT", "arith.cmpf"
    else:
        is_signed = not element.is_unsigned and element.width > 1
        kind, name = ("SIGNED" if is_signed else "UNSIGNED"), "arith.cmpi"
    number = _PREDICATES[kind][found.group(1)]

    def compare(x: Scalar, y: Scalar) -> Scalar:
        predicate = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)
        return operation(name, (x, y), x.like(boolean()), {"predicate": predicate})

    return lambda x, y: compare(*map(_widened, (x, y)))


def _widened(x: Scalar) -> Scalar:
    return convert_float(x, float32()) if x.is_float and x.width <= _NARROW else x


def _conversion(source: ir.Type, target: ir.Type) -> Lanes | None:
    if isinstance(target, ir.FloatType):
        if isinstance(source, ir.FloatType):
            # IREE flushes what is denormal as f16: `keep-denormal-halves` knows better.
            is_exact = not isinstance(target, ir.F16Type)
            return (lambda x: convert_float(x, target)) if is_exact else None
        is_signed = not source.is_unsigned and source.width > 1
        name = "arith.sitofp" if is_signed else "arith.uitofp"
        is_wide = target.width > _NARROW
        return (lambda x: operation(name, (x,), x.like(target))) if is_wide else None
    if isinstance(source, ir.FloatType):
        return None
    if target == boolean():
        return (lambda x: x != 0) if source != boolean() else None
    if source.width > target.width:
        return lambda x: truncate(x, target.width)
    if source.is_unsigned or source == boolean():
        return lambda x: extend_unsigned(x, target.width)
    if source.width == target.width:
        return lambda x: x
    signless = ir.IntegerType.get_signless(target.width)
    return lambda x: operation("arith.extsi", (x,), x.like(signless))
