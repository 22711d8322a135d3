"""Functions whose leading dimension is open: traced for one row, vectorized for as many as come.

Row i of the results is the function of row i of the arguments; whether that holds of a function is
looked at when it is exported. A program has a fixed number of rows: a call takes the next larger
one and fills it up with copies of its last row, or goes through the largest one several times.
What does not live here: symbolic dimensions (`frontend/_arguments/dimensions.py`).
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator, Sequence

import ml_dtypes
import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import HostArray, UserObject
from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.config import config
from axir.dialect.core.errors import ShapeError
from axir.dialect.core.extended_dtypes import keys_of
from axir.dialect.core.memo import derived
from axir.dialect.core.state import outside_traces
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.function import Function
from axir.passes.transforms.vmap import batch_function

from .captures import with_captures
from .manifest import Batch

# How many rows a function is looked at with, when it is exported.
WITNESSES = 3


class DependentRowsError(ShapeError):
    """A function whose leading dimension should be open mixes rows, or depends on their number."""


@derived
def of_rows(function: Function, batch: Batch, count: int) -> Function:
    """Returns the function of so many rows, of the function of one.

    Raises:
        DependentRowsError: if a result depends on rows but has no dimension for them.
    """
    axes = (*(0 if is_open else None for is_open in batch.arguments), *_none(function.captures))
    out_axes = tuple(0 if is_open else None for is_open in batch.results)
    found = batch_function(function, count, axes)
    for number, (axis, wanted) in enumerate(zip(found.axes, out_axes, strict=True)):
        if axis is not None and wanted is None:
            raise _dependent(function.name, f"result {number} depends on all rows")
    made = batch_function(function, count, axes, out_axes).function
    captured = [*function.captured, *made.captured]
    return with_captures(made, len(function.inputs), captured)


def _none(values: Sequence[UserObject]) -> tuple[None, ...]:
    return (None,) * len(values)


def type_of_rows(kind: ShapedArray, count: int) -> ShapedArray:
    """Returns the type of so many rows."""
    return kind.update(shape=(count, *kind.shape))


def _dependent(name: str, reason: str) -> DependentRowsError:
    return DependentRowsError(
        f"export of {name!r} with an open leading dimension: {reason}.",
        "It would be applied to rows one by one, since calls are filled up with further rows: "
        "leave sums and means over rows to the caller, or let it be traced for each size that "
        "comes, which a constraint asks for: symbolic_shape('b, 3', constraints=['b >= 1']).",
    )


def open_results(name: str, row: Sequence[ShapedArray], rows: Sequence[ShapedArray]) -> list[bool]:
    """Tells which results have the open dimension, from their types for one and several rows.

    Raises:
        DependentRowsError: if one has it elsewhere.
    """
    found = []
    for number, (one, several) in enumerate(zip(row, rows, strict=True)):
        if one.shape == several.shape:
            found.append(False)
        elif one.shape == (1, *several.shape[1:]) and several.shape[0] == WITNESSES:
            found.append(True)
        else:
            raise _dependent(
                name,
                f"result {number} has shape {one.shape} for 1 row and {several.shape} for "
                f"{WITNESSES}",
            )
    return found


def check_rows(name: str, several: Function, row: Function, batch: Batch) -> None:
    """Compares, on random numbers, a function of several rows with that of one, vectorized.

    Args:
        name: What to call it.
        several: The function traced for `WITNESSES` rows.
        row: The function of one row.
        batch: Which arguments and results have rows.

    Raises:
        DependentRowsError: if they differ.
    """
    vectorized = of_rows(row, batch, WITNESSES)
    generator = np.random.default_rng(0)
    values = [random_value(kind, generator) for kind in several.input_types]
    with outside_traces(), config(jax_disable_jit=True), np.errstate(all="ignore"):
        expected = several.evaluate(*values)
        found = vectorized.evaluate(*values)
    for number, (wanted, got) in enumerate(zip(expected, found, strict=True)):
        if not _agree(wanted.host(), got.host()):
            raise _dependent(
                name,
                f"result {number} of a row depends on the other rows, or on how many there are",
            )


def random_value(kind: ShapedArray, generator: np.random.Generator) -> ConcreteArray:
    if dtypes.is_key(kind.dtype):
        words = generator.integers(0, 1 << 32, kind.words.shape, np.uint32)
        return ConcreteArray(kind, keys_of(words, kind.dtype))
    if dtypes.is_inexact(kind.dtype):
        numbers: HostArray = generator.standard_normal(kind.shape)
        if dtypes.is_complex(kind.dtype):
            numbers = numbers + 1j * generator.standard_normal(kind.shape)
    else:
        numbers = generator.integers(0, 2 if kind.dtype == dtypes.bool_ else 3, kind.shape)
    return ConcreteArray(kind, np.asarray(numbers).astype(kind.dtype))


def _agree(wanted: HostArray, got: HostArray) -> bool:
    """Tells whether results are equal up to rounding, which rows may have of their own."""
    if not dtypes.is_inexact(wanted.dtype):
        return bool((wanted == got).all())
    eps = float(ml_dtypes.finfo(dtypes.real_dtype(wanted.dtype)).eps)
    wide = np.result_type(wanted.dtype if wanted.dtype != dtypes.bfloat16 else np.float32, "f4")
    wanted, got = wanted.astype(wide), got.astype(wide)
    finite = wanted[np.isfinite(wanted)]
    scale = float(np.abs(finite).max(initial=0.0)) or 1.0
    tolerance = scale * float(np.sqrt(eps))
    return bool(np.allclose(got, wanted, rtol=0, atol=tolerance, equal_nan=True))


# Calls --------------------------------------------------------------------------------------------


def row_count(name: str, values: Sequence[UserObject], batch: Batch, names: Sequence[str]) -> int:
    """Returns how many rows the arguments of a call have.

    Raises:
        ShapeError: if one has no leading dimension, or they have different ones.
    """
    extents = {
        shape[0] if (shape := np.shape(value)) else -1
        for value, is_open in zip(values, batch.arguments, strict=True)
        if is_open
    }
    if len(extents) == 1 and -1 not in extents:
        return int(extents.pop())
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
        batch: Which arguments and results have rows, and for how many there are programs.
        count: How many rows the arguments have.
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
    """Yields first row, end and size of program for the calls that take so many rows together.

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
    """Returns rows of an array, and copies of the last one up to a size; zeros if there is none."""
    host = x.host()[start:stop]
    missing = size - len(host)
    if missing:
        filler = host[-1:] if len(host) else np.zeros((1, *host.shape[1:]), host.dtype)
        host = np.concatenate([host, np.repeat(filler, missing, 0)])
    return _array(x, host)


def _array(like: ConcreteArray, host: HostArray) -> ConcreteArray:
    return ConcreteArray(like.type.update(shape=host.shape), host)
