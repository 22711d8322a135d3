"""Values put into arrays, and chosen among them, by position: `put`, `put_along_axis`, `choose`.

Arrays are immutable, so functions that work in place in NumPy return the updated array here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import (
    ImmutableArrayError,
    OutOfBoundsError,
    ParameterError,
    ShapeError,
)
from axir.dialect.ops.shape.rearranging import reshape
from axir.dialect.program.rules import Value
from axir.numpy._arguments.checks import canonical_axis, reject_out
from axir.numpy._arguments.promotion import (
    array_argument,
    broadcast_shape,
    broadcast_value,
    operands,
    promote_arguments,
)
from axir.numpy._elementwise.arithmetic import remainder
from axir.numpy._shape.joining import stack, tile

from .index_update import update
from .selection import clip, concrete_host
from .taking import integer_positions

__all__ = ["choose", "put", "put_along_axis"]


def _reject_in_place(name: str, inplace: bool) -> None:
    if inplace:
        raise ImmutableArrayError(
            f"jnp.{name} cannot work in place, because arrays are immutable.",
            f"Write a = jnp.{name}(a, ..., inplace=False).",
        )


def put(
    a: object, ind: UserObject, v: ArrayLike, mode: str | None = None, *, inplace: bool = True
) -> Value:
    """Returns a copy of an array with values put at positions of the flattened array.

    Args:
        a: The array.
        ind: Positions, integers of any shape (False is 0, True is 1); negative ones count from the
            end, but with 'clip' they are out of bounds.
        v: Values, repeated as often as needed.
        mode: For positions out of bounds: None and 'clip' move them inside, 'wrap' takes them
            modulo the size.
        inplace: Must be False.

    Raises:
        ImmutableArrayError: unless `inplace` is False.
        ParameterError: for another mode.

    >>> import axir.numpy as jnp
    >>> jnp.put(jnp.zeros(4), jnp.array([0, 2]), jnp.array([7.0, 8.0]), inplace=False)
    Array([7., 0., 8., 0.], dtype=float32)
    """
    _reject_in_place("put", inplace)
    a = array_argument("put", a, 0)
    positions = integer_positions("put", ind, takes_bools=True)
    values = array_argument("put", v, 2)
    if not positions.size or not values.size or not a.size:
        return a
    positions = reshape(positions, (positions.size,))
    if mode == "wrap":
        positions = remainder(positions, a.size)
    elif mode not in (None, "clip"):
        raise ParameterError(f"jnp.put: mode {mode!r} is none of None, 'clip' and 'wrap'.")
    flat = reshape(values, (values.size,))
    count = positions.shape[0]
    flat = tile(flat, -(-count // flat.shape[0]))[:count]
    updated = update(
        reshape(a, (a.size,)),
        positions,
        "set",
        flat,
        mode="clip",
        wrap_negative_indices=mode != "clip",
    )
    return reshape(updated, a.shape)


def put_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    values: UserObject,
    axis: int | None,
    inplace: bool = True,
    *,
    mode: object = None,
) -> Value:
    """Returns a copy of an array with values put at positions along an axis.

    Args:
        arr: The array.
        indices: Positions along the axis. The other axes broadcast.
        values: Broadcast to the shape of the positions.
        axis: The axis; None is the flattened array.
        inplace: Must be False.
        mode: For positions out of bounds: 'drop' (the default), 'clip' or 'promise_in_bounds'.

    Raises:
        ImmutableArrayError: unless `inplace` is False.
        ShapeError: if the numbers of axes differ.

    >>> import axir.numpy as jnp
    >>> x = jnp.array([[10, 30, 20], [60, 40, 50]])
    >>> where = jnp.argmax(x, axis=1, keepdims=True)
    >>> jnp.put_along_axis(x, where, 99, axis=1, inplace=False).tolist()
    [[10, 99, 20], [99, 40, 50]]
    """
    name = "put_along_axis"
    _reject_in_place(name, inplace)
    given, positions = array_argument(name, arr, 0), integer_positions(name, indices)
    array = reshape(given, (given.size,)) if axis is None else given
    if array.ndim != positions.ndim:
        raise ShapeError(
            f"jnp.{name}: the array {array.type} and the indices {positions.type} must have as "
            "many axes."
        )
    axis = canonical_axis(name, 0 if axis is None else axis, array.ndim)
    others = [(*shape[:axis], 1, *shape[axis + 1 :]) for shape in (array.shape, positions.shape)]
    common = broadcast_shape(name, others)
    shape = (*common[:axis], positions.shape[axis], *common[axis + 1 :])
    grid: list[UserObject] = list(np.indices(shape, np.int32, sparse=True))
    grid[axis] = broadcast_value(positions, shape)
    chosen = "drop" if mode is None else mode
    return reshape(update(array, tuple(grid), "set", values, mode=chosen), given.shape)


def choose(a: ArrayLike, choices: object, out: None = None, mode: str = "raise") -> Value:
    """Chooses each element from one of several arrays, by the array's number.

    Args:
        a: The numbers of the arrays.
        choices: The arrays, as a sequence or along the first axis of one; all broadcast.
        out: Must be None.
        mode: For numbers out of bounds: 'raise', which needs known numbers, 'wrap' or 'clip'.

    Raises:
        OutOfBoundsError: for numbers out of bounds with mode 'raise'.
        ConcretizationTypeError: with mode 'raise', while only the type of `a` is known.

    >>> import axir.numpy as jnp
    >>> jnp.choose(jnp.array([1, 0]), [jnp.array([1, 2]), jnp.array([10, 20])])
    Array([10,  2], dtype=int32)
    """
    reject_out("choose", out)
    numbers = integer_positions("choose", a)
    arrays = promote_arguments("choose", *operands("choose", list(_sequence(choices))))
    if not arrays:
        raise ParameterError("jnp.choose: there is nothing to choose from.")
    count = len(arrays)
    if mode == "raise":
        host = concrete_host(
            numbers, "to check that it is in bounds (pass mode='clip' or mode='wrap')"
        )
        if ((host < 0) | (host >= count)).any():
            raise OutOfBoundsError(
                f"jnp.choose: numbers must lie in [0, {count}).", "Pass mode='clip' or 'wrap'."
            )
    elif mode == "wrap":
        numbers = remainder(numbers, count)
    elif mode == "clip":
        numbers = clip(numbers, 0, count - 1)
    else:
        raise ParameterError(f"jnp.choose: mode {mode!r} is none of 'raise', 'wrap' and 'clip'.")
    shape = broadcast_shape("choose", [numbers.shape, *[x.shape for x in arrays]])
    stacked = stack([broadcast_value(x, shape) for x in arrays])
    index = (broadcast_value(numbers, shape), *np.indices(shape, np.int32, sparse=True))
    return stacked[index]


def _sequence(choices: object) -> Sequence[object]:
    if isinstance(choices, (list, tuple)):
        return choices
    choices = array_argument("choose", choices, 1)
    return [choices[i] for i in range(choices.shape[0])]
