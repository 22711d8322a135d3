"""Permutations, and choices from an array."""

from __future__ import annotations

import math
from collections.abc import Sequence

from axir._devices.placement import lies_where_told
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import Array, ArrayLike, ConcreteArray
from axir.dialect.core.errors import DTypeError, ParameterError, ShapeError
from axir.dialect.ops.elementwise.arithmetic import add, min, mul, sub
from axir.dialect.ops.elementwise.comparison import and_, le, lt, select_n
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.elementwise.family import full
from axir.dialect.ops.elementwise.transcendental import log
from axir.dialect.ops.indexing.gather import GatherDimensionNumbers, gather
from axir.dialect.ops.indexing.static_slicing import index_in_dim, slice_in_dim
from axir.dialect.ops.random.threefry import count_up
from axir.dialect.ops.reductions.cumulative import cumsum
from axir.dialect.ops.shape.constants import iota
from axir.dialect.ops.shape.movement import canonical_axis
from axir.dialect.ops.shape.rearranging import reshape
from axir.dialect.ops.sorting.sort import sort_key_val, top_k
from axir.dialect.program.rules import Value

from ._gumbel import draw_gumbel
from ._keys import split_pair
from ._parameters import check_key, check_shape, constant, to_value
from ._ranges import draw_uniform, randint, random_bits


@lies_where_told
def permutation(
    key: object,
    x: UserObject,
    axis: int = 0,
    independent: bool = False,
    *,
    out_sharding: object = None,
) -> Value:
    """Permutes an array along an axis, or the integers below a number.

    Args:
        key: The key.
        x: An array, or an integer n for the integers 0 to n - 1.
        axis: The axis along which the array is permuted.
        independent: Whether each line along the axis is permuted on its own; otherwise all of them
            are permuted alike.
        out_sharding: Placement of the result: a sharding, or a `PartitionSpec`.

    Raises:
        DTypeError: for a scalar that is not an integer.
        AxisError: if the axis does not exist.

    >>> from axir import random
    >>> random.permutation(random.PRNGKey(0), 5)
    Array([1, 0, 4, 3, 2], dtype=int32)
    """
    key = check_key("permutation", key)
    if type(x) is not int:
        x = to_value("permutation", "x", x)
        if not x.ndim:
            x = _whole_number("permutation", x)
    if type(x) is int:
        canonical_axis("random.permutation", axis, 1)
        return _shuffle(key, _integers_below(x, key), 0)
    axis = canonical_axis("random.permutation", axis, x.ndim)
    if independent or x.ndim == 1:
        return _shuffle(key, x, axis)
    order = _shuffle(key, _integers_below(x.shape[axis], key), 0)
    return _take(x, order, axis)


def _whole_number(name: str, x: Value) -> int:
    if not dtypes.is_integer(x.dtype):
        raise DTypeError(
            f"random.{name}: expected an integer or an array of at least one axis, not {x.type}."
        )
    return int(x)


def _integers_below(count: int, key: Value) -> Value:
    dtype = dtypes.canonicalize_dtype(int)
    if type(key) is ConcreteArray or count <= 0:
        return iota(dtype, sorted((0, count))[1])
    return count_up(key, dtype, count)


def _shuffle(key: Value, x: Value, axis: int) -> Value:
    """Sorts by random words, often enough for ties among them not to matter.

    Words of 32 bits collide; after three rounds for each factor of 2**32 in the size, all orders
    are as good as equally likely.
    """
    rounds = math.ceil(3 * math.log(x.size or 1) / math.log(2**32 - 1))
    for _ in range(rounds):
        key, subkey = split_pair(key)
        _, x = sort_key_val(random_bits(subkey, 32, x.shape), x, axis)
    return x


def _take(x: Value, indices: Value, axis: int) -> Value:
    """Reads an array at valid indices along an axis, which their shape replaces."""
    count = indices.ndim
    offsets = (*range(axis), *range(axis + count, x.ndim - 1 + count))
    sizes = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    return gather(
        x,
        reshape(indices, (*indices.shape, 1)),
        GatherDimensionNumbers(offsets, (axis,), (axis,)),
        sizes,
        mode="promise_in_bounds",
    )


