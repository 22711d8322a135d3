"""Collectives of `axir.lax`: combining values along an axis that `vmap` maps under a name.

All take trees of arrays, and the name of an axis in scope, or a tuple of names.

>>> import axir, axir.numpy as jnp
>>> from axir import lax
>>> axir.vmap(lambda x: x / lax.psum(x, "batch"), axis_name="batch")(jnp.array([1.0, 3.0]))
Array([0.25, 0.75], dtype=float32)
"""

from __future__ import annotations

import operator
from collections.abc import Hashable, Sequence
from math import prod

import numpy as np

from axir._trees import tree
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import ParameterError, ShapeError
from axir.dialect.core.state import state
from axir.dialect.ops.collectives import axis_exchanges as exchanges
from axir.dialect.ops.collectives import axis_reductions as collectives
from axir.dialect.ops.elementwise.arithmetic import add, div, mul
from axir.dialect.ops.elementwise.comparison import eq, select_n
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.elementwise.family import as_value
from axir.dialect.ops.shape.constants import full_like
from axir.dialect.ops.shape.movement import canonical_axis
from axir.dialect.ops.shape.rearranging import moveaxis, reshape
from axir.dialect.program.effects import axis_extent
from axir.dialect.program.rules import Value
from axir.dialect.program.tracer import Tracer

