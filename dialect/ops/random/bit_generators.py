"""`rng_bit_generator`, random bits from a counter, and the generators `rbg` and `unsafe_rbg`.

The state is a 64-bit key and a 64-bit counter. Threefry-2x32 gives two words per count (see
`random_bits.py`), Philox-4x32 with 10 rounds four; its counter has the key as upper half. Both are
from Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011. Each
element gets the same word of the same count as in XLA's operation, so the bits are equal.

A key of `rbg` and `unsafe_rbg` is a state of that op, two halves of two words. `rbg` makes new keys
as threefry does, half by half. `unsafe_rbg` makes them with `rng_bit_generator`, without a proof
that streams differ.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import DTypeLike, Extent, Param, UserObject
from axir.dialect.core.array import from_numpy
from axir.dialect.core.config import config
from axir.dialect.core.errors import DTypeError, ParameterError, ShapeError, one_layout
from axir.dialect.core.extended_dtypes import PRNGImpl
from axir.dialect.core.symbolic_dims import is_open
from axir.dialect.core.symbolic_zeros import Zero
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.arithmetic import add, mul
from axir.dialect.ops.elementwise.comparison import (
    and_,
    lt,
    or_,
    select_n,
    shift_left,
    shift_right_logical,
    xor,
)
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.elementwise.family import as_value, full
from axir.dialect.ops.elementwise.multiply_high import mulhi
from axir.dialect.ops.indexing.static_slicing import index_in_dim, slice, slice_in_dim
from axir.dialect.ops.shape.broadcasting import broadcast
from axir.dialect.ops.shape.concatenation import concatenate
from axir.dialect.ops.shape.constants import iota
from axir.dialect.ops.shape.movement import integers
from axir.dialect.ops.shape.rearranging import moveaxis, reshape
from axir.dialect.ops.shape.stacking import stack, unstack
from axir.dialect.program.function import Function
from axir.dialect.program.function_rules import LoweringContext
from axir.dialect.program.function_tracing import trace_function
from axir.dialect.program.module_writer import embed_captures
from axir.dialect.program.op_table import declare
from axir.dialect.program.operation import Sample
from axir.dialect.program.parameters import Ints
from axir.dialect.program.primitive import Primitive
from axir.dialect.program.rules import Operand, Tangent, Value
from axir.dialect.program.tracer import Tracer

from . import threefry
from .random_bits import threefry2x32
from .threefry import count_up

_WORD = dtypes.uint32
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10
# StableHLO's names of the algorithms.
_NAMES = ("DEFAULT", "THREE_FRY", "PHILOX")
# dtypes and shapes of states.
_STATES = ((dtypes.uint32, (4,)), (dtypes.uint64, (2,)))


class RandomAlgorithm(enum.IntEnum):
    """The algorithms of `rng_bit_generator`; the default is Philox."""

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2


def rng_bit_generator(
    key: Operand,
    shape: Sequence[int],
    dtype: DTypeLike = np.uint32,
    algorithm: UserObject = RandomAlgorithm.RNG_DEFAULT,
    *,
    out_sharding: None = None,
) -> tuple[Value, Value]:
    """Returns random bits and the state for the next ones.

    Programs should use `axir.random`; this function gives access to the generators.

    Args:
        key: The state, four uint32 words or two uint64: key and counter, low words first.
        shape: Shape of the bits.
        dtype: An unsigned integer dtype.
        algorithm: A `RandomAlgorithm`.
        out_sharding: Only None; there is one layout.

    Returns:
        The next state, and the bits.

    Raises:
        DTypeError: for bits that are not unsigned integers, or a state of another dtype.
        ShapeError: for a state of another shape.
        ParameterError: for an unknown algorithm.

    >>> state, bits = rng_bit_generator(np.array([1, 2, 3, 4], np.uint32), (2,))
    >>> state
    Array([1, 2, 4, 4], dtype=uint32)
    """
    if out_sharding is not None:
        raise one_layout("rng_bit_generator", out_sharding)
    shape = integers("rng_bit_generator", "shape", shape)
    dtype = dtypes.canonicalize_dtype(dtype)
    if not dtypes.is_unsigned(dtype):
        raise DTypeError(
            f"rng_bit_generator makes bits of unsigned integer dtypes, not {dtype}.",
            "Take uint32 bits and convert them with lax.bitcast_convert_type.",
        )
    try:
        algorithm = RandomAlgorithm(algorithm)
    except ValueError:
        raise ParameterError(
            f"rng_bit_generator: {algorithm!r} is no algorithm.",
            "Pass a member of lax.RandomAlgorithm.",
        ) from None
    bits: list[Value] = _rng_bit_generator.bind(
        as_value(key), shape=shape, dtype=dtype, algorithm=int(algorithm)
    )
    return bits[0], bits[1]


def _generate(
    key: Value, shape: tuple[int, ...], dtype: np.dtype, algorithm: int
) -> tuple[Value, Value]:
    with config(jax_enable_x64=True):  # words of 64 bits stay as they are
        state = _words(key)
        generate = _threefry if algorithm == RandomAlgorithm.RNG_THREE_FRY else _philox
        bits, count = generate(state, shape, dtype)
        low, high = _advanced(state[2], state[3], full((), count & 0xFFFFFFFF, _WORD))
        return _state_like(key, [*state[:2], low, high]), bits


def _counts(state: Sequence[Value], count: int) -> Value:
    """Returns the numbers 0, 1, ... as part of the program: devices may compute parts of them."""
    like = state[0]
    return count_up(like, _WORD, count) if type(like) is Tracer else iota(_WORD, count)


def _dimensions(
    operands: Sequence[ShapedArray], results: Sequence[ShapedArray], **params: Param
) -> Function:
    """Returns the function that computes the bits, each from its own count."""
    return trace_function(lambda key: _generate(key, **params), operands, name="rng_bit_generator")


def _infer(
    key: ShapedArray, *, shape: tuple[int, ...], dtype: np.dtype, algorithm: int
) -> tuple[ShapedArray, ShapedArray]:
    if (key.dtype, key.shape) not in _STATES:
        if key.dtype not in (dtypes.uint32, dtypes.uint64):
            raise DTypeError(f"rng_bit_generator: the state {key} must be uint32 or uint64.")
        raise ShapeError(
            f"rng_bit_generator: the state {key} must be four words of uint32, or two of uint64."
        )
    return key, ShapedArray(shape, dtype)


def _evaluate(key: np.ndarray, **params: Param) -> list[np.ndarray]:
    return [x.host() for x in _generate(from_numpy(key), **params)]  # type: ignore[attr-defined]


def _batch(
    operands: Sequence[Value],
    axes: Sequence[int | None],
    *,
    shape: tuple[int, ...],
    **params: object,
) -> tuple[list[Value], list[int]]:
    # As in JAX, the first state makes the bits of all lanes, and only this state advances.
    (axis,) = axes
    assert axis is not None
    keys = moveaxis(operands[0], axis, 0)
    size = keys.shape[0]
    first = index_in_dim(keys, 0, keepdims=False)
    state, bits = _rng_bit_generator.bind(first, shape=(size, *shape), **params)
    moved = concatenate([reshape(state, (1, *state.shape)), slice_in_dim(keys, 1, size)], 0)
    return [moved, bits], [0, 0]


def _lower(context: LoweringContext, key: ir.Value, **params: Param) -> list[ir.Value]:
    if is_open(params["shape"]):
        return _lower_open(key, **params)
    generate = trace_function(lambda x: _generate(x, **params), context.types_in)
    return context.inline(embed_captures(generate), key)


def _lower_open(
    key: ir.Value, *, shape: tuple[Extent, ...], dtype: np.dtype, algorithm: int
) -> list[ir.Value]:
    """Writes StableHLO's operation, because the extents determine which word is where."""
    is_short = key.type.shape[0] == 4
    state = key
    if is_short:
        state = hlo.bitcast_convert(hlo.reshape(key, (2, 2)), dtypes.uint64, (2,))
    drawn = dtype if dtype.itemsize >= 4 else _WORD
    state, bits = hlo.rng_bit_generator(state, shape, drawn, _NAMES[algorithm])
    if is_short:
        state = hlo.reshape(hlo.bitcast_convert(state, _WORD, (2, 2)), (4,))
    return [state, hlo.convert(bits, dtype)]


