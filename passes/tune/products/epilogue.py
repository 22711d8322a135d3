"""Elementwise operations on a product, which its kernel computes while it is in the first cache.

Elsewhere: the kernel (`matrix_kernel.py`), and the formulas of elementwise operations
(`passes/legalize/lanes.py`).
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.kernels import Memory
from axir.dialect.builders.scalars import Scalar, broadcast
from axir.passes.legalize.lanes import lanes_of

# With more operations the kernel would read and write more arrays than it saves.
_MOST_OPERATIONS = 32
_MOST_OUTPUTS = 3
_MOST_ARRAYS = 6

Groups = tuple[bool, bool, bool]


@dataclasses.dataclass(frozen=True)
class Operand:
    """Another operand of an epilogue, which may be broadcast along batches, rows or columns.

    Attributes:
        value: An array without its axes of extent 1.
        groups: Whether it varies along batches, rows, columns.
    """

    value: ir.Value
    groups: Groups

    def array(self, extents: Sequence[int]) -> ir.Value:
        """Returns it with an axis for each group that it varies along; at least one axis."""
        shape = [n for n, has in zip(extents, self.groups, strict=True) if has]
        return hlo.reshape(self.value, shape or (1,))

    def read(self, memory: Memory, place: Place) -> Scalar:
        """Returns the operand's elements for some columns of a row of the product."""
        position = tuple(x for x, has in zip(place.position, self.groups, strict=True) if has)
        if self.groups[2]:
            return memory.read(position, place.lanes, place.mask)
        return broadcast(memory[position or 0], place.lanes)


@dataclasses.dataclass(frozen=True)
class Place:
    """Some columns of a row of a product: the first (batch, row, column), their number, a mask."""

    position: tuple[Scalar, Scalar, Scalar]
    lanes: int
    mask: Scalar | None


@dataclasses.dataclass(frozen=True)
class Epilogue:
    """Elementwise operations that begin with a product.

    Attributes:
        product: The result of the contraction.
        operations: The operations, in the order of the program.
        operands: The other values that they read, each once.
        outputs: The results that others use, at least one; the product may be among them.
    """

    product: ir.Value
    operations: tuple[ir.Operation, ...]
    operands: dict[ir.Value, Operand]
    outputs: tuple[ir.Value, ...]

    @classmethod
    def of(cls, dot: ir.Operation, groups: Sequence[int]) -> Epilogue:
        """Finds the operations that can be computed together with a product.

        Args:
            dot: The contraction.
            groups: The number of axes of its result that are batches, and that are rows.
        """
        product = dot.results[0]
        operations: list[ir.Operation] = []
        operands: dict[ir.Value, Operand] = {}
        inside = [product]
        finder = _Finder(dot, hlo.shape_of(product), groups)
        while (found := finder.next_operation(inside, operations)) is not None:
            operation, beside = found
            if len(operations) == _MOST_OPERATIONS or len(operands | beside) > _MOST_ARRAYS:
                break
            operations.append(operation)
            operands |= beside
            inside.append(operation.results[0])
        outputs = tuple(
            x for x in inside if any(use.owner.operation not in operations for use in x.uses)
        )
        if not operations or not 0 < len(outputs) <= _MOST_OUTPUTS:
            return cls.none(product)
        return cls(product, tuple(operations), operands, outputs)

    @classmethod
    def none(cls, product: ir.Value) -> Epilogue:
        """Returns no operations: the output is the product."""
        return cls(product, (), {}, (product,))

    @property
    def identity(self) -> str:
        """Returns a text that is equal for two epilogues with equal code."""
        names = {self.product: "x"}
        names.update((value, f"y{number}") for number, value in enumerate(self.operands))
        lines = [str([operand.groups for operand in self.operands.values()])]
        for number, operation in enumerate(self.operations):
            read = [names.get(x) or str(splat(x)) for x in operation.operands]
            attributes = sorted(
                (name, str(operation.attributes[name])) for name in operation.attributes
            )
            names[operation.results[0]] = f"z{number}"
            lines.append(f"{operation.name} {read} {attributes} {operation.results[0].type}")
        return "; ".join([*lines, str([names[x] for x in self.outputs])])

    def apply(self, sums: Scalar, memory: Sequence[Memory], place: Place) -> list[Scalar]:
        """Returns the outputs for some columns of a row."""
        values = {self.product: sums}
        for (value, operand), there in zip(self.operands.items(), memory, strict=True):
            values[value] = operand.read(there, place)
        for operation in self.operations:
            numbers = [
                values[x] if x in values else _constant(x, place.lanes) for x in operation.operands
            ]
            lanes = lanes_of(operation)
            assert lanes is not None  # otherwise it would not be in the epilogue
            values[operation.results[0]] = lanes(*numbers)
        return [values[x] for x in self.outputs]

    def replace(self, results: Sequence[ir.Value]) -> None:
        """Replaces the outputs by other values, and erases the operations."""
        for output, result in zip(self.outputs, results, strict=True):
            output.replace_all_uses_with(result)
        for operation in reversed(self.operations):
            operation.erase()


