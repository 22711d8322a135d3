"""How the dimensions of an op's operands and results hang together, so that it can work on parts.

Dimensions are made of *factors*, which operands and results share. A factor that stands in a result
is cut there as it is in the operands: the op does to parts what it does to wholes. One that stands
in operands alone is worked off: what parts give must be combined, by a sum say. A dimension without
factors is needed whole. So a product of matrices has a factor for the rows, one for the columns and
one that is summed over; what is elementwise has one for each dimension; and reshaping (6, 4) to
(24,) has two, which both stand in the dimension of the result.

Elsewhere: which devices hold which parts (`layouts.py`), and the choice of what is cut
(`passes/partition/`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from axir.dialect.core.annotations import Params, Returning
from axir.dialect.core.types import ShapedArray

Dimension = tuple[int, ...]
"""The factors of a dimension, of which the first counts slowest; none if it is needed whole."""

Shapes = Sequence[tuple[int, ...]]

WHOLE: Dimension = ()


class Halo(NamedTuple):
    """What parts of an operand need of their neighbours, where there are zeros at the ends.

    Attributes:
        operand: Number of the operand.
        dimension: Its dimension.
        before: How many places of the part before.
        after: How many of the part behind.
    """

    operand: int
    dimension: int
    before: int
    after: int


class LookUp(NamedTuple):
    """Positions along a dimension of operand 0 that stand in operand 1, the indices.

    Attributes:
        factor: The dimension's factor.
        column: Where in the vectors of indices the position stands.
        clips: Whether positions outside mean the nearest one inside.
        fills: Whether they give what the first part gives for positions outside of it.
        batch: The dimensions of the result that are those of the indices, if elements are read. A
            part gives zeros for those that it does not hold. None if elements are written: those
            that a part does not hold it leaves out.
    """

    factor: int
    column: int
    clips: bool
    fills: bool
    batch: tuple[int, ...] | None


@dataclass(frozen=True)
class Dimensions:
    """The factors of an op's dimensions.

    Attributes:
        operands: For each operand its dimensions.
        results: For each result its dimensions.
        extents: The extent of each factor.
        combined: For factors that stand in no result, how what parts give is combined: `"sum"`,
            `"max"` or `"min"`.
        local_params: From the shapes of the parts of operands and of results to the parameters that
            are others on parts; None if none are.
        counted: The factor along which the result counts, so that its parts begin elsewhere.
        contributing: The operand that must be added once, where parts are combined by a sum.
        halos: For factors along which windows reach over the edges of parts what these need.
        look_up: The factor of positions that are looked up.
        separate: Whether each result is made of the operand of its number alone.
    """

    operands: tuple[tuple[Dimension, ...], ...]
    results: tuple[tuple[Dimension, ...], ...]
    extents: Mapping[int, int]
    combined: Mapping[int, str] = field(default_factory=dict)
    local_params: Callable[[Shapes, Shapes], Params] | None = None
    counted: int | None = None
    contributing: int | None = None
    halos: Mapping[int, Halo] = field(default_factory=dict)
    look_up: LookUp | None = None
    separate: bool = False


class Factors(dict[int, int]):
    """Factors by number, with their extents, while a rule makes them.

    >>> factors = Factors()
    >>> factors.new(3), factors.new(4), factors
    ((0,), (1,), {0: 3, 1: 4})
    """

    def new(self, extent: int) -> Dimension:
        """Returns a dimension of a new factor."""
        number = len(self)
        self[number] = extent
        return (number,)


def by_position(
    operands: Sequence[ShapedArray],
    results: Sequence[ShapedArray],
    whole: Collection[int] = (),
    local_params: Callable[[Shapes, Shapes], Params] | None = None,
    *,
    stretches: bool = False,
) -> Dimensions:
    """Returns the dimensions of an op that treats those at equal positions alike.

    Operands of rank 0 are whole, and dimensions whose extents differ.

    Args:
        operands: Types of the operands.
        results: Types of the results.
        whole: Positions that are needed whole.
        local_params: As of `Dimensions`.
        stretches: Whether operands of extent 1 are stretched. Then these are whole, not the others.
    """
    types = [*operands, *results]
    rank = max((t.ndim for t in types), default=0)
    factors = Factors()
    made: dict[int, Dimension] = {}
    for position in range(rank):
        extents = {t.shape[position] for t in types if t.ndim == rank}
        largest = 0 if 0 in extents else max(extents)
        if position not in whole and extents <= ({1, largest} if stretches else {largest}):
            made[position] = factors.new(largest)

    def of(found: ShapedArray) -> tuple[Dimension, ...]:
        return tuple(
            made[position]
            if position in made and extent == factors[made[position][0]] and found.ndim == rank
            else WHOLE
            for position, extent in enumerate(found.shape)
        )

    return Dimensions(tuple(map(of, operands)), tuple(map(of, results)), factors, {}, local_params)


def leading(
    operands: Sequence[ShapedArray], results: Sequence[ShapedArray], count: int
) -> Dimensions:
    """Returns the dimensions of an op that does the same for each place in the first `count`.

    What stands behind these, such as matrices and vectors, is needed whole.
    """
    factors = Factors()
    made = tuple(factors.new(extent) for extent in operands[0].shape[:count])

    def of(found: ShapedArray) -> tuple[Dimension, ...]:
        return (*made, *(WHOLE,) * (found.ndim - count))

    return Dimensions(tuple(map(of, operands)), tuple(map(of, results)), factors)


def with_columns(
    operands: Sequence[ShapedArray], results: Sequence[ShapedArray], place: int
) -> Dimensions:
    """Returns the dimensions of ops that solve stacks of systems of equations.

    Each right-hand side is solved by itself. They stand in the last operand, and their solutions in
    the result.

    Args:
        operands: Types of the operands.
        results: Types of the results.
        place: Along which dimension of a matrix of right-hand sides they are counted: -1 or -2.
    """
    found, factors = leading(operands, results, operands[0].ndim - 2), Factors()
    factors.update(found.extents)
    column = factors.new(operands[-1].shape[place])

    def own(known: tuple[Dimension, ...]) -> tuple[Dimension, ...]:
        return (*known[:-2], WHOLE, column) if place == -1 else (*known[:-2], column, WHOLE)

    return Dimensions(
        (*found.operands[:-1], own(found.operands[-1])), tuple(map(own, found.results)), factors
    )


def each_alone(operands: Sequence[ShapedArray], results: Sequence[ShapedArray]) -> Dimensions:
    """Returns the dimensions of an op whose results are its operands."""
    factors = Factors()
    made = tuple(tuple(factors.new(extent) for extent in t.shape) for t in operands)
    return Dimensions(made, made[: len(results)], factors, separate=True)


def regrouped(
    shape: tuple[int, ...], new: tuple[int, ...]
) -> tuple[list[Dimension], list[Dimension], Factors]:
    """Returns the factors of the dimensions of two shapes of the same elements.

    Where groups of dimensions have the same product, they have the factors of which both are made;
    if there are no such, as in (2, 3) and (3, 2), the group is whole.

    >>> regrouped((6, 4), (24,))
    ([(0,), (1,)], [(0, 1)], {0: 6, 1: 4})
    >>> regrouped((2, 3, 5), (3, 2, 5))
    ([(), (), (0,)], [(), (), (0,)], {0: 5})
    """
    factors = Factors()
    first: list[Dimension] = [WHOLE] * len(shape)
    second: list[Dimension] = [WHOLE] * len(new)
    if not all(shape):
        return first, second, factors
    for ours, theirs in _groups(shape, new):
        common = _common_factors([shape[d] for d in ours], [new[d] for d in theirs])
        if common is None:
            continue
        numbers = [factors.new(extent)[0] for extent in common]
        for places, extents, made in ((ours, shape, first), (theirs, new, second)):
            remaining = iter(numbers)
            for place in places:
                product, found = 1, []
                while product < extents[place]:
                    found.append(next(remaining))
                    product *= factors[found[-1]]
                made[place] = tuple(found)
    return first, second, factors


def _groups(shape: Sequence[int], new: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Splits the dimensions of two shapes into the shortest runs of equal products.

    Those of extent 1 are in none.
    """
    ends = [_ends(extents) for extents in (shape, new)]
    groups: list[tuple[list[int], list[int]]] = []
    begin = 1
    for end in sorted(ends[0].keys() & ends[1].keys()):
        ours, theirs = ([d for e, d in side.items() if begin < e <= end] for side in ends)
        groups.append((ours, theirs))
        begin = end
    return groups


