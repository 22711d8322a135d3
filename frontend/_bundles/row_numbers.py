"""Arrays of a program that have rows, or that number rows, as in `x[arange(n), labels]`.

Row numbers may be used only to address rows: a row that looks up its own number finds itself.
Elsewhere: ops that know of no numbers of rows (`row_layouts.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import AnyDtype, HostArray
from axir.dialect.core.array import ConcreteArray
from axir.dialect.program.equation import Equation

from .row_expressions import Expressions, Shape, equal_bits
from .row_layouts import EVERY, Mixed, Own, Parts, RefusedError, Rows, State, part_shape

Counts = tuple[int, int]

# Ops that leave elements unchanged, and so the numbers of rows.
_MOVING = ("reshape", "squeeze", "broadcast_in_dim", "transpose")
_SCATTERS = ("scatter", "scatter_add", "scatter_mul", "scatter_min", "scatter_max")


def constant(
    expressions: Expressions, arrays: tuple[ConcreteArray, ConcreteArray], counts: Counts
) -> State:
    """Returns the state of an array, given its values in programs of two numbers of rows."""
    one, other = arrays
    if one.type.shape == other.type.shape:
        number = expressions.constant(one)
        if number == expressions.constant(other):
            return Own(number)
    else:
        for rows in _candidates(one.type.shape, other.type.shape, counts):
            parts = [_part(x, rows, n) for x, n in zip(arrays, counts, strict=True)]
            numbers = {None if x is None else expressions.constant(x) for x in parts}
            if None not in numbers and len(numbers) == 1:
                return Own(numbers.pop() or 0, rows)
    if one.type.shape == other.type.shape:
        return Mixed(f"A value of the program, {one.type}, depends on how many rows there are.")
    return Mixed(f"An array of the program, {one.type} for {counts[0]} rows, tells rows apart.")


def _candidates(one: Shape, other: Shape, counts: Counts) -> list[Rows]:
    """Returns where two arrays may have rows, given their shapes."""
    if len(one) != len(other):
        return []
    places = [d for d, (m, n) in enumerate(zip(one, other, strict=True)) if m != n]
    if len(places) != 1:
        return []
    (place,) = places
    times = one[place] // counts[0]
    if (one[place], other[place]) != (times * counts[0], times * counts[1]):
        return []
    found = [Rows(place, None), Rows(place, 1), Rows(place, times)]
    return [*found, Rows(place, 1, EVERY)] if times == 1 else found


def _part(x: ConcreteArray, rows: Rows, count: int) -> ConcreteArray | None:
    """Returns a row's part of an array; None if the parts differ."""
    host, place = x.host(), rows.dimension
    shape = part_shape(host.shape, rows, count)
    if rows.numbered:
        if not _holds_counts(x.type.dtype) or not _holds_numbers(host, place):
            return None
        return ConcreteArray(x.type.update(shape=shape), np.zeros(shape, host.dtype))
    if rows.before is None:
        first = host.take([0], place)
        part = np.repeat(first, shape[place], place)
    else:
        split = host.reshape(
            *host.shape[:place], rows.before, count, shape[place] // rows.before,
            *host.shape[place + 1 :],
        )  # fmt: skip
        first, host = split.take([0], place + 1), split
        part = first.reshape(shape)
    if not equal_bits(host, np.broadcast_to(first, host.shape)):
        return None
    return ConcreteArray(x.type.update(shape=shape), np.ascontiguousarray(part))


def numbers_of(
    equation: Equation, count: int, new: Sequence[int | None]
) -> tuple[ConcreteArray, Rows] | None:
    """Returns a row's part of an array that counts rows, and where its rows lie.

    Args:
        equation: An `iota`.
        count: How many rows there are.
        new: In which dimension its result has rows.

    Returns:
        None if it counts something else, or in a type that is too small for numbers of rows.
    """
    (result,), (place,) = equation.results, new
    shape, dtype = result.type.shape, result.type.dtype
    if place is None or place != equation.params["dimension"] or shape[place] != count:
        return None
    if not _holds_counts(dtype):
        return None
    rows = Rows(place, 1, EVERY)
    part = part_shape(shape, rows, count)
    return ConcreteArray(result.type.update(shape=part), np.zeros(part, dtype)), rows


