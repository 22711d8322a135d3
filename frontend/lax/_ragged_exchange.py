"""Collectives of other forms: slices of different lengths exchanged, and calls in two steps."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import axir.numpy as jnp
from axir._trees import tree
from axir._trees.registration import register_pytree_node
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import ShapeError
from axir.dialect.ops.elementwise.family import as_value
from axir.dialect.program.rules import Value

from .parallel import AxisName, all_gather, axis_index, axis_size, psum_scatter


def ragged_all_to_all(
    operand: ArrayLike,
    output: ArrayLike,
    input_offsets: ArrayLike,
    send_sizes: ArrayLike,
    output_offsets: ArrayLike,
    recv_sizes: ArrayLike,
    *,
    axis_name: AxisName,
    axis_index_groups: object = None,
) -> Value:
    """Exchanges slices of different lengths: each position sends some to every position.

    With n positions and k slices at each, the first k / n slices go to the first position, the next
    ones to the second, and so on.

    Args:
        operand: The array to send; slices are along the first axis.
        output: The array into which received slices are written; its other extents equal the
            operand's.
        input_offsets: Where in the operand each of the k slices begins.
        send_sizes: Their lengths.
        output_offsets: Where each of the slices sent begins in the output of its receiver.
        recv_sizes: Lengths of the slices that are received; they must agree with the senders'
            sizes.
        axis_name: Name of the axis.
        axis_index_groups: Partition of the positions into groups, which exchange separately.

    Raises:
        ShapeError: if offsets and sizes are no vectors of one length, which n divides, or operand
            and output do not fit.

    >>> import axir, axir.numpy as jnp
    >>> def exchange(x, size):
    ...     zero = jnp.zeros(2, int)
    ...     sizes = jnp.array([1, 1]) * size
    ...     at = jnp.full(2, axir.lax.axis_index("i") * 2)
    ...     return ragged_all_to_all(x, jnp.zeros(4), zero, sizes, at, sizes, axis_name="i")
    >>> x = jnp.array([[1.0, 2.0], [3.0, 4.0]])
    >>> axir.vmap(exchange, axis_name="i")(x, jnp.array([2, 1]))
    Array([[1., 2., 3., 0.],
           [1., 2., 3., 0.]], dtype=float32)
    """
    operand, result = as_value(operand), as_value(output)
    vectors = [as_value(x) for x in (input_offsets, send_sizes, output_offsets, recv_sizes)]
    receivers = _groups_of(axis_name, axis_index_groups)
    extent = len(receivers[0])
    _check(operand, result, vectors, extent)
    count = vectors[0].size // extent
    gathered = [
        all_gather(x, axis_name, axis_index_groups=axis_index_groups)
        for x in (operand, *vectors[:3])
    ]
    first = count * _place(axis_name, receivers)
    rows = jnp.arange(result.shape[0])
    for sender in range(extent):
        source, begins, lengths, targets = (x[sender] for x in gathered)
        for i in range(count):
            begin, length, target = (x[first + i] for x in (begins, lengths, targets))
            positions = jnp.clip(rows - target + begin, 0, max(operand.shape[0] - 1, 0))
            is_inside = (rows >= target) & (rows < target + length)
            mask = jnp.reshape(is_inside, (-1, *[1] * (result.ndim - 1)))
            if operand.shape[0]:
                result = jnp.where(mask, jnp.take(source, positions, axis=0), result)
    return result


def _groups_of(axis_name: AxisName, groups: UserObject) -> list[list[int]]:
    return [list(range(axis_size(axis_name)))] if groups is None else [list(g) for g in groups]


def _place(axis_name: AxisName, groups: list[list[int]]) -> Value:
    """Returns the place of a position in its group."""
    places = {position: place for group in groups for place, position in enumerate(group)}
    table = jnp.array([places[position] for position in range(len(places))])
    return table[axis_index(axis_name)]


def _check(operand: Value, output: Value, vectors: list[Value], extent: int) -> None:
    if operand.ndim < 1 or operand.shape[1:] != output.shape[1:] or operand.dtype != output.dtype:
        raise ShapeError(
            "ragged_all_to_all: operand and output differ in more than their first extent: "
            f"{operand.aval} and {output.aval}."
        )
    shapes = {x.shape for x in vectors}
    if len(shapes) > 1 or vectors[0].ndim != 1 or vectors[0].size % extent:
        raise ShapeError(
            "ragged_all_to_all: offsets and sizes must be vectors of one length that is a multiple "
            f"of {extent}, the number of positions, but they have the shapes "
            f"{', '.join(str(x.shape) for x in vectors)}."
        )


# Collectives in two steps -------------------------------------------------------------------------


@dataclass(frozen=True)
class Future:
    """The future result of a started collective; `done()` waits for it."""

    _value: Value

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the result."""
        return self._value.shape

    @property
    def dtype(self) -> UserObject:
        """The dtype of the result."""
        return self._value.dtype

    def done(self) -> Value:
        """Returns the result."""
        return self._value


register_pytree_node(Future, lambda future: ((future._value,), None), lambda _, v: Future(*v))


def psum_scatter_start(
    x: ArrayLike,
    axis_name: Hashable,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: object = None,
    tiled: bool = False,
) -> UserObject:
    """Begins a `psum_scatter`, with its arguments.

    Returns:
        For each array of `x` a `Future`; its `done()` returns the array of the result.

    >>> import axir, axir.numpy as jnp
    >>> begun = lambda x: psum_scatter_start(x, "i").done()
    >>> axir.vmap(begun, axis_name="i")(jnp.array([[1, 2], [3, 4]]))
    Array([4, 6], dtype=int32)
    """
    results = psum_scatter(
        x,
        axis_name,
        scatter_dimension=scatter_dimension,
        axis_index_groups=axis_index_groups,
        tiled=tiled,
    )
    return tree.map(Future, results)
