"""Complex arrays as arrays of pairs of real numbers, which are equal in memory."""

from __future__ import annotations

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.rewriting import defining_operation

REINTERPRETATION = "flow.tensor.bitcast"
"""The operation that takes an array for one of other elements."""


def pairs_of(x: ir.Value) -> ir.Value:
    """Returns a complex array as a real array with an additional axis of two."""
    kind = x.type
    return _reinterpreted(x, hlo.tensor_type((*kind.shape, 2), kind.element_type.element_type))


def of_pairs(pairs: ir.Value) -> ir.Value:
    """Returns a real array of pairs along the last axis as a complex array."""
    kind = pairs.type
    element = ir.ComplexType.get(kind.element_type)
    return _reinterpreted(pairs, hlo.tensor_type(kind.shape[:-1], element))


def _reinterpreted(x: ir.Value, kind: ir.Type) -> ir.Value:
    segments = ir.DenseI32ArrayAttr.get([1, 0, 0])
    return ir.Operation.create(
        REINTERPRETATION,
        results=[kind],
        operands=[x],
        attributes={"operandSegmentSizes": segments},
    ).result


def joined(real: ir.Value, imag: ir.Value) -> ir.Value:
    """Returns the parts of complex numbers side by side, along an axis more.

    Where they are all parts of one array, the array itself is returned, reinterpreted.
    """
    shape = tuple(real.type.shape)
    pairs, others = _half_behind(real, 0), _half_behind(imag, 1)
    if pairs is not None and others is not None and pairs == others:
        return pairs
    whole, other = _operand_of(real, "stablehlo.real"), _operand_of(imag, "stablehlo.imag")
    if whole is not None and other is not None and whole == other:
        return pairs_of(whole)
    return hlo.concatenate([hlo.reshape(x, (*shape, 1)) for x in (real, imag)], len(shape))


def halves(pairs: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Returns the parts of complex numbers that lie side by side along a last axis."""
    *shape, _ = pairs.type.shape
    start = [0] * len(shape)
    real, imag = (
        hlo.reshape(hlo.slice(pairs, [*start, half], [*shape, half + 1]), shape) for half in (0, 1)
    )
    return real, imag


def _operand_of(x: ir.Value, name: str) -> ir.Value | None:
    """Returns the operand of an operation with a name; None for other operations."""
    operation = defining_operation(x)
    return operation.operands[0] if operation is not None and operation.name == name else None


def _half_behind(part: ir.Value, half: int) -> ir.Value | None:
    """Returns the array of pairs that `halves` took this part of; None for any other value."""
    taken = _operand_of(part, "stablehlo.reshape")
    pairs = None if taken is None else _operand_of(taken, "stablehlo.slice")
    if taken is None or pairs is None or list(pairs.type.shape) != [*part.type.shape, 2]:
        return None
    starts = list(taken.owner.operation.attributes["start_indices"])
    is_half = list(taken.type.shape) == [*part.type.shape, 1] and starts[-1] == half
    return pairs if is_half else None
