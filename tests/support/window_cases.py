"""Dimension numbers of gathers and scatters: an enumeration of windows and their indices.

Each dimension of an operand has one of the roles below; all combinations occur. The places of
windows and of their number, the order of indexed dimensions, and the extents of 1 are drawn.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator

import numpy as np

from axir.dialect.ops.indexing.gather import GatherDimensionNumbers
from axir.dialect.ops.indexing.scatter_shapes import ScatterDimensionNumbers

ROLES = {
    "batching": "each index vector has its own slice",
    "point": "indexed, and one element of it goes with each vector",
    "window": "indexed, and a window of it goes with each vector",
    "whole": "all of it goes with each vector",
    "front": "the first elements of it go with each vector",
    "first": "the first element of it goes with each vector",
}


@dataclasses.dataclass(frozen=True)
class WindowCase:
    """Shapes that fit together, and how their dimensions correspond.

    Attributes:
        name: The roles and the other drawn choices.
        operand_shape: Shape of the array that is read or written.
        indices_shape: Shape of the indices, with the index vectors last.
        windows_shape: Shape of a scatter's updates, or a gather's result.
        slice_sizes: The window in each dimension of the operand.
        numbers: The dimension numbers of a scatter.
    """

    name: str
    operand_shape: tuple[int, ...]
    indices_shape: tuple[int, ...]
    windows_shape: tuple[int, ...]
    slice_sizes: tuple[int, ...]
    numbers: ScatterDimensionNumbers

    @property
    def gather_numbers(self) -> GatherDimensionNumbers:
        """The numbers of the gather that reads the windows."""
        return GatherDimensionNumbers(*self.numbers)

    def indices(self, generator: np.random.Generator) -> np.ndarray:
        """Draws index vectors; most of their windows fit, and some overlap."""
        indexed = self.numbers.scatter_dims_to_operand_dims
        room = [self.operand_shape[d] - self.slice_sizes[d] for d in indexed]
        drawn = [generator.integers(-1, limit + 2, self.indices_shape[:-1]) for limit in room]
        kept = [
            np.where(generator.random(x.shape) < 0.8, x.clip(0, limit), x)
            for x, limit in zip(drawn, room, strict=True)
        ]
        empty = np.zeros((*self.indices_shape[:-1], 0))
        return (np.stack(kept, -1) if kept else empty).astype(np.int32)


def window_cases(
    generator: np.random.Generator, ranks: tuple[int, ...] = (1, 2, 3)
) -> Iterator[WindowCase]:
    """Enumerates the roles of dimensions; a scalar index, a list and a table of them take turns."""
    for rank in ranks:
        for number, roles in enumerate(itertools.product(ROLES, repeat=rank)):
            yield _case(generator, roles, number % 3)


def _case(generator: np.random.Generator, roles: tuple[str, ...], index_rank: int) -> WindowCase:
    def having(*names: str) -> list[int]:
        return [d for d, role in enumerate(roles) if role in names]

    def shuffled(dimensions: list[int]) -> tuple[int, ...]:
        return tuple(map(int, generator.permutation(dimensions)))

    shape = tuple(
        map(int, generator.choice([1, 2, 3, 4, 5], len(roles), p=[0.1, 0.1, 0.3, 0.3, 0.2]))
    )
    sizes = {
        "whole": lambda extent: extent,
        "window": lambda extent: int(generator.integers(1, extent + 1)),
        "front": lambda extent: int(generator.integers(1, extent + 1)),
    }
    slice_sizes = tuple(
        sizes.get(role, lambda _: 1)(extent) for role, extent in zip(roles, shape, strict=True)
    )
    batching = shuffled(having("batching"))
    # Dimensions of the indices: batching ones among the others.
    free = [int(generator.integers(1, 4)) for _ in range(index_rank)]
    places = sorted(map(int, generator.choice(len(free) + len(batching), len(batching), False)))
    batch_places = shuffled(places)
    index_shape = dict(zip(batch_places, (shape[d] for d in batching), strict=True))
    rest = iter(free)
    batch_shape = tuple(
        index_shape[d] if d in index_shape else next(rest) for d in range(len(free) + len(batching))
    )
    kept = having("window", "whole", "front")
    rank = len(batch_shape) + len(kept)
    window_dims = tuple(sorted(map(int, generator.choice(rank, len(kept), False))))
    windows, batch = iter(slice_sizes[d] for d in kept), iter(batch_shape)
    windows_shape = tuple(next(windows if d in window_dims else batch) for d in range(rank))
    indexed = shuffled(having("point", "window"))
    order = np.argsort(batching)
    numbers = ScatterDimensionNumbers(
        window_dims,
        tuple(having("point", "first")),
        indexed,
        tuple(batching[i] for i in order),
        tuple(batch_places[i] for i in order),
    )
    indices_shape = (*batch_shape, len(indexed))
    name = f"{'-'.join(roles)} {shape} {indices_shape} {windows_shape} {tuple(numbers)}"
    return WindowCase(name, shape, indices_shape, windows_shape, slice_sizes, numbers)
