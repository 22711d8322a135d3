"""The choice which factors of an op are cut, and along which axes, so that the fewest bytes move.

Candidates are the layouts of the operands, and the layouts that later ops want for the results. An
axis cuts at most one factor of an op. If bytes are equal, the choice with less computation for each
device wins.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import NamedTuple

from axir.dialect.program.dimensions import Dimension, Dimensions
from axir.dialect.program.meshes.layouts import Layout, MeshAxes, device_count, local_shape

from .moves import bytes_moved, steps

Names = tuple[Hashable, ...]
Assignment = Mapping[int, Names]
"""For factors that are cut the axes along which."""

# The cost of computing an element, in bytes moved.
_OPERATION = 0.1
# The largest number of combinations of candidates that are compared.
_LIMIT = 2048


class Lying(NamedTuple):
    """An operand or result.

    Attributes:
        shape: Shape of the array.
        itemsize: Bytes of an element.
        layout: Its layout, or the wanted one; None if open.
    """

    shape: tuple[int, ...]
    itemsize: int
    layout: Layout | None


class Choice(NamedTuple):
    """How an op works on parts.

    Attributes:
        operands: The layouts that its operands must have.
        results: The layouts of its results after parts are combined.
        combined: The axes along which parts are combined, and the kind; `"sum"`, ...
        scattered: For each of these axes along which the sum is scattered, the dimension that is
            cut.
        assignment: The factors that are cut.
    """

    operands: tuple[Layout, ...]
    results: tuple[Layout, ...]
    combined: Mapping[Hashable, str]
    scattered: Mapping[Hashable, int]
    assignment: Assignment


def factor_axes(
    dimensions: Sequence[Dimension],
    layout: Layout,
    extents: Mapping[int, int],
    axes: MeshAxes,
) -> dict[int, Names]:
    """Returns the axes along which the factors of an array's dimensions are cut, given its layout.

    Axes that do not fit into a factor, or into the ones before it, are left out.
    """
    sizes, found = dict(axes), dict[int, Names]()
    for factors, names in zip(dimensions, layout, strict=True):
        remaining = list(names)
        for factor in factors:
            left, taken = extents[factor], list[Hashable]()
            while remaining and left and left % sizes[remaining[0]] == 0:
                left //= sizes[remaining[0]]
                taken.append(remaining.pop(0))
            if taken:
                found[factor] = tuple(taken)
            if left > 1:
                break
    return found


def layout_of(
    dimensions: Sequence[Dimension],
    assignment: Assignment,
    extents: Mapping[int, int],
    axes: MeshAxes,
) -> Layout | None:
    """Returns the layout of an array with cut factors; None if no layout expresses it."""
    layout = []
    for factors in dimensions:
        names: list[Hashable] = []
        is_used_up = True
        for factor in factors:
            cut = assignment.get(factor, ())
            if cut and not is_used_up:
                return None
            names += cut
            is_used_up = is_used_up and device_count(cut, axes) == extents[factor]
        layout.append(tuple(names))
    return tuple(layout)


def choose(
    dimensions: Dimensions, operands: Sequence[Lying], results: Sequence[Lying], axes: MeshAxes
) -> Choice:
    """Returns the cheapest way in which an op works on parts."""
    best, least = None, math.inf
    for assignment in _assignments(dimensions, operands, results, axes):
        found = _choice(dimensions, assignment, results, axes)
        if found is None:
            continue
        cost = _cost(dimensions, found, operands, results, axes)
        if cost < least:
            best, least = found, cost
    assert best is not None  # cutting no factor is always possible
    return best


def _assignments(
    dimensions: Dimensions, operands: Sequence[Lying], results: Sequence[Lying], axes: MeshAxes
) -> Iterator[Assignment]:
    candidates: dict[int, dict[Names, None]] = {}
    arrays = [*zip(dimensions.operands, operands, strict=True)]
    arrays += zip(dimensions.results, results, strict=True)
    for own, array in arrays:
        if array.layout is None:
            continue
        for factor, names in factor_axes(own, array.layout, dimensions.extents, axes).items():
            known = candidates.setdefault(factor, {})
            known.update((names[: n + 1], None) for n in reversed(range(len(names))))
    factors = sorted(candidates)
    for chosen in itertools.islice(
        itertools.product(*([*candidates[factor], ()] for factor in factors)), _LIMIT
    ):
        used = list(itertools.chain(*chosen))
        if len(set(used)) == len(used):
            yield {f: names for f, names in zip(factors, chosen, strict=True) if names}
    if math.prod(len(c) + 1 for c in candidates.values()) > _LIMIT:
        yield {}


def _choice(
    dimensions: Dimensions, assignment: Assignment, results: Sequence[Lying], axes: MeshAxes
) -> Choice | None:
    def layouts(of: Sequence[Sequence[Dimension]]) -> list[Layout | None]:
        return [layout_of(each, assignment, dimensions.extents, axes) for each in of]

    operands, outs = layouts(dimensions.operands), layouts(dimensions.results)
    if None in operands or None in outs or not _reaches_neighbours(dimensions, assignment, axes):
        return None
    combined = {
        name: kind
        for factor, kind in dimensions.combined.items()
        for name in assignment.get(factor, ())
    }
    scattered: dict[Hashable, int] = {}
    if len(results) == 1 and outs[0] is not None and results[0].layout is not None:
        outs[0], scattered = _scattered(outs[0], combined, results[0], axes)
    return Choice(tuple(operands), tuple(outs), combined, scattered, assignment)  # type: ignore[arg-type]


def _reaches_neighbours(dimensions: Dimensions, assignment: Assignment, axes: MeshAxes) -> bool:
    """Tells whether parts need elements only from their direct neighbours."""
    for factor, halo in dimensions.halos.items():
        count = device_count(assignment.get(factor, ()), axes)
        part = dimensions.extents[factor] // count
        if count > 1 and max(halo.before, halo.after) > part:
            return False
    return True


def _scattered(
    layout: Layout, combined: Mapping[Hashable, str], result: Lying, axes: MeshAxes
) -> tuple[Layout, dict[Hashable, int]]:
    """Returns the layout of a sum that is scattered as wanted, and the axes of the scattering."""
    assert result.layout is not None
    wanted, current = result.layout, [list(names) for names in layout]
    found: dict[Hashable, int] = {}
    for dimension, names in enumerate(wanted):
        while len(current[dimension]) < len(names):
            name = names[len(current[dimension])]
            cut = (*current[dimension], name)
            if combined.get(name) != "sum" or name in found or names[: len(cut)] != cut:
                break
            if result.shape[dimension] % device_count(cut, axes):
                break
            current[dimension].append(name)
            found[name] = dimension
    return tuple(map(tuple, current)), found


def _cost(
    dimensions: Dimensions,
    found: Choice,
    operands: Sequence[Lying],
    results: Sequence[Lying],
    axes: MeshAxes,
) -> float:
    sizes = dict(axes)
    total = sum(
        _moving(array, array.layout, after, axes)
        for array, after in zip(operands, found.operands, strict=True)
        if array.layout is not None
    )
    for array, layout in zip(results, found.results, strict=True):
        held = math.prod(local_shape(array.shape, layout, axes)) * array.itemsize
        for name in found.combined:
            received = held * (sizes[name] - 1)
            # An all-reduce is a reduce-scatter and a gather of its results.
            total += received if name in found.scattered else 2 * received / sizes[name]
        if array.layout is not None:
            total += _moving(array, layout, array.layout, axes)
    return total + _OPERATION * _operations(dimensions, found.assignment, axes)


def _moving(array: Lying, before: Layout, after: Layout, axes: MeshAxes) -> float:
    return bytes_moved(steps(before, after), before, array.shape, array.itemsize, axes)


def _operations(dimensions: Dimensions, assignment: Assignment, axes: MeshAxes) -> float:
    return math.prod(
        extent / device_count(assignment.get(factor, ()), axes)
        for factor, extent in dimensions.extents.items()
    )