def _holds_counts(dtype: AnyDtype) -> bool:
    return bool(dtypes.is_integer(dtype) and dtype.itemsize >= 4)


def _holds_numbers(host: HostArray, place: int) -> bool:
    wanted = np.arange(host.shape[place]).reshape(-1, *(1,) * (host.ndim - place - 1))
    return bool((host == wanted).all())


# Ops ----------------------------------------------------------------------------------------------


def numbered_results(
    equation: Equation, operands: Sequence[Own], count: int, found: Sequence[Rows | None]
) -> list[Rows | None]:
    """Returns where an op's results have rows, if operands hold numbers of rows.

    Args:
        equation: The op.
        operands: Its operands.
        count: How many rows there are.
        found: Where the results have rows if the numbers are ordinary content of an array.

    Raises:
        RefusedError: if it uses them in a way that a single row cannot.
    """
    if _keeps_numbers(equation):
        ((operand,), (rows,)) = operands, found
        if rows is not None and rows.before == 1 and operand.rows is not None:
            if operand.rows.numbered == EVERY:
                return [replace(rows, numbered=EVERY)]
    if equation.primitive.name == "concatenate":
        (rows,), axis = found, equation.params["dimension"]
        if rows is not None and axis == equation.results[0].type.ndim - 1 != rows.dimension:
            return [replace(rows, numbered=_columns_of(equation, operands))]
    raise RefusedError(f"The op {equation.primitive.name!r} tells rows apart by their numbers.")


def looks_up(equation: Equation) -> bool:
    """Tells whether an op reads or writes at positions given by its second operand."""
    return equation.primitive.name == "gather" or equation.primitive.name in _SCATTERS


def _keeps_numbers(equation: Equation) -> bool:
    name = equation.primitive.name
    if name == "convert_element_type":
        return _holds_counts(equation.results[0].type.dtype)
    return name in _MOVING


def _columns_of(equation: Equation, operands: Sequence[Own]) -> frozenset[int]:
    """Returns at which places along the last dimension joined arrays hold numbers of rows."""
    found, start = set[int](), 0
    for variable, x in zip(equation.operands, operands, strict=True):
        extent = variable.type.shape[-1]
        numbered = frozenset[int]() if x.rows is None else x.rows.numbered
        found |= {start + n for n in (range(extent) if numbered == EVERY else numbered)}
        start += extent
    return frozenset(found)


def of_own_row(equation: Equation, operands: Sequence[Own], count: int) -> Parts:
    """Returns a look-up, or a scatter, on one row, if each row does it in its own place.

    Raises:
        RefusedError: if one does it elsewhere.
    """
    name, numbers = equation.primitive.name, equation.params["dimension_numbers"]
    is_read = name == "gather"
    columns = numbers.start_index_map if is_read else numbers.scatter_dims_to_operand_dims
    left_out = numbers.collapsed_slice_dims if is_read else numbers.inserted_window_dims
    types = [v.type for v in equation.operands]
    operand, indices = operands[0].rows, operands[1].rows
    place = None if operand is None or operand.numbered else operand.dimension
    if place is None or indices is None or types[0].shape[place] != count or indices.before != 1:
        raise RefusedError(f"The op {name!r} tells rows apart by their numbers.")
    every = range(len(columns))
    looked = [columns[n] for n in (every if indices.numbered == EVERY else indices.numbered)]
    if looked != [place] or place not in left_out or indices.dimension == types[1].ndim - 1:
        raise RefusedError(f"The op {name!r} looks for numbers of rows elsewhere than in rows.")
    windows = numbers.offset_dims if is_read else numbers.update_window_dims
    changed = equation.results[0].type if is_read else types[2]
    batch = [d for d in range(changed.ndim) if d not in windows][indices.dimension]
    params, rows = equation.params, Rows(batch, 1)
    if is_read:
        sizes = tuple(map(min, params["slice_sizes"], part_shape(types[0].shape, operand, count)))
        params = {**params, "slice_sizes": sizes}
    else:
        updates = operands[2].rows
        if updates is None or replace(updates, before=1) != rows or updates.before not in (None, 1):
            raise RefusedError(f"The op {name!r} mixes rows.")
        rows = Rows(place, 1)
    return Parts(params, [part_shape(equation.results[0].type.shape, rows, count)], [rows])
