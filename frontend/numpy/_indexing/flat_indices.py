"""Positions in flattened arrays, and bits in bytes: `unravel_index`, `packbits` and the like."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import DTypeLike, UserObject
from axir.dialect.core.array import Array, ArrayLike
from axir.dialect.core.errors import DTypeError, OutOfBoundsError, ParameterError
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.shape.concatenation import concatenate
from axir.dialect.ops.shape.rearranging import reshape
from axir.dialect.program.rules import Value
from axir.dialect.program.tracer import Tracer
from axir.numpy._arguments.checks import canonical_axis, is_sequence
from axir.numpy._arguments.promotion import array_argument
from axir.numpy._arrays.filled import full, zeros
from axir.numpy._elementwise.arithmetic import floor_divide, remainder
from axir.numpy._reductions.reductions import sum as reduce_sum
from axir.numpy._shape.manipulation import moveaxis

from .selection import clip, concrete_host, nonzero, where

__all__ = ["mask_indices", "packbits", "ravel_multi_index", "unpackbits", "unravel_index"]


def unravel_index(indices: ArrayLike, shape: UserObject) -> tuple[Value, ...]:
    """Returns the indices into an array of a shape of positions in the flattened array.

    Args:
        indices: Integers; a position out of bounds is clipped to the nearest one.
        shape: Extents, an integer or several, or an array of them; they may be traced.

    >>> import axir.numpy as jnp
    >>> jnp.unravel_index(5, (2, 3))
    (Array(1, dtype=int32, weak_type=True), Array(2, dtype=int32, weak_type=True))
    """
    flat = _integers("unravel_index", indices)
    has_several = is_sequence(shape) or getattr(shape, "ndim", 0) > 0
    given = tuple(shape) if has_several else (shape,)
    extents: tuple[UserObject, ...] = tuple([x if type(x) is Tracer else int(x) for x in given])
    size = math.prod(extents)
    flat = clip(flat, -size, size - 1)
    flat = where(flat < 0, flat + size, flat)
    result = []
    for extent in reversed(extents):
        result.append(remainder(flat, extent))
        flat = floor_divide(flat, extent)
    return tuple(reversed(result))


def ravel_multi_index(
    multi_index: UserObject,
    dims: UserObject,
    mode: str = "raise",
    order: str = "C",
    *,
    dtype: DTypeLike = None,
) -> Value:
    """Returns the positions in a flattened array of indices into an array of a shape.

    Args:
        multi_index: For each axis integers; their shapes broadcast.
        dims: Extents of the axes.
        mode: 'raise' for known indices, 'wrap' or 'clip' for indices out of bounds.
        order: 'C', or 'F' if the first axis runs fastest.
        dtype: Integer dtype of the result.

    >>> import axir.numpy as jnp
    >>> jnp.ravel_multi_index((1, 2), (2, 3))
    Array(5, dtype=int32)
    """
    parts = [_integers("ravel_multi_index", x) for x in multi_index]
    extents = tuple(map(int, dims))
    if len(parts) != len(extents) or order not in ("C", "F"):
        raise ParameterError(
            f"jnp.ravel_multi_index needs indices for each of {len(extents)} axes, not for "
            f"{len(parts)}, and an order 'C' or 'F', not {order!r}."
        )
    pairs = [(_inside(x, n, mode), n) for x, n in zip(parts, extents, strict=True)]
    if dtype is not None:
        pairs = [(x.astype(dtype), n) for x, n in pairs]
    result: UserObject = 0
    for place, extent in pairs if order == "C" else reversed(pairs):
        result = result * extent + place
    result = array_argument("ravel_multi_index", result)
    return convert_element_type(result, result.dtype)


def _inside(x: Value, extent: int, mode: str) -> Value:
    if mode == "clip":
        return clip(x, 0, extent - 1)
    if mode == "wrap":
        return remainder(x, extent)
    if mode != "raise":
        raise ParameterError(f"jnp.ravel_multi_index: mode {mode!r} is not raise, wrap or clip.")
    host = concrete_host(x, "jnp.ravel_multi_index with mode='raise'")
    if host.size and (host.min() < 0 or host.max() >= extent):
        raise OutOfBoundsError(
            f"jnp.ravel_multi_index: an index lies outside of an axis of extent {extent}.",
            "Pass mode='clip' or mode='wrap'.",
        )
    return x


def _integers(name: str, x: ArrayLike) -> Value:
    x = array_argument(name, np.asarray(x) if isinstance(x, (list, tuple)) else x)
    if not dtypes.is_integer(x.dtype):
        raise DTypeError(f"jnp.{name}: indices must be integers, not {x.dtype}.")
    # Extents and positions need not be numbers of a narrow dtype.
    return convert_element_type(x, dtypes.int32) if x.dtype.itemsize < 4 else x


def mask_indices(
    n: int, mask_func: Callable[..., object], k: object = 0, *, size: int | None = None
) -> tuple[Value, ...]:
    """Returns the indices of an n by n matrix that a function like `triu` keeps.

    >>> import axir.numpy as jnp
    >>> jnp.mask_indices(2, jnp.triu)
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    return nonzero(mask_func(full((n, n), 1, dtypes.int32), k), size=size)


