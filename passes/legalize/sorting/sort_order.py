"""The keys that a comparator of `stablehlo.sort` compares, in order.

A comparator that orders by keys is a tree of comparisons; each comparison applies the same function
to the elements on both sides. These functions are computed for all elements here, before any
sorting. Elsewhere: the sorting (`sort_by_digits.py`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo

_LEFT, _RIGHT = 0, 1
_BEFORE = {"LT": False, "LE": False, "GT": True, "GE": True}  # whether the order is descending
_TURNED = {"LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE", "EQ": "EQ", "NE": "NE"}
_ELEMENTWISE = frozenset(
    f"stablehlo.{name}"
    for name in (
        "abs add and bitcast_convert ceil clamp compare convert divide floor imag is_finite "
        "maximum minimum multiply negate not or real remainder round_nearest_even select "
        "shift_left shift_right_arithmetic shift_right_logical sign subtract xor"
    ).split()
)

Places: TypeAlias = "dict[ir.Value, tuple[int, int]]"


@dataclasses.dataclass(frozen=True)
class Key:
    """One key that is compared.

    Args:
        value: The function of the left elements, in the comparator.
        is_descending: Whether larger ones come first.
        is_total: Whether floats are compared by their bits, -0.0 before 0.0 and NaN like a number.
    """

    value: ir.Value
    is_descending: bool
    is_total: bool


class Comparator:
    """The body of a `stablehlo.sort`, as far as it can be read."""

    def __init__(self, block: ir.Block):
        self._places: Places = {
            argument: (number // 2, number % 2) for number, argument in enumerate(block.arguments)
        }
        self._block = block
        self._sides: dict[ir.Value, frozenset[int] | None] = {}

    def keys(self) -> list[Key] | None:
        """Returns the keys in the order in which they decide; None if the order cannot be read."""
        keys: list[Key] = []
        rest = self._block.operations[len(self._block.operations) - 1].operands[0]
        while rest is not None:
            found = self._first_key(rest)
            if found is None:
                return None
            key, rest = found
            keys.append(key)
        return keys

    def computed(self, key: Key, operands: Sequence[ir.Value]) -> ir.Value:
        """Returns the key of each element of the sorted arrays."""
        shape = hlo.shape_of(operands[0])
        made: dict[ir.Value, ir.Value] = {}

        def compute(value: ir.Value) -> ir.Value:
            if value in self._places:
                return operands[self._places[value][0]]
            if value not in made:
                made[value] = _widened(value, [*map(compute, value.owner.operands)], shape)
            return made[value]

        return compute(key.value)

    def _first_key(self, truth: ir.Value) -> tuple[Key, ir.Value | None] | None:
        """Returns the key that decides first, and the comparison that decides for equal keys."""
        if isinstance(truth, ir.BlockArgument):
            return None
        for before, equal, rest in _alternatives(truth.owner):
            key = self._key(before, _BEFORE)
            if key is None:
                continue
            if equal is None:
                return key, None
            same = self._key(equal, {"EQ": key.is_descending})
            if same and same.is_total == key.is_total and self._match(key.value, same.value):
                return key, rest
        return None

    def _key(self, truth: ir.Value, directions: dict[str, bool]) -> Key | None:
        """Returns the key that a comparison in one of these directions compares."""
        if isinstance(truth, ir.BlockArgument) or truth.owner.name != "stablehlo.compare":
            return None
        left, right = truth.owner.operands
        direction = _word(truth.owner.attributes["comparison_direction"])
        if self._sides_of(left) == {_RIGHT}:
            left, right, direction = right, left, _TURNED[direction]
        is_pair = self._sides_of(left) == {_LEFT} and self._sides_of(right) == {_RIGHT}
        if direction not in directions or not is_pair:
            return None
        if not self._match(left, right, is_mirrored=True):
            return None
        attributes = truth.owner.attributes
        kind = _word(attributes["compare_type"]) if "compare_type" in attributes else ""
        return Key(left, directions[direction], kind == "TOTALORDER")

    def _sides_of(self, value: ir.Value) -> frozenset[int] | None:
        """Returns the sides that a value depends on; None if it is no function of elements."""
        if value not in self._sides:
            self._sides[value] = self._find_sides(value)
        return self._sides[value]

    def _find_sides(self, value: ir.Value) -> frozenset[int] | None:
        if value in self._places:
            return frozenset({self._places[value][1]})
        if isinstance(value, ir.BlockArgument):
            return None
        if value.owner.name == "stablehlo.constant":  # which may be outside of the body
            return frozenset()
        if value.owner.operation.block != self._block:
            return None
        if value.owner.name not in _ELEMENTWISE:
            return None
        sides = [self._sides_of(operand) for operand in value.owner.operands]
        known = [side for side in sides if side is not None]
        return frozenset().union(*known) if len(known) == len(sides) else None

    def _match(self, one: ir.Value, other: ir.Value, is_mirrored: bool = False) -> bool:
        """Tells whether values are equal, or would be if the sides were exchanged."""
        if one in self._places or other in self._places:
            if one not in self._places or other not in self._places:
                return False
            (number, side), place = self._places[one], self._places[other]
            return (number, side ^ is_mirrored) == place
        if one == other:
            return not is_mirrored or not self._sides_of(one)
        first, second = one.owner, other.owner
        return (
            first.name == second.name
            and one.type == other.type
            and _attributes(first) == _attributes(second)
            and all(
                self._match(x, y, is_mirrored)
                for x, y in zip(first.operands, second.operands, strict=True)
            )
        )


def _alternatives(
    operation: ir.Operation,
) -> Iterable[tuple[ir.Value, ir.Value | None, ir.Value | None]]:
    """Yields ways to read a boolean as `before`, or as `before or (equal and rest)`."""
    if operation.name == "stablehlo.compare":
        yield operation.results[0], None, None
    if operation.name == "stablehlo.or":
        one, other = operation.operands
        for before, ties in ((one, other), (other, one)):
            if isinstance(ties, ir.OpResult) and ties.owner.name == "stablehlo.and":
                equal, rest = ties.owner.operands
                yield before, equal, rest
                yield before, rest, equal
    if operation.name == "stablehlo.select":
        equal, rest, before = operation.operands
        yield before, equal, rest


def _word(attribute: ir.Attribute) -> str:
    """Returns the last word of an attribute such as `#stablehlo<comparison_direction LT>`."""
    return str(attribute).rstrip(">").split()[-1]


def _attributes(operation: ir.Operation) -> dict[str, ir.Attribute]:
    return {name: operation.attributes[name] for name in operation.attributes}


def _widened(value: ir.Value, operands: list[ir.Value], shape: tuple[int, ...]) -> ir.Value:
    """Returns an operation on scalars as one on arrays."""
    operation = value.owner
    if operation.name == "stablehlo.constant":
        copy = ir.Operation.create(
            operation.name, results=[value.type], attributes=_attributes(operation)
        )
        return hlo.broadcast_scalar(copy.result, shape)
    return ir.Operation.create(
        operation.name,
        results=[hlo.tensor_type(shape, hlo.element_type_of(value))],
        operands=operands,
        attributes=_attributes(operation),
    ).result