@dataclasses.dataclass(frozen=True)
class _Finder:
    """Looks for elementwise operations behind a contraction."""

    dot: ir.Operation
    shape: tuple[int, ...]
    groups: Sequence[int]

    def next_operation(
        self, inside: list[ir.Value], known: Sequence[ir.Operation]
    ) -> tuple[ir.Operation, dict[ir.Value, Operand]] | None:
        """Returns another operation that can be computed, and the other values it reads."""
        for operation in _users(inside):
            if operation in known or not self._is_elementwise(operation):
                continue
            beside: dict[ir.Value, Operand] = {}
            for value in operation.operands:
                if value in inside or splat(value) is not None:
                    continue
                operand = self._operand(value)
                if operand is None:
                    break
                beside[value] = operand
            else:
                return operation, beside
        return None

    def _is_elementwise(self, operation: ir.Operation) -> bool:
        return (
            operation.block == self.dot.block
            and len(operation.results) == 1
            and all(
                isinstance(x.type, ir.RankedTensorType) and hlo.shape_of(x) == self.shape
                for x in (*operation.operands, *operation.results)
            )
            and lanes_of(operation) is not None
        )

    def _operand(self, value: ir.Value) -> Operand | None:
        """Returns how to read a value of the product's shape, if it is known before the product."""
        owner = None if isinstance(value, ir.BlockArgument) else value.owner.operation
        if owner is not None and owner.name == "stablehlo.broadcast_in_dim":
            source = owner.operands[0]
            axes = [
                axis
                for axis, extent in zip(
                    owner.attributes["broadcast_dimensions"], hlo.shape_of(source), strict=True
                )
                if extent != 1
            ]
            groups = self._groups(axes)
            if groups is not None and axes == sorted(axes) and self._is_before(source):
                return Operand(source, groups)
        return Operand(value, (True, True, True)) if self._is_before(value) else None

    def _groups(self, axes: Sequence[int]) -> Groups | None:
        """Tells which groups of axes of the result an array has; None if it has part of a group."""
        batch, rows = self.groups
        ends = (0, batch, batch + rows, len(self.shape))
        found = []
        for start, end in itertools.pairwise(ends):
            axes_of_group = [axis for axis in range(start, end) if self.shape[axis] != 1]
            there = [axis for axis in axes_of_group if axis in axes]
            if there and there != axes_of_group:
                return None
            found.append(bool(there))
        return found[0], found[1], found[2]

    def _is_before(self, value: ir.Value) -> bool:
        if isinstance(value, ir.BlockArgument):
            return True
        owner = value.owner.operation
        return owner.block != self.dot.block or owner.is_before_in_block(self.dot)


def _users(values: list[ir.Value]) -> Iterator[ir.Operation]:
    """Yields the operations that use values."""
    for value in values:
        for use in value.uses:
            yield use.owner.operation


def splat(value: ir.Value) -> ir.Attribute | None:
    """Returns the number that each element of a constant is; None if they differ."""
    while not isinstance(value, ir.BlockArgument):
        owner = value.owner
        if owner.name == "stablehlo.constant":
            numbers = owner.attributes["value"]
            is_splat = isinstance(numbers, ir.DenseElementsAttr) and numbers.is_splat
            return numbers.get_splat_value() if is_splat else None
        if owner.name != "stablehlo.broadcast_in_dim":
            return None
        value = owner.operands[0]
    return None


def _constant(value: ir.Value, lanes: int) -> Scalar:
    element = hlo.element_type_of(value)
    number = splat(value)
    assert number is not None  # otherwise it would be an operand
    if isinstance(element, ir.IntegerType) and not element.is_signless:
        element = ir.IntegerType.get_signless(element.width)
        number = ir.IntegerAttr.get(element, ir.IntegerAttr(number).value)
    kind = ir.VectorType.get([lanes], element)
    made = ir.Operation.create(
        "arith.constant",
        results=[kind],
        attributes={"value": ir.DenseElementsAttr.get_splat(kind, number)},
    )
    return Scalar(made.result)
