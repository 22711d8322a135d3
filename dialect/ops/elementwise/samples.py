"""Operands on which elementwise ops are tested: edges of dtypes, random numbers, and shapes.

Elsewhere: the family of elementwise ops (`family.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.program.operation import Sample

# Values at which functions often go wrong.
EDGES = (0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan)


@dataclass(frozen=True)
class Sampling:
    """The distribution of an elementwise op's samples.

    Attributes:
        low, high: Range of the operands.
        edges: Further values, which are combined with each other.
        has_complex_edges: Whether they are also combined to complex numbers. False if
            implementations disagree about the signs and nan of the results.
        has_half_nan: Whether only one part of a complex edge may be nan. False if C99 defines the
            other part of the result and compiled code does not follow it.
        tolerance: As in `Sample`.
    """

    low: float = -2.0
    high: float = 2.0
    edges: Sequence[float] = EDGES
    has_complex_edges: bool = True
    has_half_nan: bool = True
    tolerance: float = 16.0

    def draw(self, arity: int, domain: Sequence[np.dtype]) -> list[Sample]:
        """Returns samples of an op that takes these dtypes."""
        generator = np.random.default_rng(arity * 1000 + len(domain))
        # Stretched and empty operands take the same path through all rules for every dtype.
        leader = next((d for d in (dtypes.float32, dtypes.int32) if d in domain), domain[0])
        samples = []
        for dtype in domain:
            for shapes in _sample_shapes(arity, dtype == leader):
                values = (random_values(generator, s, dtype, self.low, self.high) for s in shapes)
                samples.append(Sample(tuple(values), tolerance=self.tolerance))
            if self.has_complex_edges or not dtypes.is_complex(dtype):
                points = edge_values(self.edges, dtype)
                if dtypes.is_complex(dtype) and not self.has_half_nan:
                    points = points[np.isnan(points.real) == np.isnan(points.imag)]
                grid = np.meshgrid(*[points] * arity)
                edge_args = tuple(np.ascontiguousarray(g.reshape(-1)) for g in grid)
                samples.append(Sample(edge_args, is_smooth=False, tolerance=self.tolerance))
        return samples


def _sample_shapes(arity: int, has_all: bool) -> Iterator[Sequence[tuple[int, ...]]]:
    yield [(2, 3)] * arity
    if has_all:
        yield from ([shape] * arity for shape in ((), (0, 2), (1, 2, 1, 1, 2, 1)))
    if has_all and arity > 1:
        rest = arity - 1
        yield from ([(3,), *[()] * rest], [(), *[(3,)] * rest], [(2, 1, 3), *[(1, 2, 3)] * rest])


USUAL = Sampling()


def edge_values(edges: Sequence[float], dtype: np.dtype) -> np.ndarray:
    """Returns the given values that the dtype has, and extreme values.

    The extreme values are the limits of integers and of floats, the smallest normal and denormal
    floats, and a float with an overflowing square. Complex dtypes get only the given values, as
    parts in all pairs.
    """
    if dtypes.is_complex(dtype):
        parts = np.array(edges, dtypes.real_dtype(dtype))
        result = np.empty((len(parts), len(parts)), dtype)
        result.real, result.imag = parts[:, None], parts
        return result.reshape(-1)
    if dtypes.is_float(dtype):
        known = ml_dtypes.finfo(dtype)
        huge, smallest = float(known.max), float(known.smallest_subnormal)
        far = (huge / 16, huge, -huge, float(known.smallest_normal), smallest, -smallest)
        with np.errstate(over="ignore"):  # infinity for values too large for narrow types
            return np.array([*edges, *far]).astype(dtype)
    finite = [e for e in edges if np.isfinite(e) and e == int(e)]
    if dtype == dtypes.bool_:
        return np.array([False, True])
    limits = np.iinfo(dtype)
    kept = [int(e) for e in finite if limits.min <= e <= limits.max]
    return np.array([*kept, limits.min, limits.max], dtype=dtype)


def edge_array(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Fills an array with edge values; the most important ones come first."""
    if dtypes.is_complex(dtype):
        result = np.empty(shape, dtype)
        parts = edge_array((result.size + 1,), dtypes.real_dtype(dtype))
        result.real, result.imag = parts[:-1].reshape(shape), parts[1:].reshape(shape)
        return result
    values = edge_values((np.nan, np.inf, -0.0, -np.inf, 0.0, 1.0), dtype)
    return np.resize(values[::-1] if dtypes.is_integer(dtype) else values, shape)


def edge_rows(dtype: np.dtype) -> np.ndarray:
    """Returns a matrix for reductions along rows; each row holds edge values of one kind."""
    if dtypes.is_complex(dtype):
        parts = edge_rows(dtypes.real_dtype(dtype))
        result = np.empty(parts.shape, dtype)
        result.real, result.imag = parts, np.roll(parts, 1)
        return result
    nan, inf = np.nan, np.inf
    if dtypes.is_float(dtype):
        rows = [[1, nan, 3, nan], [inf, 1, -inf, 2], [-inf] * 4, [inf, 2, 1, inf]]
        return np.array([*rows, [0.0, -0.0] * 2, [-0.0] * 4, [-1, 0, 4, 4]]).astype(dtype)
    if dtype == dtypes.bool_:
        return np.array([[False] * 4, [False, True] * 2, [True] * 4])
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    return np.array([[high, high, 1, 2], [low, low, 1, 3], [low, high] * 2, [0, 5, 5, 3]], dtype)


def random_values(
    generator: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype, low: float, high: float
) -> np.ndarray:
    """Draws an array of the given dtype between low and high (integers: a wider range)."""
    if dtype == dtypes.bool_:
        return np.asarray(generator.integers(0, 2, shape)).astype(dtype)
    if dtypes.is_integer(dtype):
        least = 0 if dtypes.is_unsigned(dtype) else -9
        return np.asarray(generator.integers(least, 10, shape)).astype(dtype)
    values = generator.uniform(low, high, shape)
    if dtypes.is_complex(dtype):
        values = values + 1j * generator.uniform(low, high, shape)
    return np.asarray(values).astype(dtype)
