"""The generators `rbg` and `unsafe_rbg`: bits from `rng_bit_generator`.

A key is a state of that op, two halves of two words. `rbg` makes new keys as threefry does, half by
half. `unsafe_rbg` makes them with `rng_bit_generator`, without a proof that streams differ.
"""

from __future__ import annotations

import math

from axir.dialect.core import dtypes
from axir.dialect.core.extended_dtypes import PRNGImpl
from axir.dialect.ops.elementwise.comparison import xor
from axir.dialect.ops.indexing.static_slicing import slice, slice_in_dim
from axir.dialect.ops.shape.concatenation import concatenate
from axir.dialect.ops.shape.rearranging import reshape
from axir.dialect.program.rules import Value

from . import threefry
from .bit_generators import rng_bit_generator

# `unsafe_rbg` hashes with so many rows of bits, and uses one of them.
_ROUNDS = 10


def seed(number: Value) -> Value:
    """Makes the words of a key from an integer scalar."""
    half = threefry.seed(number)
    return concatenate([half, half], 0)


def random_bits(key: Value, bit_width: int, shape: tuple[int, ...]) -> Value:
    """Draws unsigned integers of 8, 16, 32 or 64 bits."""
    return rng_bit_generator(key, shape, threefry.UNSIGNED[bit_width])[1]


def split(key: Value, shape: tuple[int, ...]) -> Value:
    """Makes the words of new keys, each half by threefry."""
    halves = [threefry.split(half, shape) for half in _halves(key)]
    return concatenate(halves, len(shape))


def fold_in(key: Value, data: Value) -> Value:
    """Makes the words of a key from a key and a uint32 scalar, each half by threefry."""
    return concatenate([threefry.fold_in(half, data) for half in _halves(key)], 0)


def _halves(key: Value) -> tuple[Value, Value]:
    return slice_in_dim(key, 0, 2), slice_in_dim(key, 2, 4)


def unsafe_split(key: Value, shape: tuple[int, ...]) -> Value:
    """Makes the words of new keys from bits of the key."""
    count = math.prod(shape)
    rows = rng_bit_generator(key, (_ROUNDS * count, 4), dtypes.uint32)[1]
    return reshape(slice(rows, (0, 0), rows.shape, (_ROUNDS, 1)), (*shape, 4))


def unsafe_fold_in(key: Value, data: Value) -> Value:
    """Makes the words of a key from a key and bits of a uint32 scalar."""
    rows = rng_bit_generator(seed(data), (_ROUNDS, 4), dtypes.uint32)[1]
    return xor(key, reshape(slice_in_dim(rows, _ROUNDS - 1, _ROUNDS), (4,)))


RBG = PRNGImpl((4,), seed, split, random_bits, fold_in, "rbg", "rbg")
UNSAFE_RBG = PRNGImpl((4,), seed, unsafe_split, random_bits, unsafe_fold_in, "unsafe_rbg", "urbg")
