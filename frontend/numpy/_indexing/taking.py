"""Elements at given positions along an axis: `take`, `take_along_axis`."""

from __future__ import annotations

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import ArrayLike, ConcreteArray
from axir.dialect.core.errors import DTypeError, ShapeError
from axir.dialect.core.places import common_place, place_of_result
from axir.dialect.core.state import state
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.shape.broadcasting import broadcast_in_dim
from axir.dialect.ops.shape.constants import broadcasted_iota
from axir.dialect.ops.shape.rearranging import reshape
from axir.dialect.program.rules import Value
from axir.numpy._arguments.checks import canonical_axis, reject_out
from axir.numpy._arguments.promotion import (
    array_argument,
    broadcast_shape,
    broadcast_value,
    constant,
)
from axir.numpy._elementwise.arithmetic import remainder

from .indexing import CLIP, FILL, PROMISE_IN_BOUNDS, gather_mode, read, read_along

__all__ = ["take", "take_along_axis"]


# Modes of `take` that differ from NumPy's error only where something lies out of bounds.
_RAISING = (None, FILL, PROMISE_IN_BOUNDS)


def integer_positions(name: str, indices: ArrayLike, *, takes_bools: bool = False) -> Value:
    """Returns the argument `indices` of a function as an array of integers.

    Args:
        name: The function, for errors.
        indices: The argument.
        takes_bools: Whether False is 0 and True 1, and an array of nothing may have any dtype.

    Raises:
        DTypeError: unless it holds integers.
    """
    indices = array_argument(name, indices, 1)
    if takes_bools and (indices.dtype == dtypes.bool_ or not indices.size):
        return convert_element_type(indices, dtypes.int32)
    if dtypes.kind(indices.dtype) not in "iu":
        raise DTypeError(
            f"jnp.{name}: indices must be integers, not {indices.dtype}.",
            "Cast them with x.astype(int); masks go between brackets: x[mask].",
        )
    return indices


def take(
    a: object,
    indices: ArrayLike,
    axis: int | None = None,
    out: None = None,
    mode: str | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: UserObject = None,
) -> Value:
    """Returns the entries along an axis at given positions.

    Args:
        a: The array.
        indices: Integers of any shape, which takes the place of the axis; False is 0, True is 1.
        axis: The axis; without it `a` is flattened first.
        out: Must be None.
        mode: Treatment of positions out of bounds: 'fill' (the default), 'clip', 'wrap' (modulo the
            extent) or 'promise_in_bounds'. With 'fill' and 'promise_in_bounds' negative positions
            count from the end.
        unique_indices: The promise that no position occurs twice.
        indices_are_sorted: The promise that positions increase.
        fill_value: The value for 'fill'; by default NaN, the least signed or the largest unsigned
            integer.

    Raises:
        DTypeError: unless the indices are integers.

    >>> import axir.numpy as jnp
    >>> jnp.take(jnp.array([1.0, 2.0, 3.0]), jnp.array([2, 0, 9]))
    Array([ 3.,  1., nan], dtype=float32)
    """
    reject_out("take", out)
    a = array_argument("take", a)
    positions = integer_positions("take", indices, takes_bools=True)
    if (
        type(a) is ConcreteArray
        and type(positions) is ConcreteArray
        and a.remote_device is None
        and mode in _RAISING
        and not state.keeps_origins
    ):
        try:
            return _take_known(a, positions, axis)
        except (IndexError, TypeError):  # something lies out of bounds
            pass
    if axis is None:
        a, axis = reshape(a, (a.size,)), 0
    axis = canonical_axis("take", axis, a.ndim)
    if mode == "wrap":
        positions = remainder(positions, max(a.shape[axis], 1))
        mode = "promise_in_bounds"
    chosen = gather_mode("take", mode)
    return read(
        a,
        (*[slice(None)] * axis, positions),
        mode=chosen,
        fill_value=fill_value,
        unique_indices=unique_indices,
        indices_are_sorted=indices_are_sorted,
        wrap_negative_indices=mode != CLIP,
    )


def _take_known(a: ConcreteArray, positions: ConcreteArray, axis: int | None) -> ConcreteArray:
    part = a.host().take(positions.host(), axis)
    part_type = ShapedArray(part.shape, a.type.dtype, a.type.weak_type)
    place = place_of_result(common_place("take", (a, positions)), (a,), part_type.shape)
    return ConcreteArray(part_type, np.asarray(part), None, place)


def take_along_axis(
    arr: object,
    indices: ArrayLike,
    axis: int | None = -1,
    mode: str | None = None,
    fill_value: UserObject = None,
    *,
    wrap_negative_indices: bool = True,
) -> Value:
    """Returns entries along an axis at positions given for each place along the others.

    Args:
        arr: The array.
        indices: Integers, of as many axes; the other axes broadcast.
        axis: The axis; None flattens `arr` first.
        mode: Treatment of positions out of bounds: 'fill' (default), 'clip' or 'promise_in_bounds'.
        fill_value: What 'fill' takes.
        wrap_negative_indices: Whether negative positions count from the end; else they are out of
            bounds.

    Raises:
        DTypeError: unless the indices are integers.
        ShapeError: if the numbers of axes differ.

    >>> import axir.numpy as jnp
    >>> x = jnp.array([[3, 1, 2]])
    >>> jnp.take_along_axis(x, jnp.argsort(x), axis=1)
    Array([[1, 2, 3]], dtype=int32)
    """
    arr = array_argument("take_along_axis", arr)
    positions = integer_positions("take_along_axis", indices)
    if axis is None:
        arr, axis = reshape(arr, (arr.size,)), 0
    if arr.ndim != positions.ndim:
        raise ShapeError(
            f"jnp.take_along_axis: the array {arr.type} and the indices {positions.type} must have "
            "as many axes."
        )
    axis = canonical_axis("take_along_axis", axis, arr.ndim)
    others = [(*shape[:axis], 1, *shape[axis + 1 :]) for shape in (arr.shape, positions.shape)]
    if others[0] == others[1] and arr.shape[axis]:
        return read_along(arr, positions, axis, mode, fill_value, wrap_negative_indices)
    common = broadcast_shape("take_along_axis", others)
    shape = (*common[:axis], positions.shape[axis], *common[axis + 1 :])
    index: list[UserObject] = []
    for place in range(len(shape)):
        if place == axis:
            index.append(broadcast_value(positions, shape))
        elif arr.shape[place] == 1:
            index.append(broadcast_in_dim(constant(0, dtypes.int32), shape, ()))
        else:
            index.append(broadcasted_iota(dtypes.int32, shape, place))
    return read(
        arr,
        tuple(index),
        mode=gather_mode("take_along_axis", mode),
        fill_value=fill_value,
        wrap_negative_indices=wrap_negative_indices,
    )
