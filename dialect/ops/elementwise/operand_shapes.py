"""Operands of different shapes in one op, for all its rules.

An operand of rank 0 stands for an array of any shape; in most ops an extent of 1 stands for any
extent beside operands of the same rank. The ops themselves stretch such operands; their rules use
the functions of this module. Elsewhere: NumPy's promotion of ranks (frontend).
"""

from __future__ import annotations

from collections.abc import Sequence

from axir.dialect.core.errors import ShapeError
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.later_ops import later
from axir.dialect.program.rules import TransposeOperand, Value


def broadcast_shape(
    name: str, types: Sequence[ShapedArray], *, stretches: bool = True
) -> tuple[int, ...]:
    """Returns the common shape of operands of equal shape or rank 0.

    Args:
        name: Name of the op.
        types: Types of the operands.
        stretches: Whether extents of 1 stretch.

    Raises:
        ShapeError: if the operands have no common shape.
    """
    shape: tuple[int, ...] = ()
    for operand in types:
        if operand.shape == shape or not operand.shape:
            continue
        if shape and not (stretches and _fit(shape, operand.shape)):
            exceptions = "extents of 1 and scalars stretch" if stretches else "or scalars"
            raise ShapeError(
                f"{name} requires operands of equal shape ({exceptions}), but got "
                f"{' and '.join(str(t) for t in types)}.",
                "Broadcast one of them first; the functions of axir.numpy do so by themselves.",
            )
        shape = _stretched(shape, operand.shape) if shape else operand.shape
    return shape


def _fit(first: tuple[int, ...], second: tuple[int, ...]) -> bool:
    return len(first) == len(second) and all(
        a == b or a == 1 or b == 1 for a, b in zip(first, second, strict=True)
    )


def _stretched(first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(b if a == 1 else a for a, b in zip(first, second, strict=True))


def broadcast_to(value: Value, shape: tuple[int, ...]) -> Value:
    """Broadcasts an operand to the common shape."""
    if value.shape == shape:
        return value
    return later.broadcast_in_dim(value, shape, tuple(range(value.ndim)))


def unbroadcast(cotangent: Value, operand: TransposeOperand) -> Value:
    """Sums a cotangent of the common shape to the shape of an operand."""
    shape = operand.aval.shape
    if cotangent.shape == shape:
        return cotangent
    stretched = tuple(
        axis for axis, extent in enumerate(cotangent.shape) if not shape or shape[axis] != extent
    )
    return later.reshape(later.reduce_sum(cotangent, stretched), shape)


def align(operands: Sequence[Value], axes: Sequence[int | None]) -> tuple[list[Value], int]:
    """Brings batched operands to one batch axis; unbatched ones of rank 0 stay as they are."""
    shapes = [_without(x.shape, a) for x, a in zip(operands, axes, strict=True)]
    rank = max(map(len, shapes))
    leader = max(
        (i for i, a in enumerate(axes) if a is not None), key=lambda i: (len(shapes[i]), -i)
    )
    axis = axes[leader] if len(shapes[leader]) == rank else 0
    assert axis is not None
    size = operands[leader].shape[axes[leader]]  # type: ignore[index]
    common: tuple[int, ...] = (1,) * rank
    for shape in shapes:
        common = _stretched(common, shape) if shape else common
    aligned = []
    for x, operand_axis, shape in zip(operands, axes, shapes, strict=True):
        if operand_axis is None and not shape:
            aligned.append(x)
        elif operand_axis is None:
            dimensions = tuple(d for d in range(rank + 1) if d != axis)
            aligned.append(later.broadcast_in_dim(x, _with(shape, axis, size), dimensions))
        elif len(shape) == rank:
            aligned.append(later.moveaxis(x, operand_axis, axis))
        else:
            aligned.append(later.broadcast_in_dim(x, _with(common, axis, size), (axis,)))
    return aligned, axis


def _without(shape: tuple[int, ...], axis: int | None) -> tuple[int, ...]:
    return shape if axis is None else shape[:axis] + shape[axis + 1 :]


def _with(shape: tuple[int, ...], axis: int, size: int) -> tuple[int, ...]:
    return (*shape[:axis], size, *shape[axis:])
