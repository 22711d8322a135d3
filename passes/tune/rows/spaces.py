"""Arrays viewed as rows, and the operations and arrays that a kernel of rows supports.

Elsewhere: reductions (`reductions.py`).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.lanes import lanes_of

BROADCAST = "stablehlo.broadcast_in_dim"


@dataclasses.dataclass(frozen=True)
class Space:
    """Arrays of a shape, viewed as rows: the leading dimensions number the rows.

    Attributes:
        shape: The shape of the arrays.
        split: The number of leading dimensions.
        batch: The number of leading dimensions that reductions across rows keep.
    """

    shape: tuple[int, ...]
    split: int
    batch: int = 0

    @property
    def rows(self) -> int:
        """The number of rows."""
        return math.prod(self.shape[: self.split])

    @property
    def batches(self) -> int:
        """The number of results of a reduction across rows in each column."""
        return math.prod(self.shape[: self.batch])

    @property
    def columns(self) -> int:
        """The length of a row."""
        return math.prod(self.shape[self.split :])

    def is_row(self, shape: tuple[int, ...]) -> bool:
        """Tells whether an array of a shape has a number for each row."""
        lead, rest = shape[: self.split], shape[self.split :]
        fits = rest == () or rest == (1,) * (len(self.shape) - self.split)
        return fits and lead == self.shape[: self.split]


@dataclasses.dataclass(frozen=True)
class Leaf:
    """An array that a kernel reads, as rows, or as one number for each.

    Attributes:
        value: The array.
        strides: For each leading dimension of the space, the stride in rows of the array.
        has_columns: Whether it has columns.
    """

    value: ir.Value
    strides: tuple[int, ...]
    has_columns: bool


def leaf_of(value: ir.Value, space: Space) -> Leaf:
    """Returns how an array of the space, or with a number for each row, is read.

    For an array that is broadcast to the space, the operand of the broadcast is read if it has one
    number for each row, whole rows, or a single number.
    """
    strides = _strides(space.shape[: space.split])
    whole = Leaf(value, strides, hlo.shape_of(value) == space.shape)
    if not whole.has_columns or not is_made_by(value, BROADCAST):
        return whole
    source = value.owner.operands[0]
    axes = list(value.owner.attributes["broadcast_dimensions"])
    extents = dict(zip(axes, hlo.shape_of(source), strict=True))
    behind = [axis for axis in range(space.split, len(space.shape)) if extents.get(axis, 1) != 1]
    full = [axis for axis in range(space.split, len(space.shape)) if space.shape[axis] != 1]
    if axes != sorted(axes) or (behind and behind != full):
        return whole
    own = [extents.get(axis, 1) for axis in range(space.split)]
    steps = [0 if n == 1 else step for n, step in zip(own, _strides(own), strict=True)]
    return Leaf(source, tuple(steps), bool(behind))


def _strides(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def counted_axis(value: ir.Value, space: Space) -> int | None:
    """Returns the axis of an integer iota, which a kernel need not read; None for other values."""
    if not is_made_by(value, "stablehlo.iota") or hlo.shape_of(value) != space.shape:
        return None
    axis = ir.IntegerAttr(value.owner.attributes["iota_dimension"]).value
    is_column = axis == len(space.shape) - 1 and space.columns == space.shape[-1]
    is_known = is_column or axis < space.split
    return axis if is_known and isinstance(hlo.element_type_of(value), ir.IntegerType) else None


def is_made_by(value: ir.Value, *names: str) -> bool:
    """Tells whether a value is the result of an operation of one of these names."""
    return not isinstance(value, ir.BlockArgument) and value.owner.name in names


def owner_of(value: ir.Value) -> ir.Operation | None:
    """Returns the operation that a value is a result of; None for an argument of a block."""
    return None if isinstance(value, ir.BlockArgument) else value.owner


def shape_or_none(value: ir.Value) -> tuple[int, ...] | None:
    """Returns the shape of an array; None for values that are no arrays, such as host scalars."""
    return hlo.shape_of(value) if isinstance(value.type, ir.RankedTensorType) else None


def is_full(made: ir.Operation, space: Space) -> bool:
    """Tells whether an operation computes each element of a space from elements there."""
    if len(made.results) != 1 or not made.operands:
        return False
    if any(shape_or_none(x) != space.shape for x in (*made.operands, made.results[0])):
        return False
    return bool(made.operands) and lanes_of(made) is not None


def is_spread(made: ir.Operation, space: Space) -> bool:
    """Tells whether an operation broadcasts one number for each row along the row."""
    if made.name != BROADCAST or hlo.shape_of(made.results[0]) != space.shape:
        return False
    lead = list(range(space.split))
    shape = hlo.shape_of(made.operands[0])
    dims = list(made.attributes["broadcast_dimensions"])
    return space.is_row(shape) and dims == [*lead, *range(space.split, len(shape))]


def is_per_row(made: ir.Operation, space: Space) -> bool:
    """Tells whether an operation computes a number of each row from numbers of the row."""
    if len(made.results) != 1 or not made.operands:
        return False
    shapes = [shape_or_none(x) for x in (*made.operands, made.results[0])]
    if not all(shape is not None and space.is_row(shape) for shape in shapes):
        return False
    if made.name == "stablehlo.reshape":
        return True
    if made.name == BROADCAST:
        dims = list(made.attributes["broadcast_dimensions"])
        return dims == list(range(len(dims)))
    return lanes_of(made) is not None


def is_view(made: ir.Operation) -> bool:
    """Tells whether an operation only changes the shape of numbers of rows."""
    return made.name in ("stablehlo.reshape", BROADCAST)