def _jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], outs: Sequence[Value], **params: object
) -> Sequence[Tangent]:
    return [Zero(out.aval.to_tangent_aval()) for out in outs]


def _samples() -> list[Sample]:
    short, long = np.array([1, 0, 2**32 - 1, 4], np.uint32), np.array([0, 2**64 - 1], np.uint64)
    variants: list[tuple[np.ndarray, tuple[int, ...], np.dtype]] = [
        (short, (), dtypes.uint32),
        (short, (3, 5), dtypes.uint8),
        (short, (0, 2), dtypes.uint16),
        (long, (5,), dtypes.uint64),
        (long, (1, 2, 1, 1, 3, 1), dtypes.uint32),
    ]
    return [
        Sample((key,), {"shape": shape, "dtype": dtype, "algorithm": int(algorithm)})
        for key, shape, dtype in variants
        for algorithm in (RandomAlgorithm.RNG_THREE_FRY, RandomAlgorithm.RNG_PHILOX)
    ]


_rng_bit_generator: Primitive = declare(
    "rng_bit_generator",
    parameters={"shape": Ints, "dtype": np.dtype, "algorithm": int},
    multiple_results=True,
    infer=_infer,
    evaluate=_evaluate,
    jvp=_jvp,
    batch=_batch,
    lower=_lower,
    dimensions=_dimensions,
    samples=_samples,
    unsupported={"transpose": "random bits are integers; no cotangent reaches them."},
)


