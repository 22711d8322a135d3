"""Random bits, and uniform numbers: floats in an interval, integers in a range."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache

import ml_dtypes
import numpy as np

from axir._devices.placement import lies_where_told
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import DTypeLike, UserObject
from axir.dialect.core.array import ArrayLike, ConcreteArray, as_array
from axir.dialect.core.config import config
from axir.dialect.core.errors import DTypeError, ParameterError, ShapeError
from axir.dialect.core.places import place_of_part, settled
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.arithmetic import add, clamp, max, mul, rem, sub
from axir.dialect.ops.elementwise.comparison import and_, gt, le, or_, select_n, shift_right_logical
from axir.dialect.ops.elementwise.conversion import bitcast_convert_type, convert_element_type
from axir.dialect.ops.random import random_keys, threefry
from axir.dialect.ops.shape.broadcasting import broadcast_shapes
from axir.dialect.ops.shape.rearranging import reshape
from axir.dialect.program.key_reuse import use
from axir.dialect.program.rules import Value

from ._keys import split_pair
from ._parameters import (
    check_key,
    check_shape,
    float_dtype,
    integer_dtype,
    parameter,
    result_shape,
    spread,
    to_value,
)


@lies_where_told
def bits(
    key: ArrayLike,
    shape: Sequence[int] = (),
    dtype: DTypeLike = None,
    *,
    out_sharding: object = None,
) -> Value:
    """Draws uniformly distributed bits, as unsigned integers.

    Args:
        key: The key.
        shape: Shape of the result.
        dtype: uint8, uint16, uint32 or uint64; by default uint32, and uint64 with
            `jax_enable_x64`.
        out_sharding: Placement of the result: a sharding, or a `PartitionSpec`.

    Raises:
        ParameterError: for a dtype that is not unsigned.

    >>> from axir import random
    >>> random.bits(random.key(0), (2,), "uint8")
    Array([89,  1], dtype=uint8)
    """
    key = check_key("bits", key)
    extents = check_shape("bits", shape)
    canonical = dtypes.canonicalize_dtype(np.uint64 if dtype is None else dtype)
    if not dtypes.is_unsigned(canonical):
        raise ParameterError(
            f"random.bits: dtype must be an unsigned integer type, not {canonical}.",
            "Pass uint8, uint16, uint32 or uint64.",
        )
    return random_bits(key, canonical.itemsize * 8, extents)


def random_bits(key: Value, bit_width: int, shape: tuple[int, ...]) -> Value:
    """Draws unsigned integers of 8, 16, 32 or 64 bits with a checked key."""
    if config.jax_debug_key_reuse:
        use(key)
    return random_keys.random_bits.bind(
        key,
        bit_width=bit_width,
        shape=shape,
        partitionable=config.jax_threefry_partitionable,
    )


def wrap(host: object, like: Value) -> ConcreteArray:
    """Wraps samples computed by NumPy; they are on the key's device."""
    host = np.asarray(host)
    device = place_of_part(like, host.shape) if type(like) is ConcreteArray else None
    made = ConcreteArray(ShapedArray(host.shape, host.dtype), host, None, device)
    return made if device is not None else settled(made)


# Uniform numbers ----------------------------------------------------------------------------------


@lies_where_told
def uniform(
    key: ArrayLike,
    shape: Sequence[int] = (),
    dtype: DTypeLike = None,
    minval: ArrayLike = 0.0,
    maxval: ArrayLike = 1.0,
    *,
    out_sharding: object = None,
) -> Value:
    """Draws floats uniformly from the interval `[minval, maxval)`.

    Args:
        key: The key.
        shape: Shape of the result.
        dtype: Float dtype of the result; float32 by default, float64 with `jax_enable_x64`.
        minval: Lower bound, a number or an array that broadcasts to the shape.
        maxval: Upper bound.
        out_sharding: Placement of the result: a sharding, or a `PartitionSpec`.

    Raises:
        ParameterError: for a dtype that is not a float type.
        ShapeError: for bounds that do not broadcast to the shape.

    >>> from axir import random
    >>> random.uniform(random.PRNGKey(0), (2,), minval=1.0, maxval=3.0)
    Array([1.4325907, 2.6082482], dtype=float32)
    """
    key = check_key("uniform", key)
    extents = check_shape("uniform", shape)
    return draw_uniform("uniform", key, extents, float_dtype("uniform", dtype), minval, maxval)


