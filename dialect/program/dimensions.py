"""Relations between the dimensions of an op's operands and results, for work on parts of arrays.

Dimensions are made of *factors*, which operands and results share. A factor in a result is cut
there as it is in the operands: the op works on parts as it does on whole arrays. A factor in
operands only is reduced: the results of parts must be combined, for example by a sum. A dimension
without factors is needed whole. So a product of matrices has a factor for the rows, one for the
columns and one that is summed over. An elementwise op has a factor for each dimension. Reshaping
(6, 4) to (24,) has two factors, and both stand in the dimension of the result.

Elsewhere: the parts that each device holds (`meshes/layouts.py`), and the choice of the dimensions
to cut (`passes/partition/`).
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
    """The elements of its neighbours that a part of an operand needs; zeros at the ends.

    Attributes:
        operand: Number of the operand.
        dimension: Its dimension.
        before: Number of elements of the preceding part.
        after: Number of elements of the following part.
    """

    operand: int
    dimension: int
    before: int
    after: int


class LookUp(NamedTuple):
    """Positions along a dimension of operand 0 that stand in operand 1, the indices.

    Attributes:
        factor: The dimension's factor.
        column: Place of the position in the vectors of indices.
        clips: Whether positions out of bounds mean the nearest position in bounds.
        fills: Whether the first part answers for positions out of bounds.
        batch: The dimensions of the result that belong to the indices, if elements are read. A part
            gives zeros for positions that it does not hold. None if elements are written: a part
            leaves out positions that it does not hold.
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
        combined: For factors in no result, how to combine the results of parts: `"sum"`, `"max"` or
            `"min"`.
        local_params: From the shapes of the parts of operands and results to the parameters that
            differ on parts; None if all are equal.
        counted: The factor along which the result counts, so that its parts begin at other numbers.
        contributing: The operand that must be added only once if parts are combined by a sum.
        halos: The needed neighbours, for factors along which windows reach over the edges of parts.
        look_up: The factor of positions that are looked up.
        separate: Whether each result depends only on the operand with its number.
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
    """Returns the dimensions of an op that relates operands and results by position.

    Operands of rank 0 are whole. Dimensions with different extents are whole, too.

    Args:
        operands: Types of the operands.
        results: Types of the results.
        whole: Positions that are needed whole.
        local_params: As in `Dimensions`.
        stretches: Whether dimensions of extent 1 are stretched. Then only these are whole.
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
    """Returns the dimensions of an op that works separately at each index of the first `count`.

    The dimensions after these, such as rows and columns of matrices, are needed whole.
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

    Each right-hand side is solved separately. The last operand holds the right-hand sides, and the
    result holds their solutions.

    Args:
        operands: Types of the operands.
        results: Types of the results.
        place: The dimension of a matrix of right-hand sides that counts them: -1 or -2.
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
    """Returns the dimensions of an op with its operands as results."""
    factors = Factors()
    made = tuple(tuple(factors.new(extent) for extent in t.shape) for t in operands)
    return Dimensions(made, made[: len(results)], factors, separate=True)


def regrouped(
    shape: tuple[int, ...], new: tuple[int, ...]
) -> tuple[list[Dimension], list[Dimension], Factors]:
    """Returns the factors of the dimensions of two shapes of the same elements.

    Groups of dimensions with equal products get their common factors. A group without common
    factors, as in (2, 3) and (3, 2), is whole.

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

    Dimensions of extent 1 belong to no run.
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
    """Returns common factors: the extents of both sides are products of them in order; or None."""
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
    """Returns the dimensions of reductions; their results lack some axes of the operands.

    Args:
        operands: Types of the operands, all of one shape; operands of rank 0 are whole.
        results: Types of the results.
        axes: The axes.
        combined: How to combine the results of parts of the elements, as in `Dimensions`; None if
            all elements are needed together.
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
    """Returns the dimensions of ops that treat all positions equally, such as elementwise ops."""
    return by_position(operands, results, stretches=True)


def except_along(
    operands: Sequence[ShapedArray], results: Sequence[ShapedArray], *, axis: int, **params: object
) -> Dimensions:
    """Returns the dimensions of ops that need one axis whole, and treat others by position."""
    return by_position(operands, results, (axis,))


def stack_of(rank: int) -> Returning[Dimensions]:
    """Returns the rule of ops on stacks; an item has `rank` dimensions in the first operand."""

    def rule(
        operands: Sequence[ShapedArray], results: Sequence[ShapedArray], **params: object
    ) -> Dimensions:
        return leading(operands, results, operands[0].ndim - rank)

    return rule
