"""Positions of rows in arrays, and how an op moves them, by its rule `dimensions`.

Elsewhere: the walk over a program (`row_proof.py`), and ops that use row numbers
(`row_numbers.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from axir.dialect.core.annotations import Params
from axir.dialect.program.dimensions import Dimension, Dimensions
from axir.dialect.program.equation import Equation

from .row_expressions import Shape

EVERY = frozenset({-1})
"""The columns of an array that holds the numbers of rows everywhere."""


@dataclass(frozen=True)
class Rows:
    """Where an array has rows: in one dimension, as `(before, rows, behind)` if it is reshaped.

    Attributes:
        dimension: The dimension.
        before: The number of repetitions of the rows in it, one after the other; None if all
            positions along it hold the same value.
        numbered: Positions along the last dimension at which row numbers are added to the other
            content.
    """

    dimension: int
    before: int | None
    numbered: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Own:
    """A value with a separate part for each row, or shared by all rows.

    Attributes:
        expression: The number of a row's expression for it.
        rows: Where the rows lie; None if they share it.
    """

    expression: int
    rows: Rows | None = None


@dataclass(frozen=True)
class Mixed:
    """A value that combines rows, or depends on their number.

    Attributes:
        reason: Why, as a sentence.
        equation: The op that made it so; None if none did.
    """

    reason: str
    equation: Equation | None = None


State = Own | Mixed


class RefusedError(Exception):
    """Ends the analysis of an op: its results are `Mixed`, with a reason.

    Attributes:
        equation: The op that is the reason, if it is another one within.
    """

    def __init__(self, reason: str, equation: Equation | None = None):
        super().__init__(reason)
        self.equation = equation


class Parts(NamedTuple):
    """The form of an op on a single row.

    Attributes:
        params: Its parameters.
        shapes: Shapes of the results.
        rows: Where its results have rows.
    """

    params: Params
    shapes: list[Shape]
    rows: list[Rows | None]


class _Cut(NamedTuple):
    """The factor in which rows lie, and how many times before them."""

    factor: int
    before: int


def part_shape(shape: Shape, rows: Rows | None, count: int) -> Shape:
    """Returns the shape of a single row's part of an array with so many rows."""
    if rows is None:
        return shape
    place = rows.dimension
    return (*shape[:place], shape[place] // count, *shape[place + 1 :])


def parts_of(
    equation: Equation,
    dimensions: Dimensions,
    rows: Sequence[Rows | None],
    count: int,
    new: Sequence[int | None],
) -> Parts:
    """Returns the form of an op on one row of so many.

    Args:
        equation: The op.
        dimensions: The factors of its dimensions.
        rows: Where its operands have rows.
        count: How many there are.
        new: In which dimension each result has rows though no operand has.

    Raises:
        RefusedError: if a result combines several rows.
    """
    name = equation.primitive.name
    if dimensions.separate:
        found: list[Rows | None] = list(rows)
    else:
        cut = _cut(dimensions, rows, count) if any(rows) else _new_cut(dimensions, count, new)
        if cut is not None and cut.factor == dimensions.counted:
            raise RefusedError(f"The op {name!r} tells rows apart.")
        if cut is None or not _is_free(dimensions, rows, cut.factor):
            raise RefusedError(f"The op {name!r} mixes rows.")
        is_uniform = all(x is None or x.before is None for x in rows)
        found = [_rows_of(own, dimensions, cut, is_uniform) for own in dimensions.results]
        if None in found:
            raise RefusedError(f"The op {name!r} mixes rows.")
    given = [
        part_shape(v.type.shape, own, count) for v, own in zip(equation.operands, rows, strict=True)
    ]
    shapes = [
        part_shape(v.type.shape, own, count) for v, own in zip(equation.results, found, strict=True)
    ]
    params = equation.params
    if dimensions.local_params is not None:
        params = {**params, **dimensions.local_params(given, shapes)}
    return Parts(params, shapes, found)


def _cut(dimensions: Dimensions, rows: Sequence[Rows | None], count: int) -> _Cut | None:
    """Returns the factor in which rows of operands lie; None if there is not one for all."""
    cuts = {
        _located(own[x.dimension], dimensions, x.before, count)
        for x, own in zip(rows, dimensions.operands, strict=True)
        if x is not None and x.before is not None
    }
    if not cuts:  # all are uniform: one of them says where
        cuts = {
            _located(own[x.dimension], dimensions, 1, count)
            for x, own in zip(rows, dimensions.operands, strict=True)
            if x is not None
        }
    return cuts.pop() if len(cuts) == 1 else None


def _located(own: Dimension, dimensions: Dimensions, before: int, count: int) -> _Cut | None:
    """Returns the factor of a dimension in which its rows lie."""
    done = 1
    for factor in own:
        extent = dimensions.extents[factor]
        if before % done == 0 and extent and extent % (before // done * count) == 0:
            return _Cut(factor, before // done)
        done *= extent
    return None


def _new_cut(dimensions: Dimensions, count: int, new: Sequence[int | None]) -> _Cut | None:
    """Returns the factor of rows that occurs only in results."""
    cuts = {
        _located(own[place], dimensions, 1, count)
        for own, place in zip(dimensions.results, new, strict=True)
        if place is not None
    }
    return cuts.pop() if len(cuts) == 1 else None


def _is_free(dimensions: Dimensions, rows: Sequence[Rows | None], factor: int) -> bool:
    """Tells whether an op treats all positions along a factor alike and independently."""
    look_up = dimensions.look_up
    if factor in dimensions.combined or factor in dimensions.halos:
        return False
    if look_up is not None and look_up.factor == factor:
        return False
    for own, x in zip(dimensions.operands, rows, strict=True):
        places = [place for place, factors in enumerate(own) if factor in factors]
        if places != ([] if x is None else [x.dimension]):
            return False
    return True


def _rows_of(
    own: Sequence[Dimension], dimensions: Dimensions, cut: _Cut, is_uniform: bool
) -> Rows | None:
    """Returns where a result has rows; None if it has them nowhere, or twice."""
    places = [place for place, factors in enumerate(own) if cut.factor in factors]
    if len(places) != 1:
        return None
    factors = own[places[0]]
    if is_uniform and len(factors) == 1:
        return Rows(places[0], None)
    earlier = factors[: factors.index(cut.factor)]
    return Rows(places[0], cut.before * math.prod(dimensions.extents[f] for f in earlier))


def joined(one: Rows | None, other: Rows | None) -> Rows | None:
    """Returns where a value has rows that comes from one place or another.

    Raises:
        RefusedError: if they have them at different places.
    """
    if one is None or other is None:
        if one is other:
            return one
    elif one.dimension == other.dimension and one.numbered == other.numbered:
        if one.before is None or one.before == other.before:
            return other
        if other.before is None:
            return one
    raise RefusedError("Rows lie in different dimensions.")