def draw_uniform(
    name: str,
    key: Value,
    shape: tuple[int, ...],
    dtype: np.dtype,
    minval: ArrayLike = 0.0,
    maxval: ArrayLike = 1.0,
) -> Value:
    """Draws from `[minval, maxval)` with checked arguments; `name` is the sampler's."""
    unit = _unit_floats(key, shape, dtype)
    if type(minval) is float and type(maxval) is float:
        if minval == 0.0 and maxval == 1.0:
            return unit
        low, width, is_finite = _interval(minval, maxval, dtype)
        if type(unit) is ConcreteArray and is_finite and unit.remote_device is None:
            # Rounding may lead below the interval.
            return wrap(np.maximum(unit.host() * width + low, low), unit)
        return max(add(mul(unit, width), low), low)
    first, last = parameter(name, "minval", minval, dtype), parameter(name, "maxval", maxval, dtype)
    if not shape and first.size == last.size == 1:
        # As in JAX, one sample has the shape of the interval's beginning: (), (1,), (1, 1) ...
        unit, last = (reshape(x, first.shape) for x in (unit, last))
    else:
        result_shape(name, shape, first.shape, last.shape, error=ShapeError)
        first, last = spread(first, shape), spread(last, shape)
    return max(add(mul(unit, sub(last, first)), first), first)


@lru_cache(maxsize=256)
def _interval(minval: float, maxval: float, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray, bool]:
    """Returns the lower bound and the width of an interval, and whether both are finite."""
    with np.errstate(all="ignore"):
        low, high = np.asarray(minval, dtype), np.asarray(maxval, dtype)
        width = np.asarray(high - low, dtype)
    return low, width, bool(np.isfinite(low) and np.isfinite(width))


class _FloatLayout:
    """Conversion of random bits to floats in [1, 2): a random mantissa, the exponent of one."""

    def __init__(self, dtype: np.dtype):
        mantissa = ml_dtypes.finfo(dtype).nmant
        self.width = dtype.itemsize * 8
        # bfloat16 makes do with 8 random bits.
        self.random_width = 8 if mantissa < 8 else self.width
        self.unsigned = threefry.UNSIGNED[self.width]
        self.shift = np.asarray(self.random_width - mantissa, self.unsigned)
        self.one = np.asarray(1, dtype)
        self.bits_of_one = np.asarray(self.one.view(self.unsigned))


@cache
def _layout(dtype: np.dtype) -> _FloatLayout:
    return _FloatLayout(dtype)


def _unit_floats(key: Value, shape: tuple[int, ...], dtype: np.dtype) -> Value:
    """Draws floats from [0, 1), equally spaced by the machine epsilon."""
    layout = _layout(dtype)
    drawn = random_bits(key, layout.random_width, shape)
    if type(drawn) is ConcreteArray and drawn.remote_device is None:
        known = drawn.host().astype(layout.unsigned, copy=False)
        known = known >> layout.shift | layout.bits_of_one
        return wrap(np.asarray(known).view(dtype) - layout.one, key)
    drawn = convert_element_type(drawn, layout.unsigned)
    drawn = or_(shift_right_logical(drawn, layout.shift), layout.bits_of_one)
    return sub(bitcast_convert_type(drawn, dtype), layout.one)


# Integers --------------------------------------------------------------------------------------