__all__ = [
    "all_gather", "all_to_all", "axis_index", "axis_size", "pbroadcast", "pcast", "pmax", "pmean",
    "pmin", "ppermute", "pshuffle", "psum", "psum_scatter", "pswapaxes",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


AxisName = Hashable
_WAYS_TO_VARY = ("varying", "invarying", "reduced")


def _names(axis_name: AxisName) -> tuple[object, ...]:
    """Returns the axes named, having checked that they are in scope."""
    names = axis_name if isinstance(axis_name, tuple) else (axis_name,)
    for name in names:
        axis_extent(name)
    return names


def _one_name(axis_name: AxisName, operation: str) -> object:
    names = _names(axis_name)
    if len(names) != 1:
        raise ParameterError(
            f"{operation}: the axes {names} were named, but it works along one axis.",
            "Apply it to one axis after the other.",
        )
    return names[0]


def _groups(groups: Sequence[Sequence[int]] | None) -> object:
    if groups is None:
        return None
    return tuple(tuple(map(operator.index, group)) for group in groups)


def _extent(name: object, groups: UserObject) -> int:
    return axis_extent(name) if groups is None else len(groups[0])


def axis_size(axis_name: AxisName) -> int:
    """Returns the extent of a mapped axis, or the product of several extents.

    Raises:
        UnboundAxisNameError: if no surrounding transformation maps an axis of that name.
    """
    return prod(axis_extent(name) for name in _names(axis_name))


def axis_index(axis_name: AxisName) -> Value:
    """Returns the position along a mapped axis, of dtype int32.

    For several axes the position is counted with the last one fastest.

    >>> import axir, axir.numpy as jnp
    >>> axir.vmap(lambda x: axis_index("i"), axis_name="i")(jnp.zeros(3))
    Array([0, 1, 2], dtype=int32)
    """
    position: UserObject = None
    for name in _names(axis_name):
        index = _place_in_grid(name)
        if index is None:
            index = _varying(collectives.axis_index_primitive.bind(axis_name=name), (name,))
        position = index if position is None else add(mul(position, axis_extent(name)), index)
    return position


def _place_in_grid(name: Hashable) -> object:
    """Returns where a kernel is along a named axis of its grid; None for other axes."""
    if state.grid is None or name not in state.grid[2]:
        return None
    return state.grid[0][state.grid[2].index(name)]


def _reduction(
    primitive: UserObject, x: ArrayLike, axis_name: AxisName, axis_index_groups: UserObject
) -> object:
    names, groups = _names(axis_name), _groups(axis_index_groups)
    return tree.map(
        lambda leaf: primitive.bind(_varying(leaf, names), axes=names, axis_index_groups=groups), x
    )


def psum(x: ArrayLike, axis_name: AxisName, *, axis_index_groups: UserObject = None) -> UserObject:
    """Sums over a mapped axis; every position gets the sum.

    Args:
        x: Array or tree of arrays. Of a value that does not depend on the axis the sum is a
            product, so `psum(1, name)` is the extent of the axis, as a Python integer.
        axis_name: Name of the axis, or a tuple of names.
        axis_index_groups: Partition of the positions into groups of one size, which are summed
            separately.

    Raises:
        UnboundAxisNameError: if no surrounding transformation maps an axis of that name.
    """
    names, groups = _names(axis_name), _groups(axis_index_groups)
    size = prod(_extent(name, groups) for name in names)

    def sum_leaf(leaf: UserObject) -> object:
        if type(leaf) in (int, float, complex):
            return leaf * size
        value = as_value(leaf)
        if value.dtype == dtypes.bool_:
            value = convert_element_type(value, np.int32)
        if type(value) is not Tracer:
            return mul(value, size)
        return _sum(value, names, groups)

    return tree.map(sum_leaf, x)


def _sum(x: Value, names: tuple[object, ...], groups: object) -> Value:
    tracked = _tracked(names)
    if groups is not None or not tracked:
        return collectives.psum_primitive.bind(
            collectives.pvary(x, tracked), axes=names, axis_index_groups=groups
        )
    others = tuple(name for name in names if name not in tracked)
    if others:
        x = collectives.psum_primitive.bind(x, axes=others, axis_index_groups=None)
    x = collectives.pvary(x, tracked)
    return collectives.psum_invariant_primitive.bind(x, axes=tracked, axis_index_groups=None)


def _tracked(names: Sequence[object]) -> tuple[object, ...]:
    """Returns the axes with tracked variation: types say whether values vary along them."""
    return tuple(name for name in names if name in state.tracked_axes)


def _varying(x: ArrayLike, names: Sequence[object]) -> Value:
    """Returns the operand of a collective over axes: a value that may vary along them."""
    return collectives.pvary(as_value(x), _tracked(names))


def pmean(x: ArrayLike, axis_name: AxisName, *, axis_index_groups: object = None) -> UserObject:
    """Averages over a mapped axis; every position gets the mean. Takes the arguments of `psum`."""
    total = psum(x, axis_name, axis_index_groups=axis_index_groups)
    count = psum(1, axis_name, axis_index_groups=axis_index_groups)

    def mean(leaf: object) -> UserObject:
        value = as_value(leaf)
        if not dtypes.is_inexact(value.dtype):
            value = convert_element_type(value, dtypes.canonicalize_dtype(np.float64))
        return div(value, count)

    return tree.map(mean, total)


def pmax(x: ArrayLike, axis_name: AxisName, *, axis_index_groups: object = None) -> UserObject:
    """Returns the largest values along a mapped axis. Takes the arguments of `psum`."""
    return _reduction(collectives.pmax_primitive, x, axis_name, axis_index_groups)


def pmin(x: ArrayLike, axis_name: AxisName, *, axis_index_groups: object = None) -> UserObject:
    """Returns the smallest values along a mapped axis. Takes the arguments of `psum`."""
    return _reduction(collectives.pmin_primitive, x, axis_name, axis_index_groups)


def pbroadcast(x: ArrayLike, axis_name: AxisName, source: int) -> UserObject:
    """Gives every position along a mapped axis the value that the position `source` holds."""
    name = _one_name(axis_name, "pbroadcast")
    is_source = eq(axis_index(name), source)
    kept = tree.map(lambda leaf: select_n(is_source, full_like(leaf, 0), as_value(leaf)), x)
    return psum(kept, name)


def ppermute(x: ArrayLike, axis_name: AxisName, perm: Sequence[tuple[int, int]]) -> UserObject:
    """Sends values along a mapped axis from position to position.

    Args:
        x: Array or tree of arrays.
        axis_name: Name of the axis.
        perm: Pairs (source, destination). Positions that receive nothing get zeros.

    Raises:
        ParameterError: if a source or destination occurs twice or lies outside the axis.

    >>> import axir, axir.numpy as jnp
    >>> shift = lambda x: ppermute(x, "i", [(0, 1), (1, 2)])
    >>> axir.vmap(shift, axis_name="i")(jnp.array([1.0, 2.0, 3.0]))
    Array([0., 1., 2.], dtype=float32)
    """
    name = _one_name(axis_name, "ppermute")
    pairs = tuple((operator.index(s), operator.index(d)) for s, d in perm)
    exchanges.check_permutation(pairs, axis_extent(name))
    primitive = exchanges.ppermute_primitive
    return tree.map(
        lambda leaf: primitive.bind(_varying(leaf, (name,)), axis_name=name, perm=pairs), x
    )


def pshuffle(x: ArrayLike, axis_name: AxisName, perm: Sequence[int]) -> UserObject:
    """Permutes values along a mapped axis: position i gets the value of position `perm[i]`.

    Raises:
        ParameterError: if `perm` is no permutation of the positions.
    """
    size = axis_size(axis_name)
    if sorted(perm) != list(range(size)):
        raise ParameterError(
            f"pshuffle: {list(perm)} is no permutation of the positions 0 to {size - 1} of axis "
            f"{axis_name!r}.",
            "Use ppermute where some positions receive nothing.",
        )
    return ppermute(x, axis_name, list(zip(perm, range(size), strict=True)))


def all_gather(
    x: ArrayLike,
    axis_name: AxisName,
    *,
    axis_index_groups: UserObject = None,
    axis: int = 0,
    tiled: bool = False,
    to: str = "varying",
) -> UserObject:
    """Gathers the values of all positions along a mapped axis; every position gets all of them.

    Args:
        x: Array or tree of arrays.
        axis_name: Name of the axis, or a tuple of names; the last one varies fastest.
        axis_index_groups: Partition of the positions into groups, which gather separately.
        axis: Where the gathered values stand in the results.
        tiled: Whether they are concatenated along that axis instead of stacked along a new one.
        to: How the type says that the result varies along the axis: `"varying"`, though it is the
            same everywhere, `"invarying"` or `"reduced"`, which say that it is.

    Raises:
        ParameterError: for another word.
    """
    if to not in _WAYS_TO_VARY:
        raise ParameterError(
            f"all_gather: results do not vary in the way {to!r}.",
            f"Pass one of {', '.join(map(repr, _WAYS_TO_VARY))}.",
        )
    names, groups = _names(axis_name), _groups(axis_index_groups)

    def gather_leaf(leaf: UserObject) -> object:
        value = _varying(leaf, names)
        dimension = canonical_axis("all_gather", axis, value.ndim + (not tiled))
        for name in reversed(names):
            value = exchanges.all_gather_primitive.bind(
                value,
                axis_name=name,
                all_gather_dimension=dimension,
                axis_size=_extent(name, groups),
                tiled=tiled or name is not names[-1],
                axis_index_groups=groups,
            )
        return value if to == "varying" else _same_everywhere(value, names, groups)

    return tree.map(gather_leaf, x)


def _same_everywhere(x: Value, names: Sequence[object], groups: object) -> Value:
    """Marks a value as equal along axes in its type."""
    tracked = _tracked(names)
    if not tracked:
        return x
    if groups is not None:
        raise ParameterError(
            "all_gather: groups of positions gather different values, so that results vary.",
            "Leave `to` out.",
        )
    return collectives.pinvary(x, tracked)


def psum_scatter(
    x: ArrayLike,
    axis_name: AxisName,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: UserObject = None,
    tiled: bool = False,
) -> UserObject:
    """Sums over a mapped axis, and gives each position its part of the sum.

    Args:
        x: Array or tree of arrays.
        axis_name: Name of the axis, or a tuple of names; the last one varies fastest.
        scatter_dimension: The dimension that is distributed.
        axis_index_groups: Partition of the positions into groups, which are summed separately.
        tiled: Whether each position gets a slice of the dimension instead of one index, which drops
            the dimension. The dimension's extent must then be divisible by the axis's extent.

    Raises:
        ShapeError: if the extent of the dimension does not fit.
    """
    names, groups = _names(axis_name), _groups(axis_index_groups)

    def scatter_leaf(leaf: UserObject) -> object:
        value = _varying(leaf, names)
        dimension = canonical_axis("psum_scatter", scatter_dimension, value.ndim)
        for name in names:
            value = exchanges.reduce_scatter_primitive.bind(
                value,
                axis_name=name,
                scatter_dimension=dimension,
                axis_size=_extent(name, groups),
                tiled=tiled or name is not names[-1],
                axis_index_groups=groups,
            )
        return value

    return tree.map(scatter_leaf, x)


def all_to_all(
    x: ArrayLike,
    axis_name: AxisName,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: UserObject = None,
    tiled: bool = False,
) -> UserObject:
    """Exchanges parts: each position sends one part of its value to every position.

    Args:
        x: Array or tree of arrays.
        axis_name: Name of the axis, or a tuple of names; the last one varies fastest.
        split_axis: The axis of the value that is distributed.
        concat_axis: Where the parts received stand in the result.
        axis_index_groups: Partition of the positions into groups, which exchange separately.
        tiled: Whether parts are slices that are concatenated. Otherwise `split_axis` has the extent
            of the mapped axis and goes away, and the parts are stacked along a new axis.

    Raises:
        ShapeError: if the extent of `split_axis` does not fit.
    """
    names, groups = _names(axis_name), _groups(axis_index_groups)
    extents = [_extent(name, groups) for name in names]

    def exchange_leaf(leaf: UserObject) -> object:
        value = _varying(leaf, names)
        split = canonical_axis("all_to_all", split_axis, value.ndim)
        concat = canonical_axis("all_to_all", concat_axis, value.ndim)
        if tiled and len(names) == 1:
            return _exchange(value, split, concat, names[0], extents[0], groups)
        parts = _parts(value, split, prod(extents), tiled)
        shape = parts.shape[1:]
        # Parts as a grid: an exchange along each of its axes takes each to its place.
        parts = reshape(parts, (*extents, *shape))
        for position, (name, extent) in enumerate(zip(names, extents, strict=True)):
            parts = _exchange(parts, position, position, name, extent, groups)
        parts = moveaxis(reshape(parts, (prod(extents), *shape)), 0, concat)
        if not tiled:
            return parts
        merged = (*shape[:concat], prod(extents) * shape[concat], *shape[concat + 1 :])
        return reshape(parts, merged)

    return tree.map(exchange_leaf, x)


def _exchange(
    x: Value, split: int, concat: int, name: object, extent: int, groups: object
) -> Value:
    return exchanges.all_to_all_primitive.bind(
        x,
        split_axis=split,
        concat_axis=concat,
        axis_name=name,
        axis_size=extent,
        axis_index_groups=groups,
    )


def _parts(x: Value, split: int, number: int, tiled: bool) -> Value:
    """Returns the parts of a value, slices if `tiled`, along a new first axis."""
    extent = x.shape[split]
    if extent % number if tiled else extent != number:
        raise ShapeError(
            f"all_to_all: axis {split} of {x.aval} has extent {extent}, but {number} "
            f"{'slices' if tiled else 'elements'} exchange.",
            "Give the axis a multiple of that extent."
            if tiled
            else "Give the axis that extent, or use tiled=True to exchange slices.",
        )
    if not tiled:
        return moveaxis(x, split, 0)
    grid = (*x.shape[:split], number, extent // number, *x.shape[split + 1 :])
    return moveaxis(reshape(x, grid), split, 0)


def pswapaxes(
    x: ArrayLike, axis_name: AxisName, axis: int, *, axis_index_groups: object = None
) -> UserObject:
    """Exchanges a mapped axis with an axis of the values, which must have its extent."""
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def pcast(x: ArrayLike, axis_name: AxisName, *, to: str) -> UserObject:
    """Says how values vary along a mapped axis, which changes none of them.

    Args:
        x: Array or tree of arrays.
        axis_name: Name of the axis, or a tuple of names.
        to: `"varying"`, `"reduced"` or `"unreduced"`.

    A value that is equal at all positions may become one that varies. This conversion happens
    automatically where the value meets varying values. Its derivative is the sum over all
    positions.

    Raises:
        ParameterError: for another word, or if the value varies along the axis already.
        UnboundAxisNameError: if no axis of that name is mapped.

    >>> import axir, axir.numpy as jnp
    >>> axir.vmap(lambda x: pcast(x, "i", to="varying"), axis_name="i")(jnp.arange(2))
    Array([0, 1], dtype=int32)
    """
    names = _names(axis_name)
    if to not in ("varying", "reduced", "unreduced"):
        raise ParameterError(
            f"pcast: values do not vary in the way {to!r}.",
            "Pass 'varying', 'reduced' or 'unreduced'.",
        )
    if to != "varying":
        return tree.map(as_value, x)

    def cast(leaf: object) -> Value:
        value = as_value(leaf)
        known = [name for name in _tracked(names) if name in value.type.varying]
        if known:
            raise ParameterError(
                f"pcast: a value of type {value.type} varies along "
                f"{', '.join(map(repr, known))} already.",
                "Name the axes along which it is the same everywhere.",
            )
        return _varying(value, names)

    return tree.map(cast, x)
