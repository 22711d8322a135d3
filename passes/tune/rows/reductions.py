"""Reductions along rows, and across them: their operands, combiners and initial values.

Elsewhere: which reductions are one kernel (`programs.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.scalars import Scalar, constant, convert_float, float32, signless
from axir.dialect.core.annotations import Returning
from axir.dialect.core.types import numpy_dtype
from axir.passes.legalize.copies import uniform_number
from axir.passes.legalize.lanes import body_lanes, combination

from .spaces import Space
from .vectors import LANES, Numbers

REDUCE = "stablehlo.reduce"
_COMBINES = frozenset(f"stablehlo.{name}" for name in "add multiply maximum minimum".split())
_OF_TRUTHS = {"stablehlo.or": 0, "stablehlo.and": 1}
_HALF = 16


def space_of(made: ir.Operation) -> Space | None:
    """Returns the space of a reduction along rows or across them; None for other reductions."""
    if made.name != REDUCE or starts_of(made) is None:
        return None
    shape = hlo.shape_of(made.operands[0])
    axes, rank = sorted(made.attributes["dimensions"]), len(shape)
    if not axes or (rank < 2 and len(made.results) == 1):
        return None
    if axes == list(range(rank)) and rank > 1 and len(made.results) == 1:
        return Space(shape, rank - 1)
    if axes == list(range(axes[0], rank)):
        return Space(shape, axes[0])
    is_contiguous = axes == list(range(axes[0], axes[-1] + 1))
    return Space(shape, axes[-1] + 1, axes[0]) if is_contiguous else None


def body_of(reduce: ir.Operation) -> str:
    """Returns the name of the operation that a reduction consists of."""
    return reduce.regions[0].blocks[0].operations[0].operation.name


def combining_arrays(reduce: ir.Operation) -> Returning[ir.Value]:
    """Returns a function that builds a reduction's single operation on other arrays."""
    name = body_of(reduce).removeprefix("stablehlo.")
    found: Returning[ir.Value] = getattr(hlo, f"{name}_" if name in ("and", "or") else name)
    return found


def identity_of(reduce: ir.Operation) -> float | None:
    """Returns the neutral element of a reduction.

    Returns None for reductions of several arrays or of complex numbers, and for other operations
    than add, multiply, maximum and minimum, or `or` and `and` for booleans.
    """
    if len(reduce.operands) != 2 or combination(reduce.regions[0].blocks[0]) is None:
        return None
    name = body_of(reduce)
    dtype = numpy_dtype(hlo.element_type_of(reduce.operands[0]))
    if dtype.kind == "b":
        return _OF_TRUTHS.get(name)
    if name not in _COMBINES or dtype.kind == "c":
        return None
    if name in ("stablehlo.add", "stablehlo.multiply"):
        return 0 if name == "stablehlo.add" else 1
    is_maximum = name == "stablehlo.maximum"
    if dtype.kind in "iu":
        return int(np.iinfo(dtype).min if is_maximum else np.iinfo(dtype).max)
    return -math.inf if is_maximum else math.inf


def starts_of(reduce: ir.Operation) -> list[float] | None:
    """Returns the initial values for the reductions of parts of arrays.

    The reduction of one array begins with its neutral element. A reduction of several arrays, which
    may be of any kind, begins with its own initial values: StableHLO allows combining these any
    number of times.
    """
    if len(reduce.operands) == 2:
        number = identity_of(reduce)
        return None if number is None else [number]
    if body_lanes(reduce.regions[0].blocks[0]) is None:
        return None
    if any(hlo.is_complex(x) or is_truth(x) for x in reduce.operands):
        return None
    found = [uniform_number(x) for x in inits_of(reduce)]
    return None if None in found else [x for x in found if x is not None]


def is_truth(value: ir.Value) -> bool:
    """Tells whether an array holds booleans."""
    element = hlo.element_type_of(value)
    return isinstance(element, ir.IntegerType) and element.width == 1


def terms_of(reduce: ir.Operation) -> list[ir.Value]:
    """Returns the arrays that are reduced."""
    return list(reduce.operands)[: len(reduce.results)]


def terms_of_all(level: Sequence[ir.Operation]) -> list[ir.Value]:
    """Returns the arrays that reductions reduce."""
    return [x for made in level for x in terms_of(made)]


def inits_of(reduce: ir.Operation) -> list[ir.Value]:
    """Returns the initial values of a reduction."""
    return list(reduce.operands)[len(reduce.results) :]


def is_down(made: ir.Operation) -> bool:
    """Tells whether a reduction goes across rows, down the columns."""
    axes, rank = list(made.attributes["dimensions"]), len(hlo.shape_of(made.operands[0]))
    is_whole = len(axes) == rank and rank > 1 and len(made.results) == 1
    return is_whole or rank - 1 not in axes


def is_end(made: ir.Operation) -> bool:
    """Tells whether a result is known only after all rows: a reduction down the columns."""
    return made.name == REDUCE and is_down(made)


def combining(made: ir.Operation) -> Callable[[Numbers, Numbers], Numbers]:
    """Returns a function that combines two tuples of numbers as the reduction does."""
    found = body_lanes(made.regions[0].blocks[0])
    assert found is not None
    return lambda x, y: found(*x, *y)


def accumulated(element: ir.Type) -> ir.Type:
    """Returns the type in which numbers are accumulated: half precision is too narrow."""
    is_half = isinstance(element, ir.FloatType) and element.width <= _HALF
    return float32() if is_half else element


def widened(x: Scalar) -> Scalar:
    """Returns a number in the type in which it is accumulated."""
    return convert_float(x, accumulated(x.element)) if x.is_float else x


def start_vectors(made: ir.Operation) -> list[Scalar]:
    """Returns the initial vectors of a reduction."""
    found = []
    for value, number in zip(terms_of(made), starts_of(made) or (), strict=True):
        element = hlo.element_type_of(value)
        kept = accumulated(element) if len(made.results) == 1 else element
        found.append(constant(number, ir.VectorType.get([LANES], signless(kept))))
    return found