@lies_where_told
def randint(
    key: ArrayLike,
    shape: Sequence[int],
    minval: ArrayLike,
    maxval: ArrayLike,
    dtype: DTypeLike = None,
    *,
    out_sharding: object = None,
) -> Value:
    """Draws integers uniformly from the range `[minval, maxval)`.

    Twice as many random bits as the dtype has make the bias of the remainder negligible. Where
    `maxval <= minval` the result is `minval`.

    Args:
        key: The key.
        shape: Shape of the result.
        minval: Lower bound, an integer or an array of integers that broadcasts to the shape.
        maxval: Upper bound. A bound outside the dtype's range is clipped to the range.
        dtype: Integer dtype of the result; int32 by default, int64 with `jax_enable_x64`.
        out_sharding: Placement of the result: a sharding, or a `PartitionSpec`.

    Raises:
        DTypeError: for a dtype that is not an integer type.
        ParameterError: for bounds that do not broadcast to the shape.
        OverflowError: for a Python integer that the default integer dtype cannot hold.

    >>> from axir import random
    >>> random.randint(random.PRNGKey(0), (3,), 0, 10)
    Array([8, 1, 7], dtype=int32)
    """
    key = check_key("randint", key)
    extents = check_shape("randint", shape)
    result_dtype = integer_dtype("randint", dtype, error=DTypeError)
    if type(minval) is int and type(maxval) is int:
        low, span, multiplier = _known_range(minval, maxval, result_dtype, config.jax_enable_x64)
    else:
        bounds = to_value("randint", "minval", minval), to_value("randint", "maxval", maxval)
        result_shape("randint", extents, bounds[0].shape, bounds[1].shape)
        low, span, multiplier = _range(*bounds, result_dtype)
        low, span, multiplier = (spread(x, extents) for x in (low, span, multiplier))
    width = low.dtype.itemsize * 8
    higher, lower = (random_bits(k, width, extents) for k in split_pair(key))
    # (higher * 2**width + lower) mod span, where the multiplier is 2**width mod span.
    offset = rem(add(mul(rem(higher, span), multiplier), rem(lower, span)), span)
    return convert_element_type(add(low, convert_element_type(offset, low.dtype)), result_dtype)


@lru_cache(maxsize=256)
def _known_range(
    minval: int, maxval: int, dtype: np.dtype, has_64_bits: bool
) -> tuple[Value, Value, Value]:
    return _range(as_array(minval), as_array(maxval), dtype)


def _range(minval: Value, maxval: Value, dtype: np.dtype) -> tuple[Value, Value, Value]:
    """Returns the lower bound, the number of integers, and 2**width modulo that number."""
    low, high = _as_integers(minval, "minval"), _as_integers(maxval, "maxval")
    if low.shape != high.shape:
        together = broadcast_shapes(low.shape, high.shape)
        low, high = spread(low, together), spread(high, together)
    if dtype.itemsize < 4:
        # Drawn in 32 bits, so that the bias of the remainder is as small as with other dtypes.
        narrow = ml_dtypes.iinfo(dtype)
        low, high = (convert_element_type(x, np.int32) for x in (low, high))
        low = _limited(low, int(narrow.min), int(narrow.max))
        high, dtype = _limited(high, narrow.min, int(narrow.max) + 1), dtypes.int32
    limits = np.iinfo(dtype)
    greatest = np.asarray(_nearest(limits.max, high.dtype), high.dtype)
    exceeds = gt(high, greatest)
    low, high = _saturate(low, dtype), _saturate(high, dtype)
    unsigned = threefry.UNSIGNED[limits.bits]
    one = np.ones((), unsigned)
    span = select_n(le(high, low), convert_element_type(sub(high, low), unsigned), one)
    # The end of the range counts when the bound lies beyond it; a span of all integers wraps to 0.
    span = select_n(and_(exceeds, gt(high, low)), span, add(span, one))
    multiplier = rem(np.asarray(2 ** (limits.bits // 2), unsigned), span)
    return low, span, rem(mul(multiplier, multiplier), span)


def _as_integers(x: Value, argument: str) -> Value:
    if dtypes.is_complex(x.dtype):
        raise DTypeError(f"random.randint: {argument} must be integers, not {x.type}.")
    return convert_element_type(x, x.dtype if dtypes.is_integer(x.dtype) else np.int64)


def _nearest(number: UserObject, dtype: np.dtype) -> int:
    """Returns the integer of a dtype that is nearest to a number."""
    limits = np.iinfo(dtype)
    return sorted((int(limits.min), int(number), int(limits.max)))[1]


def _limited(x: Value, low: int, high: int) -> Value:
    return clamp(np.asarray(low, x.dtype), x, np.asarray(high, x.dtype))


def _saturate(x: Value, dtype: np.dtype) -> Value:
    """Converts to another integer dtype; numbers outside its range are clipped."""
    if x.dtype == dtype:
        return x
    limits = np.iinfo(dtype)
    ends = (_nearest(limit, x.dtype) for limit in (limits.min, limits.max))
    return convert_element_type(_limited(x, *ends), dtype)
