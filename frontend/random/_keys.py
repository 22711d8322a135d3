"""Keys: making, splitting, and folding numbers into them.

A typed key, as `key` makes it, is one element of dtype `key<...>`. `PRNGKey` makes the words of
such a key, a uint32 array; an array of keys then has a last axis for the words. All functions take
both kinds, and give back the kind that they were given.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import AnyDtype, DTypeLike, UserObject
from axir.dialect.core.array import ArrayLike, ConcreteArray, scalar
from axir.dialect.core.config import config
from axir.dialect.core.dtypes import is_key
from axir.dialect.core.errors import DTypeError, ParameterError, ShapeError
from axir.dialect.core.extended_dtypes import (
    KeyDtype,
    PRNGImpl,
    dtype_of_generator,
    generator_names,
)
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.arithmetic import add
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.indexing.static_slicing import index_in_dim
from axir.dialect.ops.random import random_keys as ops
from axir.dialect.ops.shape.movement import integers
from axir.dialect.program.key_reuse import use
from axir.dialect.program.rules import Value

from ._parameters import (
    check_key,
    check_keys,
    default_key_dtype,
    to_value,
    unwrap_words,
    wrap_words,
)


def PRNGKey(seed: object, *, impl: object = None) -> Value:
    """Makes a key of words from a seed; `key` makes a typed one.

    Args:
        seed: An integer, or an integer array of rank 0. A seed of 64 bits fills two words of the
            key; without `jax_enable_x64` only its lower 32 bits count.
        impl: The generator, as for `key`.

    Returns:
        A uint32 array of shape (2,), or (4,) with the other generators. With the option
        `jax_enable_custom_prng` the same as `key`.

    Raises:
        As `key`.

    >>> from axir import random
    >>> random.PRNGKey(42)
    Array([ 0, 42], dtype=uint32)
    """
    made = _make_key("PRNGKey", seed, _generator("PRNGKey", impl))
    return made if config.jax_enable_custom_prng else unwrap_words(made)


def key(seed: object, *, impl: object = None, dtype: DTypeLike = None) -> Value:
    """Makes a typed key from a seed.

    Args:
        seed: An integer, or an integer array of rank 0. A seed of 64 bits fills two words of the
            key; without `jax_enable_x64` only its lower 32 bits count.
        impl: The generator: "threefry2x32", "rbg", "unsafe_rbg", or what `key_impl` or
            `key_dtype` returned; by default the option `jax_default_prng_impl`.
        dtype: The same.

    Returns:
        An array of rank 0 and of dtype `key<...>`.

    Raises:
        ShapeError: if the seed is not a scalar.
        DTypeError: if it is not an integer.
        ParameterError: for an unknown generator.
        OverflowError: if a Python integer needs more than 64 bits.

    >>> from axir import random
    >>> random.key(42)
    Array((), dtype=key<fry>) overlaying:
    [ 0 42]
    """
    return _make_key("key", seed, _one_generator("key", impl, dtype))


def key_dtype(impl_spec: object = None) -> KeyDtype:
    """Returns the dtype of the keys of a generator, which is given as for `key`.

    >>> from axir import random
    >>> random.key_dtype("rbg")
    key<rbg>
    """
    return _generator("key_dtype", impl_spec)


def _one_generator(name: str, impl: object, dtype: DTypeLike) -> KeyDtype:
    if impl is not None and dtype is not None:
        raise ParameterError(
            f"random.{name} cannot take both impl and dtype: each names the generator.", "Give one."
        )
    return _generator(name, dtype if impl is None else impl)


def _generator(name: str, impl: object) -> KeyDtype:
    """Returns the dtype of the keys of a generator that a user named in one of the ways."""
    if impl is None:
        return default_key_dtype()
    if type(impl) is KeyDtype:
        return impl
    if not isinstance(impl, (str, PRNGImpl)):
        raise DTypeError(
            f"random.{name}: {impl!r} of type {type(impl).__name__!r} names no generator.",
            "Pass its name, a dtype of keys, or what random.key_impl returns.",
        )
    name_of_impl = impl if isinstance(impl, str) else impl.name
    found = dtype_of_generator(name_of_impl)
    if found is None or not (isinstance(impl, str) or found.impl == impl):
        raise ParameterError(
            f"random.{name}: there is no generator {name_of_impl!r}.",
            f"The generators are {', '.join(map(repr, generator_names()))}.",
        )
    return found


def _make_key(name: str, seed: UserObject, dtype: KeyDtype) -> Value:
    given, offset = seed, config.jax_random_seed_offset
    if isinstance(seed, int):
        seed += offset
        # Hashes of 64 bits are usual seeds, so a Python integer may exceed the default dtype.
        number = np.int64(seed)
        host = number if config.jax_enable_x64 else number.astype(np.uint32)
        seed = ConcreteArray(ShapedArray((), host.dtype), np.asarray(host))
    seed = to_value(name, "seed", seed)
    if is_key(seed.dtype):
        raise DTypeError(f"random.{name} accepts a scalar seed, but was given a random key.")
    if seed.ndim:
        raise ShapeError(
            f"random.{name}: the seed must be a scalar, but got {seed.type}.",
            f"Map over seeds with axir.vmap(random.{name}).",
        )
    if not dtypes.is_integer(seed.dtype):
        raise DTypeError(f"random.{name}: the seed must be an integer, but got {seed.type}.")
    if offset and not isinstance(given, int):
        seed = add(seed, scalar(offset, seed.dtype))
    return ops.random_seed.bind(seed, impl=dtype.impl.tag)


def _like(given: object, keys: Value) -> Value:
    """Returns keys of the kind of another one: typed, or as words."""
    if config.jax_enable_custom_prng or is_key(getattr(given, "dtype", None)):
        return keys
    return unwrap_words(keys)


def split(key: ArrayLike, num: int | Sequence[int] = 2) -> Value:
    """Makes new keys from a key, which must not be used again.

    Args:
        key: The key.
        num: How many, or the shape of an array of keys.

    Returns:
        Typed keys of shape `(num,)` or `num`; if the key was made by `PRNGKey`, a uint32 array with
        one more axis for the words.

    Raises:
        ShapeError: for a negative number.

    >>> from axir import random
    >>> key, subkey = random.split(random.key(0))
    >>> random.split(random.PRNGKey(0))
    Array([[4146024105,  967050713],
           [2718843009, 1272950319]], dtype=uint32)
    """
    checked = check_key("split", key)
    shape = (num,) if type(num) is int else integers("random.split", "num", num)
    if shape and min(shape) < 0:
        raise ShapeError(f"random.split: cannot make {num} keys.", "Pass a number of at least 0.")
    return _like(key, _split(checked, shape))


def _split(key: Value, shape: tuple[int, ...]) -> Value:
    if config.jax_debug_key_reuse:
        use(key)
    return ops.random_split.bind(key, shape=shape, partitionable=config.jax_threefry_partitionable)


def split_pair(key: Value) -> tuple[Value, Value]:
    """Splits a checked key in two."""
    keys = _split(key, (2,))
    if type(keys) is ConcreteArray:
        first, second = keys
        return first, second
    return index_in_dim(keys, 0, keepdims=False), index_in_dim(keys, 1, keepdims=False)


def fold_in(key: ArrayLike, data: UserObject) -> Value:
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
    checked = check_key("fold_in", key)
    if type(data) is int:
        data = scalar(data, dtypes.uint32, weak_type=False)
    data = to_value("fold_in", "data", data)
    if data.ndim:
        raise ShapeError(
            f"random.fold_in: the data must be a scalar, but got {data.type}.",
            "Map over it: axir.vmap(lambda x: random.fold_in(key, x))(data).",
        )
    data = convert_element_type(data, dtypes.uint32)
    return _like(key, ops.random_fold_in.bind(checked, data))


def key_data(keys: ArrayLike) -> Value:
    """Returns the words of keys: a uint32 array with one more axis.

    >>> from axir import random
    >>> random.key_data(random.key(7))
    Array([0, 7], dtype=uint32)
    """
    return unwrap_words(check_keys("key_data", keys))


def wrap_key_data(
    key_bits_array: UserObject, *, impl: object = None, dtype: DTypeLike = None
) -> Value:
    """Makes typed keys of words, the opposite of `key_data`.

    Args:
        key_bits_array: uint32 words of shape `(..., 2)`, or `(..., 4)` with the other generators.
        impl: The generator, as for `key`.
        dtype: The same.

    Raises:
        DTypeError, ShapeError: if these are not the words of keys.
        ParameterError: for an unknown generator.

    >>> from axir import random
    >>> random.wrap_key_data(random.PRNGKey(7)) == random.key(7)
    Array(True, dtype=bool)
    """
    generator = _one_generator("wrap_key_data", impl, dtype)
    words = to_value("wrap_key_data", "key_bits_array", key_bits_array)
    return wrap_words("wrap_key_data", words, generator)


def key_impl(keys: ArrayLike) -> Hashable:
    """Returns the name of the keys' generator, as `key` and `wrap_key_data` take it.

    >>> from axir import random
    >>> random.key_impl(random.key(0))
    'threefry2x32'
    """
    dtype: AnyDtype = check_keys("key_impl", keys).dtype
    name: str = dtype.impl.name
    return name


def clone(key: ArrayLike) -> Value:
    """Returns the same key, to be used for deliberate repetition."""
    if not is_key(getattr(key, "dtype", None)):
        key = wrap_words("clone", to_value("clone", "key", key), default_key_dtype())
        return _like(None, ops.random_clone.bind(key))
    return ops.random_clone.bind(key)
