"""Shared code of ops that move elements: their arguments, their jvp rule, their samples."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import cycle
from operator import index
from typing import Any, TypeAlias, TypeVar

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Params, ShapeLike
from axir.dialect.core.errors import AxisError, ConcretizationTypeError, ShapeError, axis_error
from axir.dialect.core.symbolic_dims import SymbolicDim, as_extent
from axir.dialect.core.symbolic_zeros import Zero
from axir.dialect.ops.elementwise.samples import edge_array, random_values
from axir.dialect.program.operation import Sample
from axir.dialect.program.rules import Tangent, Tangents, Value

# dtypes of differentiated samples of ops that move elements; samples of others hold edge values.
SMOOTH = (dtypes.float32, dtypes.complex128)

_Entry = TypeVar("_Entry")

# A sample: shapes of the operands, and parameters.
Variant: TypeAlias = tuple[tuple[tuple[int, ...], ...], Params]


def integers(name: str, what: str, values: ShapeLike) -> tuple[int, ...]:
    """Returns a sequence of integers, or a single one, as a tuple of Python integers."""
    if type(values) is int or type(values) is SymbolicDim:
        return (values,)
    try:
        # Most are integers already, and need no conversion.
        return tuple([x if type(x) is int else as_extent(x) for x in values])  # type: ignore[union-attr]
    except ConcretizationTypeError:
        raise
    except TypeError:
        raise ShapeError(
            f"{name}: {what} must be a sequence of integers, not {values!r}."
        ) from None


def canonical_axis(name: str, axis: Any, ndim: int) -> int:
    """Returns an axis counted from the front; negative ones count from the back."""
    axis = index(axis)
    if not -ndim <= axis < ndim:
        raise axis_error(name, axis, ndim)
    return axis + ndim if axis < 0 else axis


def canonical_axes(name: str, axes: Any, ndim: int) -> tuple[int, ...]:
    """Returns distinct axes counted from the front, in the order given."""
    axes = integers(name, "axes", axes)
    canonical = tuple([canonical_axis(name, axis, ndim) for axis in axes])
    if len(set(canonical)) != len(canonical):
        raise AxisError(f"{name}: an axis occurs twice in {axes}.", "Name each axis once.")
    return canonical


def apply_to_tangent(apply: Callable[..., Value]) -> Callable[..., object]:
    """Returns the jvp rule of an op that is linear in its first operand and fixed by the others."""

    def jvp(
        primals: Sequence[Value], tangents: Sequence[Tangent], out: Value, **params: object
    ) -> Tangents:
        if type(tangents[0]) is Zero:
            return Zero(out.aval.to_tangent_aval())
        return apply(tangents[0], *primals[1:], **params)

    return jvp


def spread_samples(variants: Sequence[Variant], seed: int = 0) -> list[Sample]:
    """Returns every variant in float32 and every dtype in some variant.

    Args:
        variants: Shapes of the operands and parameters.
        seed: Seed of the random operands.
    """
    generator = np.random.default_rng(seed)
    # Edge values need several elements.
    roomy = [variant for variant in variants if variant[0] and math.prod(variant[0][0]) > 2]
    others = zip((d for d in dtypes.ALL if d != dtypes.float32), cycle(roomy), strict=False)
    cases = [(dtypes.float32, variant) for variant in variants] + list(others)
    return [
        Sample(
            tuple(moved_values(generator, s, dtype) for s in shapes),
            dict(params),
            is_smooth=dtype in SMOOTH,
        )
        for dtype, (shapes, params) in cases
    ]


def moved_values(
    generator: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype
) -> np.ndarray:
    """Draws an operand to be moved: in some dtypes random numbers, in the others edge values."""
    if dtype in SMOOTH:
        return random_values(generator, shape, dtype, -2, 2)
    return edge_array(shape, dtype)


def batch_size(operands: Sequence[Value], axes: Sequence[int | None]) -> int:
    """Returns the extent of the batch axis."""
    return next(x.shape[a] for x, a in zip(operands, axes, strict=True) if a is not None)


def insert(values: Sequence[_Entry], position: int, value: _Entry) -> tuple[_Entry, ...]:
    """Returns a tuple with one more value at a position."""
    return (*values[:position], value, *values[position:])
