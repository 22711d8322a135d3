"""`stablehlo.sort`: comparators as keys, which the op `sort` takes.

`axir.passes.legalize.sorting.sort_order` reads comparators that order by keys. Keys in another
order than the op's (descending, or floats by their bits) become integers in the op's order.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from iree.compiler import ir

from axir.dialect.core import dtypes
from axir.dialect.core.attributes import dense_to_numpy
from axir.dialect.ops.elementwise.arithmetic import neg
from axir.dialect.ops.elementwise.comparison import not_
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.sorting.sort import sort
from axir.dialect.program.rules import Value
from axir.passes.legalize.sorting.sort_order import Comparator, Key
from axir.passes.raising.dimensions.attributes import flag, integer, word

from .elementwise import total_order_key
from .reductions import scalar_values
from .table import RaisingContext, raises, refusal


@raises("stablehlo.sort")
def _sort(context: RaisingContext, operation: ir.Operation, *arrays: Value) -> Sequence[Value]:
    block = operation.regions[0].blocks[0]
    keys = Comparator(block).keys()
    if keys is None:
        raise refusal(
            "The comparator of this stablehlo.sort is no comparison of keys.",
            "Compute what decides before sorting, and compare it: by LT or GT, then by ties.",
        )
    dimension = integer(operation, "dimension", -1) % max(1, arrays[0].ndim)
    is_stable = flag(operation, "is_stable")
    if not arrays[0].size:
        return arrays
    named = _leading(block, keys, arrays)
    if named is not None:
        return sort(arrays, dimension, is_stable, named)
    values = scalar_values(context, operation, [key.value for key in keys], arrays)
    made = [_ascending(key, value) for key, value in zip(keys, values, strict=True)]
    return sort([*made, *arrays], dimension, is_stable, len(made))[len(made) :]


def _leading(block: ir.Block, keys: Sequence[Key], arrays: Sequence[Value]) -> int | None:
    """Returns how many leading arrays the op `sort` must compare; None if it orders otherwise."""
    left = list(block.arguments)[::2]
    compared: list[tuple[int, str]] = []
    for key in keys:
        part, source = _part_of(key.value)
        if key.is_descending or source not in left:
            return None
        place = left.index(source)
        is_float = dtypes.is_inexact(arrays[place].dtype)
        if is_float and key.is_total != _is_canonical(key.value, part):
            return None
        compared.append((place, part))
    return _count_of(compared, arrays)


def _count_of(compared: list[tuple[int, str]], arrays: Sequence[Value]) -> int | None:
    """Returns how many leading arrays are compared, each once and complex ones by both parts."""
    expected: list[tuple[int, str]] = []
    for place, x in enumerate(arrays):
        parts = ["real", "imag"] if dtypes.is_complex(x.dtype) else [""]
        expected += [(place, part) for part in parts]
        if compared == expected:
            return place + 1
    return None


def _part_of(value: ir.Value) -> tuple[str, ir.Value]:
    """Returns the part ("real", "imag" or "") and the element that a key passes on."""
    while isinstance(value, ir.OpResult) and value.owner.name == "stablehlo.select":
        value = value.owner.operands[2]
    if isinstance(value, ir.OpResult) and value.owner.name in ("stablehlo.real", "stablehlo.imag"):
        return value.owner.name.partition(".")[2], value.owner.operands[0]
    return "", value


def _is_canonical(key: ir.Value, part: str) -> bool:
    """Tells whether a key is a number with one zero and one NaN: select(x != x, nan, zero or x)."""
    if not (isinstance(key, ir.OpResult) and key.owner.name == "stablehlo.select"):
        return False
    is_nan, nan, rest = key.owner.operands
    if not (isinstance(rest, ir.OpResult) and rest.owner.name == "stablehlo.select"):
        return False
    is_zero, zero, x = rest.owner.operands
    tests_zero = _compares(is_zero, "EQ", x) and _number(is_zero.owner.operands[1]) == 0
    sources = (x, rest)
    tests_nan = any(_compares(is_nan, "NE", y) and is_nan.owner.operands[1] == y for y in sources)
    constant_nan, constant_zero = _number(nan), _number(zero)
    return bool(
        tests_zero
        and tests_nan
        and constant_zero == 0
        and constant_nan is not None
        and np.isnan(constant_nan)
    )


def _compares(truth: ir.Value, direction: str, lhs: ir.Value) -> bool:
    if not (isinstance(truth, ir.OpResult) and truth.owner.name == "stablehlo.compare"):
        return False
    found = word(truth.owner.attributes["comparison_direction"])
    return found == direction and truth.owner.operands[0] == lhs


def _number(value: ir.Value) -> float | None:
    if isinstance(value, ir.OpResult) and value.owner.name == "stablehlo.constant":
        attribute = ir.DenseElementsAttr(value.owner.attributes["value"])
        return float(dense_to_numpy(attribute).reshape(-1)[0])
    return None


def _ascending(key: Key, value: Value) -> Value:
    """Returns numbers with an ascending order that equals the key's order."""
    if dtypes.is_float(value.dtype):
        if not key.is_total:
            return neg(value) if key.is_descending else value
        value = total_order_key(value)
    if value.dtype == dtypes.bool_:
        value = convert_element_type(value, np.int8)
    return not_(value) if key.is_descending else value
