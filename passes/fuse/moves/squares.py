"""Squares of elements in vectors: read along one axis, needed along another.

Elsewhere: the loops over them (`kernel.py`).
"""

from __future__ import annotations

from axir.dialect.builders.kernels import transposed
from axir.dialect.builders.scalars import Scalar
from axir.passes.fuse.rearranged import Transposed
from axir.passes.fuse.values import Indices, Mapped, Number, Value, plus


def rows_at(
    x: Value,
    position: Indices,
    axis: int,
    lanes: int,
    known: dict[Value, list[Scalar]] | None = None,
) -> list[Scalar]:
    """Returns `lanes` vectors of neighbours along the last axis, consecutive along another axis.

    Args:
        x: An array.
        position: The position of the first element.
        axis: The axis along which the vectors are consecutive; not the last.
        lanes: The length of the vectors, and their number.
        known: Vectors that have been read at this position, because several operations may read an
            array.
    """
    known = {} if known is None else known
    if x not in known:
        known[x] = _rows_at(x, position, axis, lanes, known)
    return known[x]


def _rows_at(
    x: Value, position: Indices, axis: int, lanes: int, known: dict[Value, list[Scalar]]
) -> list[Scalar]:
    if isinstance(x, Number):
        return [x.at(position, lanes)] * lanes
    if isinstance(x, Mapped):
        columns = [rows_at(source, position, axis, lanes, known) for source in x.sources]
        return [x.formula(*row) for row in zip(*columns, strict=True)]
    if isinstance(x, Transposed) and x.order[axis] == len(x.order) - 1:
        [source] = x.sources
        last = len(position) - 1
        rows = [
            source.at(x.place(_moved(position, last, number)), lanes) for number in range(lanes)
        ]
        return transposed(rows)
    return [x.at(_moved(position, axis, number), lanes) for number in range(lanes)]


def _moved(position: Indices, axis: int, number: int) -> Indices:
    return (*position[:axis], plus(position[axis], number), *position[axis + 1 :])
