"""Which operations write where other values are stored, and which values share what storage."""

from __future__ import annotations

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.rewriting import constant_behind, defining_operation

_KERNEL = "flow.dispatch"
IN_PLACE = (
    "stablehlo.scatter", "stablehlo.dynamic_update_slice", "stablehlo.sort", _KERNEL,
)  # fmt: skip
"""Operations whose result IREE writes over their first operands; kernels, over those they name."""

BARRIER = "stablehlo.optimization_barrier"
_BRANCHING = ("stablehlo.if", "stablehlo.case")
_MOVES = frozenset(
    f"stablehlo.{name}"
    for name in (
        "reshape bitcast_convert transpose slice dynamic_slice concatenate convert "
        "broadcast_in_dim reverse pad real imag reduce gather reduce_precision map"
    ).split()
)
_ARITHMETIC = frozenset(
    f"stablehlo.{name}"
    for name in (
        "select clamp complex add subtract multiply divide and or xor maximum minimum power "
        "shift_left shift_right_logical shift_right_arithmetic negate not"
    ).split()
)
# Scatter, sort and the like are not in this set: they write to new storage, or to a copy that
# `protect-inputs` made. (`_replacement` handles updates that replace a whole array.)
_FORWARDING = _MOVES | _ARITHMETIC


def overwritten_places(operation: ir.Operation) -> list[int]:
    """Returns which operands an operation of `IN_PLACE` overwrites."""
    if operation.name == _KERNEL:
        places = [place.value for place in operation.attributes["tied_operands"]]
        return [place for place in places if place >= 0]
    if operation.name == "stablehlo.scatter":
        return list(range((len(operation.operands) - 1) // 2))
    return list(range(len(operation.operands) if operation.name == "stablehlo.sort" else 1))


def sources(operation: ir.Operation, result: ir.Value) -> list[ir.Value]:
    """Returns all values that a result may share storage with, even if it rarely does."""
    if operation.name in _FORWARDING:
        return list(operation.operands)
    if operation.name in ("stablehlo.while", BARRIER):
        return [operation.operands[ir.OpResult(result).result_number]]
    if operation.name in _BRANCHING:
        index = ir.OpResult(result).result_number
        blocks = [region.blocks[0] for region in operation.regions]
        return [block.operations[len(block.operations) - 1].operands[index] for block in blocks]
    if operation.name == "func.call":
        return list(operation.operands)
    return _replacement(operation, result)


def folded_sources(value: ir.Value) -> list[ir.Value]:
    """Returns the values that a value may become when the compiler folds its operation away.

    A move may leave every element in its place, and arithmetic with a constant may be an identity.
    """
    operation = defining_operation(value)
    if operation is None:
        return []
    if operation.name == "stablehlo.bitcast_convert":
        return list(operation.operands)
    if operation.name in _MOVES:
        size = _element_count(value)
        return [x for x in operation.operands if _element_count(x) == size]
    if operation.name in _ARITHMETIC:
        others = [x for x in operation.operands if constant_behind(x) is None]
        return others if len(others) < len(operation.operands) else []
    if operation.name == BARRIER or operation.name in _BRANCHING:
        return sources(operation, value)
    return _replacement(operation, value)


def _replacement(operation: ir.Operation, result: ir.Value) -> list[ir.Value]:
    """Returns the update that replaces a whole array, and is then the result; else nothing."""
    if operation.name == "stablehlo.dynamic_update_slice":
        written = operation.operands[1]
    elif operation.name == "stablehlo.scatter":
        index, count = ir.OpResult(result).result_number, len(operation.results)
        block = operation.regions[0].blocks[0]
        terminator = block.operations[len(block.operations) - 1]
        if terminator.operands[index] != block.arguments[count + index]:
            return []
        written = operation.operands[count + 1 + index]
    else:
        return []
    return [written] if _element_count(written) == _element_count(result) else []


def moved_from(value: ir.Value) -> ir.Value | None:
    """Returns the array that a value shares storage with if its move leaves all elements in place.

    Returns None if another operation makes the value.
    """
    operation = defining_operation(value)
    if operation is None or not (operation.name in _MOVES or operation.name == BARRIER):
        return None
    behind = folded_sources(value)
    if operation.name != "stablehlo.bitcast_convert":
        kind = ir.ShapedType(value.type).element_type
        behind = [x for x in behind if ir.ShapedType(x.type).element_type == kind]
    return behind[0] if behind else None


def _element_count(value: ir.Value) -> int:
    count = 1
    for extent in hlo.shape_of(value):
        count *= extent
    return count