def choice(
    key: UserObject,
    a: UserObject,
    shape: Sequence[int] = (),
    replace: bool = True,
    p: UserObject = None,
    axis: int = 0,
    mode: str | None = None,
) -> Value:
    """Draws entries of an array, or integers below a number.

    Args:
        key: The key.
        a: An array, or an integer n for the integers 0 to n - 1.
        shape: Shape of the draws, which replaces the axis of the array.
        replace: Whether an entry can be drawn more than once.
        p: Probabilities of the entries, a float vector; by default all are equal. Without
            replacement, there must be as many positive ones as draws.
        axis: The axis along which the entries lie.
        mode: How far the tail of the Gumbel noise reaches, which serves to draw with p and without
            replacement: see `gumbel`.

    Raises:
        ParameterError: if there is nothing to draw from, or fewer entries than draws without
            replacement, or p has another size.
        ShapeError: if the shape is not a sequence.
        AxisError: if the axis does not exist.

    >>> from axir import random
    >>> random.choice(random.PRNGKey(0), 10, (3,), replace=False)
    Array([2, 7, 9], dtype=int32)
    """
    key = check_key("choice", key)
    if type(shape) is int:
        raise ShapeError(
            f"random.choice: shape must be a sequence of integers, not {shape}.",
            f"Write shape=({shape},).",
        )
    extents = check_shape("choice", shape)
    draws = math.prod(extents)
    if type(a) is not int:
        a = to_value("choice", "a", a)
        if not a.ndim:
            a = _whole_number("choice", a)
    is_range = type(a) is int
    axis = 0 if is_range else canonical_axis("random.choice", axis, a.ndim)
    count = a if is_range else a.shape[axis]
    if not draws:
        return _nothing(a, extents)
    _check_counts(count, draws, replace)
    if p is None and not replace:
        permuted = permutation(key, a, axis)
        return _reshaped(slice_in_dim(permuted, 0, draws, 1, axis), a, extents, axis)
    if p is None:
        indices = randint(key, extents, 0, count)
    else:
        indices = _weighted(key, _check_weights(p, count), extents, replace, mode)
    return indices if is_range else _take(a, indices, axis)


def _nothing(a: UserObject, shape: tuple[int, ...]) -> Array:
    dtype = dtypes.canonicalize_dtype(int) if type(a) is int else a.dtype
    return full(shape, 0, dtype)


def _check_counts(count: int, draws: int, replace: bool) -> None:
    if count <= 0:
        raise ParameterError(
            f"random.choice: there are {count} entries to draw {draws} from.",
            "Pass a positive integer or an array that is not empty along the axis.",
        )
    if not replace and draws > count:
        raise ParameterError(
            f"random.choice: {draws} draws without replacement from {count} entries.",
            "Draw fewer, or pass replace=True.",
        )


def _check_weights(p: ArrayLike, count: int) -> Value:
    p = to_value("choice", "p", p)
    if dtypes.is_complex(p.dtype):
        raise DTypeError(f"random.choice: probabilities p must be real, not {p.type}.")
    if p.shape != (count,):
        raise ParameterError(
            f"random.choice: probabilities p have shape {p.shape}, but there are {count} entries.",
            f"Pass a vector of shape ({count},).",
        )
    dtype = p.dtype if dtypes.is_float(p.dtype) else dtypes.canonicalize_dtype(float)
    return convert_element_type(p, dtype)


def _reshaped(drawn: Value, a: UserObject, shape: tuple[int, ...], axis: int) -> Value:
    target = shape if type(a) is int else (*a.shape[:axis], *shape, *a.shape[axis + 1 :])
    return drawn if drawn.shape == target else reshape(drawn, target)


def _weighted(
    key: Value, p: Value, shape: tuple[int, ...], replace: bool, mode: str | None
) -> Value:
    """Draws indices with probabilities."""
    dtype = dtypes.canonicalize_dtype(int)
    if not replace:
        noise = draw_gumbel("choice", key, p.shape, p.dtype, mode)
        _, indices = top_k(add(noise, log(p)), math.prod(shape))
        return convert_element_type(reshape(indices, shape), dtype)
    sums = cumsum(p, 0)
    total = index_in_dim(sums, -1, keepdims=False)
    u = draw_uniform("choice", key, shape, p.dtype)
    return convert_element_type(_search(sums, mul(total, sub(constant(1, p.dtype), u))), dtype)


def _search(increasing: Value, x: Value) -> Value:
    """Counts the elements below each number, adding one binary digit of the count at a time."""
    size = increasing.shape[0]
    found = full(x.shape, 0, dtypes.int32)
    for digit in reversed(range(size.bit_length())):
        more = add(found, 1 << digit)
        last = _take(increasing, min(sub(more, 1), constant(size - 1, dtypes.int32)), 0)
        found = select_n(and_(le(more, size), lt(last, x)), found, more)
    return found


def shuffle(key: ArrayLike, x: ArrayLike, axis: int = 0) -> Value:
    """Returns an array with the vectors along an axis shuffled independently.

    Deprecated: `permutation` with `independent=True` is the newer name.

    Args:
        key: The key.
        x: The array.
        axis: Along which.

    >>> from axir import random
    >>> import axir.numpy as jnp
    >>> random.shuffle(random.key(0), jnp.arange(4)).sum()
    Array(6, dtype=int32)
    """
    return permutation(key, to_value("shuffle", "x", x), axis, independent=True)
