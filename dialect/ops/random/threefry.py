"""The generator `threefry2x32`: layout and encryption of counters, and their cut into integers.

There are two streams. The *original* one numbers 32-bit words: word `i` of `n` comes from the
counter pair `(i, i + n/2)`, so numbers depend on how many are drawn. The *partitionable* one
numbers the elements: the 64-bit counter `i` determines element `i`.

If the key is known, NumPy computes the bits at once, without the cost of separate ops; both ways
give the same bits. Keys are arrays of two words here. Elsewhere: the encryption itself
(`random_bits.py`) and the ops that take typed keys (`random_keys.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Extent, Foreign, HostArray, UserObject
from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.config import config
from axir.dialect.core.extended_dtypes import PRNGImpl
from axir.dialect.core.places import place_of_part, settled
from axir.dialect.core.symbolic_dims import as_traced, is_symbolic_dim
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.arithmetic import add, sub
from axir.dialect.ops.elementwise.comparison import (
    eq,
    ge,
    or_,
    select_n,
    shift_left,
    shift_right_logical,
    xor,
)
from axir.dialect.ops.elementwise.conversion import bitcast_convert_type, convert_element_type
from axir.dialect.ops.indexing.static_slicing import index_in_dim, slice_in_dim
from axir.dialect.ops.shape.concatenation import concatenate
from axir.dialect.ops.shape.rearranging import reshape
from axir.dialect.program.op_table import OPS
from axir.dialect.program.rules import Value
from axir.dialect.program.tracer import Tracer

from .random_bits import threefry2x32

UNSIGNED = {8: dtypes.uint8, 16: dtypes.uint16, 32: dtypes.uint32, 64: dtypes.uint64}
# The number of words of one key in the original stream: its counters have 32 bits.
MAX_WORDS = 2**32 - 1
# Up to this number of words, the counters are kept for the next draw.
_FEW = 256
_encrypt_known: Foreign = OPS["threefry2x32"].evaluate


def seed(number: Value) -> Value:
    """Makes the words of a key from the upper and the lower 32 bits of an integer scalar."""
    if type(number) is ConcreteArray:
        known = int(number.host())
        high = known >> 32 & 0xFFFFFFFF if number.dtype.itemsize == 8 else 0
        return wrap(np.array((high, known & 0xFFFFFFFF), np.uint32), number)
    low = convert_element_type(number, dtypes.uint32)
    # A seed of 32 bits or less has no upper word, also if it is negative.
    upper: UserObject = np.zeros((1,), np.uint32)
    if number.dtype.itemsize == 8:
        upper = reshape(convert_element_type(shift_right_logical(number, 32), dtypes.uint32), (1,))
    return concatenate([upper, reshape(low, (1,))], 0)


def split(key: Value, shape: tuple[int, ...]) -> Value:
    """Makes the words of new keys."""
    count = math.prod(shape)
    if type(key) is ConcreteArray:
        host = key.host()
        if config.jax_threefry_partitionable:
            words = np.stack(known_pairs(host, count), axis=1)
        else:
            words = known_words(host, 2 * count)
        return wrap(words.reshape(*shape, 2), key)
    if count == 0:
        return wrap(np.zeros((*shape, 2), np.uint32), key)
    if config.jax_threefry_partitionable:
        columns = [reshape(x, (count, 1)) for x in traced_pairs(key, count)]
        return reshape(concatenate(columns, 1), (*shape, 2))
    return reshape(traced_words(key, 2 * count), (*shape, 2))


def fold_in(key: Value, data: Value) -> Value:
    """Makes the words of a key from a key and a uint32 scalar."""
    zero = np.zeros((), np.uint32)
    if type(key) is ConcreteArray and type(data) is ConcreteArray:
        words = encrypt(key.host(), zero, data.host())
        return wrap(np.array([word.item() for word in words], np.uint32), key)
    mixed = threefry2x32(*key_words(key), zero, data)
    return concatenate([reshape(word, (1,)) for word in mixed], 0)


def random_bits(key: Value, bit_width: int, shape: tuple[int, ...]) -> Value:
    """Draws unsigned integers of 8, 16, 32 or 64 bits."""
    if type(key) is ConcreteArray:
        return wrap(known_bits(key.host(), bit_width, shape), key)
    size = math.prod(shape)
    dtype = UNSIGNED[bit_width]
    if size == 0:
        return wrap(np.zeros(shape, dtype), key)
    if config.jax_threefry_partitionable:
        high, low = traced_pairs(key, size)
        if bit_width == 64:
            flat = _join(high, low)
        else:
            flat = convert_element_type(xor(high, low), dtype)
    else:
        words = traced_words(key, -(-size * bit_width // 32))
        flat = _cut(words, bit_width, size)
    return flat if flat.shape == shape else reshape(flat, shape)


def wrap(host: HostArray, like: Value) -> ConcreteArray:
    """Wraps samples computed by NumPy; they are on the key's device."""
    host = np.asarray(host)
    device = place_of_part(like, host.shape) if type(like) is ConcreteArray else None
    made = ConcreteArray(ShapedArray(host.shape, host.dtype), host, None, device)
    return made if device is not None else settled(made)


