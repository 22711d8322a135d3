"""Arrays that share a binding: IREE binds 32 to a kernel, and there may be more of them.

The smallest arrays of each dtype lie behind each other in one array. Elsewhere: the access of a
kernel to its arrays (`dispatching.py`).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import TypeAlias

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo

# Two are reserved for additions of `dispatch`: a workspace, and an operand that hides constants.
MOST_BINDINGS = 30

Group: TypeAlias = list[int]


def grouped(
    operands: Sequence[ir.Type],
    results: Sequence[ir.Type],
    alone: Collection[int],
    most: int = MOST_BINDINGS,
) -> tuple[list[Group], list[Group]]:
    """Returns which operands, and which results, share a binding, by their numbers.

    Args:
        operands: The types of the operands.
        results: The types of the results.
        alone: The operands with a separate binding.
        most: The largest number of bindings.
    """
    if len(operands) + len(results) <= most:
        return [[n] for n in range(len(operands))], [[n] for n in range(len(results))]
    half = most // 2
    for_results = max(half, most - len(operands))
    grouped_results = _grouped(results, (), for_results)
    return _grouped(operands, alone, most - len(grouped_results)), grouped_results


def _grouped(types: Sequence[ir.Type], alone: Collection[int], most: int) -> list[Group]:
    if len(types) <= most:
        return [[number] for number in range(len(types))]
    kinds = dict.fromkeys(str(type_.element_type) for type_ in types)
    order = sorted(
        (number for number in range(len(types)) if number not in alone),
        key=lambda number: -math.prod(types[number].shape),
    )
    apart = {*alone, *order[: max(0, most - len(kinds) - len(alone))]}
    groups: dict[int | str, Group] = {}
    for number, type_ in enumerate(types):
        key = number if number in apart else str(type_.element_type)
        groups.setdefault(key, []).append(number)
    return list(groups.values())


def packed(arrays: Sequence[ir.Value]) -> ir.Value:
    """Returns arrays of one dtype behind each other; a single one stays as it is."""
    if len(arrays) == 1:
        return arrays[0]
    return hlo.concatenate([hlo.reshape(x, (math.prod(x.type.shape),)) for x in arrays], 0)


def packed_type(types: Sequence[ir.Type]) -> ir.Type:
    """Returns the type of `packed` arrays."""
    if len(types) == 1:
        return types[0]
    return hlo.tensor_type((sum(math.prod(x.shape) for x in types),), types[0].element_type)


def unpacked(pack: ir.Value, types: Sequence[ir.Type]) -> list[ir.Value]:
    """Returns the arrays that lie behind each other."""
    if len(types) == 1:
        return [pack]
    found = []
    start = 0
    for type_ in types:
        end = start + math.prod(type_.shape)
        found.append(hlo.reshape(hlo.slice(pack, [start], [end]), type_.shape))
        start = end
    return found