def _weights(order: str) -> Array:
    if order not in ("big", "little"):
        raise ParameterError(f"jnp: the order of bits is 'big' or 'little', not {order!r}.")
    exponents = range(8) if order == "little" else range(7, -1, -1)
    return array_argument("packbits", np.array([1 << e for e in exponents], np.uint8))


def packbits(a: ArrayLike, axis: int | None = None, bitorder: str = "big") -> Value:
    """Packs eight elements along an axis, zero or not, into a byte.

    Args:
        a: Array of integers or bools.
        axis: Along which; None flattens `a` first. Zeros fill the last byte.
        bitorder: 'big' if the first element is the highest bit, or 'little'.

    >>> import axir.numpy as jnp
    >>> jnp.packbits(jnp.array([1, 0, 1]))
    Array([160], dtype=uint8)
    """
    array = array_argument("packbits", a)
    if not (dtypes.is_integer(array.dtype) or array.dtype == dtypes.bool_):
        raise DTypeError(f"jnp.packbits takes integers and bools, not {array.dtype}.")
    weights = _weights(bitorder)
    if axis is None:
        array, axis = reshape(array, (array.size,)), 0
    axis = canonical_axis("packbits", axis, array.ndim)
    bits = moveaxis((array != 0).astype(np.uint8), axis, -1)
    missing = -bits.shape[-1] % 8
    if missing:
        bits = concatenate([bits, zeros((*bits.shape[:-1], missing), np.uint8)], bits.ndim - 1)
    octets = reshape(bits, (*bits.shape[:-1], bits.shape[-1] // 8, 8))
    return moveaxis(reduce_sum(octets * weights, axis=-1, dtype=np.uint8), -1, axis)


def unpackbits(
    a: ArrayLike, axis: int | None = None, count: int | None = None, bitorder: str = "big"
) -> Value:
    """Returns the bits of bytes along an axis.

    Args:
        a: Array of uint8.
        axis: Along which; None flattens `a` first.
        count: How many bits to return; by default all. A negative one drops bits at the end, one
            beyond the end adds zeros.
        bitorder: 'big' if the highest bit comes first, or 'little'.

    >>> import axir.numpy as jnp
    >>> jnp.unpackbits(jnp.array([160], "uint8"), count=3)
    Array([1, 0, 1], dtype=uint8)
    """
    array = array_argument("unpackbits", a)
    if array.dtype != dtypes.uint8:
        raise DTypeError(f"jnp.unpackbits takes uint8, not {array.dtype}.")
    weights = _weights(bitorder)
    if axis is None:
        array, axis = reshape(array, (array.size,)), 0
    axis = canonical_axis("unpackbits", axis, array.ndim)
    octets = moveaxis(array, axis, -1)
    weights = weights.reshape(*(1,) * octets.ndim, 8)
    bits = ((octets[..., None] & weights) != 0).astype(np.uint8)
    bits = reshape(bits, (*octets.shape[:-1], octets.shape[-1] * 8))
    if count is not None:
        extra = count - bits.shape[-1]
        if count >= 0 and extra > 0:
            bits = concatenate([bits, zeros((*bits.shape[:-1], extra), np.uint8)], bits.ndim - 1)
        else:
            bits = bits[..., :count]
    return moveaxis(bits, -1, axis)
