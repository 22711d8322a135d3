"""Integers and booleans of rank 0 that the host computes while a program runs.

A counting loop reads nothing from the device: the host computes its counter, and the condition and
slice positions that follow from it. Here: which values the host can compute, and the arithmetic on
them. Elsewhere: the control flow around it (`branch_loops.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import scalars
from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.expressions import select
from axir.dialect.builders.scalars import Scalar

_BINARY = {"add": "addi", "subtract": "subi", "multiply": "muli", "and": "andi", "or": "ori"}
_BINARY["xor"] = "xori"
_ORDERED = {"maximum": "max", "minimum": "min"}
_CAST = ("convert", "bitcast_convert", "reshape")
_SUPPORTED = frozenset(
    f"stablehlo.{name}" for name in (*_BINARY, *_ORDERED, *_CAST, "not", "compare", "select")
)
_PREDICATES = {
    "EQ": ("eq", "eq"), "NE": ("ne", "ne"), "LT": ("slt", "ult"), "LE": ("sle", "ule"),
    "GT": ("sgt", "ugt"), "GE": ("sge", "uge"),
}  # fmt: skip
_NUMBERS = "eq ne slt sle sgt sge ult ule ugt uge".split()
# A value computed by more operations is no counter, and would need deep recursion.
_MOST_OPERATIONS = 256


def may_be_on_host(value: ir.Value) -> bool:
    """Tells whether a value is an integer or a boolean of rank 0."""
    if not isinstance(value.type, ir.RankedTensorType) or value.type.rank:
        return False
    return isinstance(value.type.element_type, ir.IntegerType)


class HostScalars:
    """The tensors of rank 0 in a function that the host knows, as scalars."""

    def __init__(self) -> None:
        self._known: dict[ir.Value, ir.Value] = {}

    def roots(self, value: ir.Value) -> set[ir.Value]:
        """Returns the values that the host needs to compute `value`; itself if it cannot."""
        found: set[ir.Value] = set()
        pending, seen = [value], {value}
        while pending:
            current = pending.pop()
            if current in self._known or _is_known_constant(current):
                continue
            if not is_supported(current):
                found.add(current)
                continue
            new = set(current.owner.operation.operands) - seen
            seen |= new
            pending += new
            if len(seen) > _MOST_OPERATIONS:
                return {value}
        return found

    def replace(self, old: ir.Value, value: ir.Value) -> None:
        """Replaces a tensor by one that is made from a scalar here, and is known from now on."""
        tensor = _tensor(value)
        if hlo.is_unsigned(old):
            tensor = hlo.bitcast_convert(tensor, hlo.element_type_of(old))
        self._known[tensor] = value
        old.replace_all_uses_with(tensor)

    def as_scalar(self, value: ir.Value) -> ir.Value:
        """Returns a tensor as a scalar: computed from known ones, or else read from the device."""
        return self._read(value) if self.roots(value) else self._computed(value, {})

    def as_scalar_where(self, value: ir.Value, known: Mapping[ir.Value, ir.Value]) -> ir.Value:
        """Returns a tensor as a scalar, computed from known ones and from these as well."""
        return self._computed(value, dict(known))

    def _computed(self, value: ir.Value, made: dict[ir.Value, ir.Value]) -> ir.Value:
        """Returns a scalar from known ones; `made` holds the intermediate results."""
        if value in self._known:
            return self._known[value]
        if value not in made:
            operation = value.owner.operation
            if operation.name == "stablehlo.constant":
                made[value] = _constant(operation)
            else:
                operands = [Scalar(self._computed(x, made)) for x in operation.operands]
                made[value] = _compute(operation, operands).value
        return made[value]

    def read_where_defined(self, value: ir.Value) -> None:
        """Reads a tensor from the device once, behind its definition."""
        operation = _definition(value)
        if operation is None:
            point = ir.InsertionPoint.at_block_begin(value.owner)
        else:
            point = ir.InsertionPoint.after(operation)
        with point:
            self._known[value] = self._read(value)

    @staticmethod
    def _read(value: ir.Value) -> ir.Value:
        if hlo.is_unsigned(value):
            width = hlo.element_type_of(value).width
            value = hlo.bitcast_convert(value, ir.IntegerType.get_signless(width))
        return ir.Operation.create(
            "tensor.extract", results=[value.type.element_type], operands=[value]
        ).result


def scalar_type(value: ir.Value) -> ir.Type:
    """Returns the type of the scalar for a tensor of rank 0."""
    return ir.IntegerType.get_signless(value.type.element_type.width)


def _tensor(value: ir.Value) -> ir.Value:
    if value.type.width == 1:
        # A kernel that makes a tensor from a boolean does not compile.
        byte = scalars.extend_unsigned(Scalar(value), 8).value
        return hlo.compare(_tensor(byte), hlo.constant(np.int8(0)), "NE")
    kind = ir.RankedTensorType.get([], value.type)
    return ir.Operation.create("tensor.from_elements", results=[kind], operands=[value]).result


def _definition(value: ir.Value) -> ir.Operation | None:
    owner = value.owner
    return None if isinstance(owner, ir.Block) else owner.operation


def _is_known_constant(value: ir.Value) -> bool:
    operation = _definition(value)
    is_constant = operation is not None and operation.name == "stablehlo.constant"
    return is_constant and may_be_on_host(value)


def is_supported(value: ir.Value) -> bool:
    """Tells whether the host can compute a value from its operands, if it knows these."""
    operation = _definition(value)
    if operation is None or operation.name not in _SUPPORTED:
        return False
    return all(map(may_be_on_host, (value, *operation.operands)))


def _constant(operation: ir.Operation) -> ir.Value:
    element = ir.DenseElementsAttr(operation.attributes["value"]).get_splat_value()
    is_truth = isinstance(element, ir.BoolAttr)
    number = ir.BoolAttr(element).value if is_truth else ir.IntegerAttr(element).value
    return scalars.constant(number, scalar_type(operation.results[0])).value


def _compute(operation: ir.Operation, operands: list[Scalar]) -> Scalar:
    name = operation.name.removeprefix("stablehlo.")
    is_unsigned = hlo.is_unsigned(operation.operands[0]) or operands[0].width == 1
    if name in ("reshape", "bitcast_convert"):
        return operands[0]
    if name in _BINARY:
        return scalars.operation(f"arith.{_BINARY[name]}", operands)
    if name in _ORDERED:
        return scalars.operation(f"arith.{_ORDERED[name]}{'ui' if is_unsigned else 'si'}", operands)
    if name == "not":
        return ~operands[0]
    if name == "select":
        return select(*operands)
    if name == "compare":
        return _compare(operation, operands, is_unsigned)
    return _convert(operands[0], scalar_type(operation.results[0]).width, is_unsigned)


def _compare(operation: ir.Operation, operands: list[Scalar], is_unsigned: bool) -> Scalar:
    direction = str(operation.attributes["comparison_direction"]).split()[-1].rstrip(">")
    predicate = _NUMBERS.index(_PREDICATES[direction][is_unsigned])
    attribute = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), predicate)
    attributes = {"predicate": attribute}
    return scalars.operation("arith.cmpi", operands, scalars.boolean(), attributes)


def _convert(operand: Scalar, width: int, is_unsigned: bool) -> Scalar:
    if width == 1:
        return operand != 0
    if width <= operand.width:
        return scalars.truncate(operand, width)
    extension = "arith.extui" if is_unsigned else "arith.extsi"
    return scalars.operation(extension, [operand], scalars.integer(width))