def _words(key: Value) -> list[Value]:
    """Returns the four words of a state."""
    if key.dtype == dtypes.uint32:
        return list(unstack(key))
    wide = unstack(key)
    shift = full((), 32, dtypes.uint64)
    return [
        convert_element_type(part, _WORD)
        for word in wide
        for part in (_low(word), shift_right_logical(word, shift))
    ]


def _low(word: Value) -> Value:
    return and_(word, full((), 0xFFFFFFFF, dtypes.uint64))


def _state_like(key: Value, words: Sequence[Value]) -> Value:
    if key.dtype == dtypes.uint32:
        return stack(words)
    return stack([_joined(words[0], words[1]), _joined(words[2], words[3])])


def _joined(low: Value, high: Value) -> Value:
    """Returns the 64-bit integers of low and high words."""
    wide = [convert_element_type(x, dtypes.uint64) for x in (low, high)]
    return or_(wide[0], shift_left(wide[1], full((), 32, dtypes.uint64)))


def _advanced(low: Value, high: Value, by: Value) -> tuple[Value, Value]:
    """Adds to a counter of two words."""
    total = add(low, by)
    return total, add(high, _carry(total, by))


def _carry(total: Value, addend: Value) -> Value:
    """Returns 1 where a sum has wrapped around, else 0."""
    return select_n(lt(total, addend), full((), 0, _WORD), full((), 1, _WORD))


# Threefry --------------------------------------------------------------------------------------


def _threefry(state: Sequence[Value], shape: tuple[int, ...], dtype: np.dtype) -> tuple[Value, int]:
    """Returns bits, and the number of used counts."""
    size = math.prod(shape)
    if dtype.itemsize == 8:
        first, second = _encrypted(state, size)
        return reshape(_joined(first, second), shape), size
    halved = _halved_axis(shape)
    if halved is None:
        first, _ = _encrypted(state, size)
        return reshape(convert_element_type(first, dtype), shape), size
    # The two words of a count are neighbours along the axis.
    half = (*shape[:halved], (shape[halved] + 1) // 2, *shape[halved + 1 :])
    count = math.prod(half)
    pair = stack([reshape(x, half) for x in _encrypted(state, count)], halved + 1)
    merged = reshape(pair, (*half[:halved], 2 * half[halved], *half[halved + 1 :]))
    bits = slice_in_dim(merged, 0, shape[halved], 1, halved)
    return convert_element_type(bits, dtype), count


def _halved_axis(shape: tuple[int, ...]) -> int | None:
    """Returns the first axis of even extent, or else the longest."""
    even = [axis for axis, extent in enumerate(shape) if extent % 2 == 0]
    if even or not shape:
        return even[0] if even else None
    return max(range(len(shape)), key=shape.__getitem__)


def _encrypted(state: Sequence[Value], count: int) -> list[Value]:
    low, high = _advanced(state[2], state[3], _counts(state, count))
    return threefry2x32(broadcast(state[0], (count,)), broadcast(state[1], (count,)), low, high)


# Philox ----------------------------------------------------------------------------------------


def _philox(state: Sequence[Value], shape: tuple[int, ...], dtype: np.dtype) -> tuple[Value, int]:
    """Returns bits, and the number of used counts."""
    size = math.prod(shape)
    per_count = 2 if dtype.itemsize == 8 else 4
    count = -(-size // per_count)
    words = _philox_rounds(_philox_counters(state, count), state[0], state[1])
    if dtype.itemsize == 8:
        words = [_joined(words[0], words[1]), _joined(words[2], words[3])]
    flat = reshape(stack(words, 1), (count * per_count,))
    bits = slice_in_dim(flat, 0, size, 1, 0)
    return reshape(convert_element_type(bits, dtype), shape), count


def _philox_counters(state: Sequence[Value], count: int) -> list[Value]:
    """Returns the 128-bit counters; their upper half is the key."""
    addend = _counts(state, count)
    words = []
    for word in (*state[2:], *state[:2]):
        words.append(add(word, addend))
        addend = _carry(words[-1], addend)
    return words


def _philox_rounds(words: Sequence[Value], key0: Value, key1: Value) -> list[Value]:
    multipliers = [full((), m, _WORD) for m in _MULTIPLIERS]
    steps = [full((), s, _WORD) for s in _KEY_STEPS]
    a, b, c, d = words
    for _ in range(_ROUNDS):
        high_a, low_a = mulhi(a, multipliers[0]), mul(a, multipliers[0])
        high_c, low_c = mulhi(c, multipliers[1]), mul(c, multipliers[1])
        a, b = xor(xor(high_c, b), key0), low_c
        c, d = xor(xor(high_a, d), key1), low_a
        key0, key1 = add(key0, steps[0]), add(key1, steps[1])
    return [a, b, c, d]


# `unsafe_rbg` hashes with so many rows of bits, and uses one of them.


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