def _join(high: Value, low: Value) -> Value:
    """Makes 64-bit integers of the two halves."""
    upper, lower = (convert_element_type(x, dtypes.uint64) for x in (high, low))
    return or_(shift_left(upper, 32), lower)


def _cut(words: Value, bit_width: int, size: int) -> Value:
    """Cuts 32-bit words into integers of another width, the low bits of a word first."""
    if bit_width == 32:
        return words
    if bit_width == 64:
        return _join(slice_in_dim(words, 0, size), slice_in_dim(words, size, 2 * size))
    pieces = bitcast_convert_type(words, UNSIGNED[bit_width])
    return slice_in_dim(reshape(pieces, (pieces.size,)), 0, size)


# Traced: the key is an SSA value ---------------------------------------------------------------


def count_up(like: Value, dtype: np.dtype, size: Extent) -> Tracer:
    """Records the numbers 0, 1, ... beside a tracer.

    The function `iota` would evaluate them at once, as a constant of the program.
    """
    params = {"dtype": dtype, "shape": (size,), "dimension": 0}
    assert isinstance(like, Tracer)
    return like.owner.record(OPS["iota"], (), params)


def key_words(key: Value) -> tuple[Value, Value]:
    """Returns the two words of a key as scalars."""
    return index_in_dim(key, 0, keepdims=False), index_in_dim(key, 1, keepdims=False)


def traced_words(key: Value, count: int) -> Value:
    """Draws words of the original stream; an odd count is padded with the counter 0."""
    if is_symbolic_dim(count):
        return _words_of_any_count(key, count)
    if count > MAX_WORDS:
        return _many_words(key, count)
    half = (count + 1) // 2
    first = count_up(key, dtypes.uint32, half)
    second = add(first, half)
    if count % 2:
        second = select_n(eq(first, half - 1), second, 0)
    words = concatenate(threefry2x32(*key_words(key), first, second), 0)
    return slice_in_dim(words, 0, count) if count % 2 else words


def _words_of_any_count(key: Value, count: Extent) -> Value:
    """Draws words of the original stream, each from a separate pair; shapes determine the count."""
    number = convert_element_type(as_traced(count), dtypes.uint32)
    half = shift_right_logical(add(number, np.uint32(1)), np.uint32(1))
    place = count_up(key, dtypes.uint32, count)
    is_second = ge(place, half)
    first = select_n(is_second, place, sub(place, half))
    second = add(first, half)
    second = select_n(eq(second, number), second, np.uint32(0))
    return select_n(is_second, *threefry2x32(*key_words(key), first, second))


