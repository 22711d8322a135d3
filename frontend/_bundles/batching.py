"""Functions with an open leading dimension: traced for one row, vectorized for any number of rows.

Row i of the results is the function of row i of the arguments; the export proves that this holds of
a function (`row_proof.py`). A program has a fixed number of rows: a call uses the next larger
program and pads with copies of its last row, or runs the largest one several times. Elsewhere:
symbolic dimensions (`dialect/core/symbolic_dims.py`).
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from axir.dialect.core.annotations import Extent, HostArray, UserObject
from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.errors import ShapeError
from axir.dialect.core.memo import derived
from axir.dialect.core.symbolic_dims import as_extent
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.function import Function
from axir.passes.transforms.vmap import batch_function

from .captures import with_captures
from .manifest import Batch

COUNTS = (3, 4099)
"""For how many rows a function is traced when it is exported, besides for a single one."""


class DependentRowsError(ShapeError):
    """A function does not treat rows one by one: it mixes them, or depends on their number."""


@derived
def of_rows(function: Function, batch: Batch, count: Extent) -> Function:
    """Returns the function of so many rows, given the function of one.

    Raises:
        DependentRowsError: if a result depends on rows but has no dimension for them.
    """
    axes = (*(0 if is_open else None for is_open in batch.arguments), *_none(function.captures))
    out_axes = tuple(0 if is_open else None for is_open in batch.results)
    found = batch_function(function, count, axes)
    for number, (axis, wanted) in enumerate(zip(found.axes, out_axes, strict=True)):
        if axis is not None and wanted is None:
            raise dependent(function.name, f"result {number} depends on all rows")
    made = batch_function(function, count, axes, out_axes).function
    captured = [*function.captured, *made.captured]
    return with_captures(made, len(function.inputs), captured)


def _none(values: Sequence[object]) -> tuple[None, ...]:
    return (None,) * len(values)


def type_of_rows(kind: ShapedArray, count: int) -> ShapedArray:
    """Returns the type of an array of so many rows."""
    return kind.update(shape=(count, *kind.shape))


def dependent(name: str, reason: str) -> DependentRowsError:
    return DependentRowsError(
        f"export of {name!r} with an open leading dimension: {reason}.",
        "Calls of functions of rows are filled up with further rows: leave sums and means over "
        "rows to the caller. What is known to treat rows one by one is exported without a proof "
        "by disabled_checks=[DisabledSafetyCheck.rows()].",
    )


def open_results(name: str, *kinds: Sequence[ShapedArray]) -> list[bool]:
    """Tells which results have the open dimension.

    Args:
        name: The function's name.
        *kinds: Types of its results for one row, and for each number of rows in `COUNTS`.

    Raises:
        DependentRowsError: if a result has it in another place than the first.
    """
    counts = (1, *COUNTS)
    lengths = list(map(len, kinds))
    if len(set(lengths)) > 1:
        raise dependent(name, f"it has {_listed(lengths)} results for {_listed(counts)} rows")
    found = []
    for number, types in enumerate(zip(*kinds, strict=True)):
        shapes = [t.shape for t in types]
        found.append(shapes == [(count, *shapes[0][1:]) for count in counts])
        if not found[-1] and len(set(shapes)) > 1:
            raise dependent(
                name, f"result {number} has shapes {_listed(shapes)} for {_listed(counts)} rows"
            )
    return found


def _listed(values: Sequence[object]) -> str:
    *first, last = map(str, values)
    return f"{', '.join(first)} and {last}"


# Calls --------------------------------------------------------------------------------------------


def row_count(name: str, values: Sequence[UserObject], batch: Batch, names: Sequence[str]) -> int:
    """Returns the number of rows in the arguments of a call.

    Raises:
        ShapeError: if one has no leading dimension, or their leading dimensions differ.
    """
    extents = {
        shape[0] if (shape := np.shape(value)) else -1
        for value, is_open in zip(values, batch.arguments, strict=True)
        if is_open
    }
    if len(extents) == 1 and -1 not in extents:
        return as_extent(extents.pop())
    counts: dict[str, int] = {}
    for value, is_open, argument in zip(values, batch.arguments, names, strict=True):
        if is_open:
            shape = np.shape(value)
            if not shape:
                raise ShapeError(
                    f"{name}: the argument {argument!r} is a scalar, but has a leading dimension "
                    f"{batch.symbol}.",
                    "Pass rows, x[None] for a single one.",
                )
            counts[argument] = shape[0]
    raise ShapeError(
        f"{name}: the dimension {batch.symbol} differs between arguments: "
        f"{', '.join(f'{argument} has {count}' for argument, count in counts.items())}.",
        "Pass the same number of rows for all.",
    )


Run = Callable[[int, "list[ConcreteArray]"], "list[ConcreteArray]"]


def run_rows(
    batch: Batch, count: int, values: Sequence[ConcreteArray], run: Run
) -> list[UserObject]:
    """Runs programs of fixed numbers of rows on any number of rows.

    Args:
        batch: The arguments and results with rows, and the numbers of rows with programs.
        count: The number of rows of the arguments.
        values: The arguments.
        run: Runs the program of so many rows.
    """
    if count in batch.sizes or not (batch.sizes or count == 0):
        return run(count, list(values))
    pieces: list[list[ConcreteArray]] = []
    for start, stop, size in pieces_of(count, batch.sizes or (1,)):
        padded = [
            _padded(x, start, stop, size) if is_open else x
            for x, is_open in zip(values, batch.arguments, strict=True)
        ]
        results = run(size, padded)
        pieces.append(
            [
                _array(x, x.host()[: stop - start]) if is_open else x
                for x, is_open in zip(results, batch.results, strict=True)
            ]
        )
    if len(pieces) == 1:
        return pieces[0]
    return [
        _array(column[0], np.concatenate([x.host() for x in column])) if is_open else column[0]
        for column, is_open in zip(zip(*pieces, strict=True), batch.results, strict=True)
    ]


def pieces_of(count: int, sizes: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Yields the first row, the end and the program's size of each call for so many rows.

    >>> list(pieces_of(10, (1, 4, 8))), list(pieces_of(3, (1, 4)))
    ([(0, 8, 8), (8, 10, 4)], [(0, 3, 4)])
    """
    start = 0
    while True:
        rest = count - start
        size = sizes[min(bisect.bisect_left(sizes, rest), len(sizes) - 1)]
        stop = min(count, start + size)
        yield start, stop, size
        start = stop
        if start >= count:
            return


def _padded(x: ConcreteArray, start: int, stop: int, size: int) -> ConcreteArray:
    """Returns rows of an array, padded to a size with copies of the last row, or with zeros."""
    host = x.host()[start:stop]
    missing = size - len(host)
    if missing:
        filler = host[-1:] if len(host) else np.zeros((1, *host.shape[1:]), host.dtype)
        host = np.concatenate([host, np.repeat(filler, missing, 0)])
    return _array(x, host)


def _array(like: ConcreteArray, host: HostArray) -> ConcreteArray:
    return ConcreteArray(like.type.update(shape=host.shape), host)
