"""Custom random generators, under the names of `jax.extend.random`.

A generator is a set of functions of the words of one key, traced like any program; its keys have a
separate dtype.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

from axir.dialect.core.annotations import UserObject
from axir.dialect.core.extended_dtypes import PRNGImpl, register
from axir.dialect.ops.random.bit_generators import RBG as rbg_prng_impl
from axir.dialect.ops.random.bit_generators import UNSAFE_RBG as unsafe_rbg_prng_impl
from axir.dialect.ops.random.random_bits import threefry2x32
from axir.dialect.ops.random.threefry import THREEFRY as threefry_prng_impl
from axir.random import key

__all__ = [
    "PRNGImpl", "define_prng_impl", "random_seed", "rbg_prng_impl", "seed_with_impl",
    "threefry2x32_p", "threefry_prng_impl", "unsafe_rbg_prng_impl",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


threefry2x32_p = threefry2x32.primitive  # type: ignore[attr-defined]
_numbers = itertools.count()


def define_prng_impl(
    *,
    key_shape: tuple[int, ...],
    seed: Callable[[UserObject], UserObject],
    split: Callable[[UserObject, tuple[int, ...]], UserObject],
    random_bits: Callable[[UserObject, int, tuple[int, ...]], UserObject],
    fold_in: Callable[[UserObject, UserObject], UserObject],
    name: str = "<unnamed>",
    tag: str = "?",
) -> PRNGImpl:
    """Defines a random generator.

    Args:
        key_shape: Shape of a key's uint32 words, of rank 1.
        seed: From an integer scalar to words.
        split: `(words, shape) -> words of new keys`, of shape `(*shape, *key_shape)`.
        random_bits: `(words, bit_width, shape) -> unsigned integers` of 8, 16, 32 or 64 bits.
        fold_in: `(words, uint32 scalar) -> words` of another key.
        name: Its name for users; a number is added to the default name.
        tag: The tag in the dtype of its keys, `key<tag>`; by default made up as well.

    Returns:
        The generator, which `axir.random.key` takes as `impl`.

    Raises:
        ParameterError: if name or tag are taken, or keys are not of rank 1.

    >>> import axir, axir.numpy as jnp
    >>> counter = define_prng_impl(
    ...     key_shape=(1,),
    ...     seed=lambda n: jnp.reshape(n, (1,)).astype("uint32"),
    ...     split=lambda key, shape: jnp.broadcast_to(key, (*shape, 1)),
    ...     random_bits=lambda key, width, shape: jnp.full(shape, key[0], f"uint{width}"),
    ...     fold_in=lambda key, data: key + data,
    ...     name="counter",
    ...     tag="count",
    ... )
    >>> axir.random.bits(axir.random.fold_in(axir.random.key(3, impl=counter), 4))
    Array(7, dtype=uint32)
    """
    number = next(_numbers)
    if name == "<unnamed>":
        name = f"<unnamed {number}>"
    if tag == "?":
        tag = f"unnamed{number}"
    impl = PRNGImpl(key_shape, seed, split, random_bits, fold_in, name, tag)
    register(impl)
    return impl


def random_seed(seeds: object, impl: object) -> UserObject:
    """Makes a typed key from a seed with a generator; see `axir.random.key`."""
    return key(seeds, impl=impl)


def seed_with_impl(impl: object, seed: object) -> UserObject:
    """Makes a typed key from a seed with a generator; see `axir.random.key`."""
    return key(seed, impl=impl)