def _many_words(key: Value, count: int) -> Value:
    blocks, rest = divmod(count, MAX_WORDS)
    rows = reshape(traced_words(key, 2 * (blocks + 1)), (blocks + 1, 2))
    keys = [index_in_dim(rows, i, keepdims=False) for i in range(blocks + 1)]
    sizes = [MAX_WORDS] * blocks + [rest]
    parts = [traced_words(k, size) for k, size in zip(keys, sizes, strict=True) if size]
    return concatenate(parts, 0)


def traced_pairs(key: Value, count: int) -> list[Value]:
    """Encrypts the 64-bit counters 0, 1, ... of the partitionable stream."""
    if is_symbolic_dim(count):
        numbers = count_up(key, dtypes.uint64, count)
        parts = (shift_right_logical(numbers, 32), numbers)
        counters: Any = tuple(convert_element_type(x, dtypes.uint32) for x in parts)
    elif count <= MAX_WORDS:
        counters = (np.zeros((), np.uint32), count_up(key, dtypes.uint32, count))
    else:
        counters = _known_counters(count)
    return threefry2x32(*key_words(key), *counters)


# Known: the key is an array --------------------------------------------------------------------


def known_bits(key: np.ndarray, bit_width: int, shape: tuple[int, ...]) -> np.ndarray:
    """Draws unsigned integers with a key of known words."""
    size = math.prod(shape)
    dtype = UNSIGNED[bit_width]
    if config.jax_threefry_partitionable:
        high, low = known_pairs(key, size)
        if bit_width != 64:
            return (high ^ low).astype(dtype, copy=False).reshape(shape)
    else:
        words = known_words(key, -(-size * bit_width // 32))
        if bit_width != 64:
            return words.view(dtype)[:size].reshape(shape)
        high, low = words[:size], words[size:]
    return (high.astype(np.uint64) << np.uint64(32) | low).reshape(shape)


def known_words(key: np.ndarray, count: int) -> np.ndarray:
    """Draws words of the original stream; an odd count is padded with the counter 0."""
    if count > MAX_WORDS:
        blocks, rest = divmod(count, MAX_WORDS)
        keys = known_words(key, 2 * (blocks + 1)).reshape(-1, 2)
        sizes = [MAX_WORDS] * blocks + [rest]
        return np.concatenate([known_words(k, n) for k, n in zip(keys, sizes, strict=True)])
    counters = _few_counters(count) if count <= _FEW else _paired_counters(count)
    words = np.concatenate(encrypt(key, *counters))
    return words[:count] if count % 2 else words


def _paired_counters(count: int) -> tuple[np.ndarray, np.ndarray]:
    half = (count + 1) // 2
    first = np.arange(half, dtype=np.uint32)
    second = np.arange(half, 2 * half, dtype=np.uint32)
    if count % 2:
        second[-1] = 0
    return first, second


_few_counters = lru_cache(maxsize=_FEW + 1)(_paired_counters)


def known_pairs(key: np.ndarray, count: int) -> Sequence[np.ndarray]:
    """Encrypts the 64-bit counters 0, 1, ... of the partitionable stream."""
    return encrypt(key, *_known_counters(count))


def _known_counters(count: int) -> tuple[np.ndarray, np.ndarray]:
    if count <= MAX_WORDS:
        return np.zeros((), np.uint32), np.arange(count, dtype=np.uint32)
    counters = np.arange(count, dtype=np.uint64)
    return (counters >> np.uint64(32)).astype(np.uint32), counters.astype(np.uint32)


def encrypt(key: np.ndarray, first: np.ndarray, second: np.ndarray) -> Sequence[np.ndarray]:
    """Encrypts known counters with known words of a key."""
    return _encrypt_known(key[0, ...], key[1, ...], first, second)


THREEFRY = PRNGImpl((2,), seed, split, random_bits, fold_in, "threefry2x32", "fry")
