"""Keys: making, splitting, and folding numbers into them.

A key is a uint32 array of shape (2,), and an array of keys has a last axis of extent 2, whether it
comes from `PRNGKey` or from `key`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from axir.dialect import dtypes
from axir.dialect.array import ConcreteArray, scalar
from axir.dialect.config import config
from axir.dialect.errors import DTypeError, ParameterError, ShapeError
from axir.dialect.ops.conversion import convert_element_type
from axir.dialect.ops.elementwise import shift_right_logical
from axir.dialect.ops.movement import integers
from axir.dialect.ops.random_bits import threefry2x32
from axir.dialect.ops.shape import concatenate, reshape
from axir.dialect.ops.static_slicing import index_in_dim

from .parameters import KEY_TYPE, Value, check_key, check_keys, to_value
from .streams import (
    encrypt,
    key_words,
    known_pairs,
    known_words,
    traced_pairs,
    traced_words,
    wrap,
)

GENERATOR = "threefry2x32"


def PRNGKey(seed: Any, *, impl: str | None = None) -> Value:
    """Makes a key from a seed.

    Args:
        seed: An integer, or an integer array of rank 0. A seed of 64 bits fills both words of the
            key; without `jax_enable_x64` only its lower 32 bits count.
        impl: The generator; "threefry2x32" is the only one.

    Returns:
        A uint32 array of shape (2,).

    Raises:
        ShapeError: if the seed is not a scalar.
        DTypeError: if it is not an integer.
        ParameterError: for another generator.
        OverflowError: if a Python integer needs more than 64

    >>> from axir import random
    >>> random.PRNGKey(42)
    Array([ 0, 42], dtype=uint32)
    """
    return _make_key("PRNGKey", seed, impl)


def key(seed: Any, *, impl: str | None = None, dtype: str | None = None) -> Value:
    """Makes a key from a seed: the same as `PRNGKey`.

    >>> from axir import random
    >>> random.key(42)
    Array([ 0, 42], dtype=uint32)
    """
    return _make_key("key", seed, _one_generator("key", impl, dtype))


def _one_generator(name: str, impl: str | None, dtype: str | None) -> str | None:
    if impl is not None and dtype is not None:
        raise ParameterError(f"random.{name}: impl and dtype both name the generator.", "Give one.")
    return dtype if impl is None else impl


def _check_generator(name: str, impl: str | None) -> None:
    if impl is not None and impl != GENERATOR:
        raise ParameterError(
            f"random.{name}: there is no generator {impl!r}.",
            f"Leave impl out, or pass {GENERATOR!r}.",
        )


def _make_key(name: str, seed: Any, impl: str | None) -> Value:
    _check_generator(name, impl)
    if isinstance(seed, int):
        # Hashes of 64 bits are usual seeds, so a Python integer may exceed the default dtype.
        number = int(np.int64(seed))
        high = number >> 32 & 0xFFFFFFFF if config.jax_enable_x64 else 0
        return ConcreteArray(KEY_TYPE, np.array((high, number & 0xFFFFFFFF), np.uint32))
    seed = to_value(name, "seed", seed)
    if seed.ndim:
        raise ShapeError(
            f"random.{name}: the seed must be a scalar, but got {seed.type}.",
            f"Map over seeds with axir.vmap(random.{name}).",
        )
    if not dtypes.is_integer(seed.dtype):
        raise DTypeError(f"random.{name}: the seed must be an integer, but got {seed.type}.")
    low = convert_element_type(seed, dtypes.uint32)
    # A seed of 32 bits or less has no upper word, also if it is negative.
    upper: Any = np.zeros((1,), np.uint32)
    if seed.dtype.itemsize == 8:
        upper = reshape(convert_element_type(shift_right_logical(seed, 32), dtypes.uint32), (1,))
    return concatenate([upper, reshape(low, (1,))], 0)


def split(key: Any, num: int | Sequence[int] = 2) -> Value:
    """Makes new keys from a key, which must not be used again.

    Args:
        key: The key.
        num: How many, or the shape of an array of keys.

    Returns:
        A uint32 array of shape `(num, 2)` or `(*num, 2)`.

    Raises:
        ShapeError: for a negative number.

    >>> from axir import random
    >>> random.split(random.PRNGKey(0))
    Array([[4146024105,  967050713],
           [2718843009, 1272950319]], dtype=uint32)
    """
    key = check_key("split", key)
    shape = (num,) if type(num) is int else integers("random.split", "num", num)
    if shape and min(shape) < 0:
        raise ShapeError(f"random.split: cannot make {num} keys.", "Pass a number of at least 0.")
    return _split(key, shape)


def _split(key: Value, shape: tuple[int, ...]) -> Value:
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


def split_pair(key: Value) -> tuple[Value, Value]:
    """Splits a checked key in two."""
    keys = _split(key, (2,))
    if type(keys) is ConcreteArray:
        first, second = (wrap(words, keys) for words in keys.host())
        return first, second
    return index_in_dim(keys, 0, keepdims=False), index_in_dim(keys, 1, keepdims=False)


def fold_in(key: Any, data: Any) -> Value:
    """Makes a new key from a key and a number, such as the number of a training step.

    Args:
        key: The key.
        data: A scalar, which becomes a uint32.

    Raises:
        ShapeError: if the data is not a scalar.
        OverflowError: if a Python integer is no uint32.

    >>> from axir import random
    >>> random.fold_in(random.PRNGKey(0), 1)
    Array([ 928981903, 3453687069], dtype=uint32)
    """
    key = check_key("fold_in", key)
    if type(data) is int:
        data = scalar(data, dtypes.uint32, weak_type=False)
    data = to_value("fold_in", "data", data)
    if data.ndim:
        raise ShapeError(
            f"random.fold_in: the data must be a scalar, but got {data.type}.",
            "Map over it: axir.vmap(lambda x: random.fold_in(key, x))(data).",
        )
    data = convert_element_type(data, dtypes.uint32)
    zero = np.zeros((), np.uint32)
    if type(key) is ConcreteArray and type(data) is ConcreteArray:
        words = encrypt(key.host(), zero, data.host())
        return wrap(np.array([word.item() for word in words], np.uint32), key)
    words = threefry2x32(*key_words(key), zero, data)
    return concatenate([reshape(word, (1,)) for word in words], 0)


def key_data(keys: Any) -> Value:
    """Returns the words of keys, which here are the keys themselves.

    >>> from axir import random
    >>> random.key_data(random.key(7))
    Array([0, 7], dtype=uint32)
    """
    return check_keys("key_data", keys)


def wrap_key_data(
    key_bits_array: Any, *, impl: str | None = None, dtype: str | None = None
) -> Value:
    """Makes keys of words, the opposite of `key_data`.

    Args:
        key_bits_array: uint32 words of shape `(..., 2)`.
        impl: The generator; "threefry2x32" is the only one.
        dtype: The same.

    Raises:
        DTypeError, ShapeError: if these are not the words of keys.
    """
    _check_generator("wrap_key_data", _one_generator("wrap_key_data", impl, dtype))
    return check_keys("wrap_key_data", key_bits_array)


def key_impl(keys: Any) -> str:
    """Returns the name of the generator that a key is for."""
    check_keys("key_impl", keys)
    return GENERATOR


def clone(key: Any) -> Value:
    """Returns the same key, for a use that repeats another one on purpose."""
    return check_keys("clone", key)
