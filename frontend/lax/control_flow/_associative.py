"""`associative_scan`: all prefix sums under an associative function, in logarithmic depth."""

from __future__ import annotations

from collections.abc import Callable

from axir._arguments.wrapping import boundary
from axir._trees import tree
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.errors import ParameterError, ShapeError, TreeError
from axir.dialect.core.symbolic_dims import is_symbolic_dim
from axir.dialect.ops.indexing.static_slicing import slice as static_slice
from axir.dialect.ops.reductions.folding import scan_in_order
from axir.dialect.ops.shape.broadcasting import expand_dims
from axir.dialect.ops.shape.concatenation import concatenate
from axir.dialect.ops.shape.movement import canonical_axis
from axir.dialect.ops.shape.rearranging import reshape, rev

from ._body_tracing import check_body, flatten_values


@boundary
def associative_scan(
    fn: Callable[[UserObject, UserObject], UserObject],
    elems: object,
    reverse: bool = False,
    axis: int = 0,
) -> UserObject:
    """Combines the elements along an axis up to each place: x0, x0 and x1, x0 to x2, and so on.

    Works on halves of the elements at a time, so the number of steps grows with the logarithm of
    the number of elements (Blelloch, "Prefix sums and their applications", 1990).

    Args:
        fn: Associative function of two trees like `elems`. Their arrays hold several elements along
            the axis; the function combines them position by position.
        elems: A tree of arrays of equal extent along the axis.
        reverse: Whether to combine from the end.
        axis: Along which the elements lie.

    Raises:
        AxisError: if an array does not have the axis.
        ShapeError: if the extents differ.
        TreeError: if `fn` returns another structure than it takes.

    >>> import axir.numpy as jnp
    >>> from axir import lax
    >>> lax.associative_scan(jnp.add, jnp.arange(5)).tolist()
    [0, 1, 3, 6, 10]
    """
    check_body(fn, "associative_scan: fn")
    values, structure = flatten_values(elems, "associative_scan")
    if not values:
        raise ParameterError("associative_scan: elems holds no arrays.", "Pass at least one array.")
    axes = [canonical_axis("associative_scan", axis, x.ndim) for x in values]
    extents = {x.shape[a] for x, a in zip(values, axes, strict=True)}
    if len(extents) > 1:
        raise ShapeError(
            f"associative_scan: the arrays in elems differ in extent along axis {axis}: "
            f"{sorted(extents)}.",
            "Scan over arrays of one length.",
        )

    def combine(first: list[object], second: list[object]) -> list[UserObject]:
        result = fn(structure.unflatten(first), structure.unflatten(second))
        leaves, found = tree.flatten(result)
        if found != structure:
            raise TreeError(
                f"associative_scan: fn returns {found}, but takes {structure}.",
                "Return the nesting of containers that it takes.",
            )
        return leaves

    if reverse:
        values = [rev(x, (a,)) for x, a in zip(values, axes, strict=True)]
    results = _prefixes(combine, values, axes)
    if reverse:
        results = [rev(x, (a,)) for x, a in zip(results, axes, strict=True)]
    return structure.unflatten(results)


def _prefixes(
    combine: Callable[..., list[UserObject]], values: list[UserObject], axes: list[int]
) -> list[UserObject]:
    count = values[0].shape[axes[0]]
    if is_symbolic_dim(count):
        return scan_in_order(combine, values, axes)
    if count < 2:
        return values
    pairs = combine(_part(values, axes, 0, count - 1, 2), _part(values, axes, 1, count, 2))
    odd = _prefixes(combine, pairs, axes)
    # Places 1, 3, 5 … are done; each even place after the first is one element further.
    before = odd if count % 2 else _part(odd, axes, 0, count // 2 - 1, 1)
    even = _part(values, axes, 0, 1, 1)
    if count > 2:
        further = combine(before, _part(values, axes, 2, count, 2))
        even = [concatenate(pair, a) for *pair, a in zip(even, further, axes, strict=True)]
    return [_interleaved(e, o, a) for e, o, a in zip(even, odd, axes, strict=True)]


def _part(
    values: list[UserObject], axes: list[int], start: int, stop: int, step: int
) -> list[UserObject]:
    parts = []
    for x, axis in zip(values, axes, strict=True):
        starts, limits, strides = [0] * x.ndim, list(x.shape), [1] * x.ndim
        starts[axis], limits[axis], strides[axis] = start, stop, step
        parts.append(static_slice(x, starts, limits, strides))
    return parts


def _interleaved(even: UserObject, odd: UserObject, axis: int) -> UserObject:
    count = odd.shape[axis]
    [whole] = _part([even], [axis], 0, count, 1)
    pairs = concatenate([expand_dims(x, (axis + 1,)) for x in (whole, odd)], axis + 1)
    shape = (*odd.shape[:axis], 2 * count, *odd.shape[axis + 1 :])
    result = reshape(pairs, shape)
    if even.shape[axis] == count:
        return result
    [last] = _part([even], [axis], count, count + 1, 1)
    return concatenate([result, last], axis)