def _ends(extents: Sequence[int]) -> dict[int, int]:
    """Returns dimensions of more than one index by the product of the extents up to them."""
    found, product = {}, 1
    for dimension, extent in enumerate(extents):
        product *= extent
        if extent != 1:
            found[product] = dimension
    return found


def _common_factors(ours: Sequence[int], theirs: Sequence[int]) -> list[int] | None:
    """Returns factors that the extents of both sides are products of, in order, if there are."""
    cuts = set(_running_products(ours)) | set(_running_products(theirs))
    products = sorted(cuts | {1})
    if any(b % a for a, b in itertools.pairwise(products)):
        return None
    found = [b // a for a, b in itertools.pairwise(products)]
    return found if math.prod(found) == math.prod(ours) else None


def _running_products(extents: Sequence[int]) -> list[int]:
    return [math.prod(extents[: n + 1]) for n in range(len(extents))]


def reduced_along(
    operands: Sequence[ShapedArray],
    results: Sequence[ShapedArray],
    axes: Collection[int],
    combined: str | None,
) -> Dimensions:
    """Returns the dimensions of reductions, whose results lack some axes of the operands.

    Args:
        operands: Types of the operands, all of one shape; those of rank 0 are whole.
        results: Types of the results.
        axes: The axes.
        combined: How what parts of the elements give is combined, as in `Dimensions`; None if all
            must be there together.
    """
    factors = Factors()
    made = tuple(
        WHOLE if axis in axes and combined is None else factors.new(extent)
        for axis, extent in enumerate(operands[0].shape)
    )
    kept = tuple(each for axis, each in enumerate(made) if axis not in axes)
    worked_off = {number: combined for axis in axes for number in made[axis] if combined}
    own = tuple(made if t.ndim == len(made) else () for t in operands)
    return Dimensions(own, (kept,) * len(results), factors, worked_off)


# Rules ------------------------------------------------------------------------------------------


def position_wise(
    operands: Sequence[ShapedArray], results: Sequence[ShapedArray], **params: object
) -> Dimensions:
    """Returns the dimensions of ops that treat all positions alike, such as elementwise ones."""
    return by_position(operands, results, stretches=True)


def except_along(
    operands: Sequence[ShapedArray], results: Sequence[ShapedArray], *, axis: int, **params: object
) -> Dimensions:
    """Returns the dimensions of ops that need one axis whole, and do the same along others."""
    return by_position(operands, results, (axis,))


def stack_of(rank: int) -> Returning[Dimensions]:
    """Returns the rule of ops on stacks of what has so many dimensions in the first operand."""

    def rule(
        operands: Sequence[ShapedArray], results: Sequence[ShapedArray], **params: object
    ) -> Dimensions:
        return leading(operands, results, operands[0].ndim - rank)

    return rule
