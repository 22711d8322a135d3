"""Random bits: `threefry2x32`, the counter-based generator behind all random numbers.

Threefry with two 32-bit words and 20 rounds, as in Salmon, Moraes, Dror and Shaw, "Parallel Random
Numbers: As Easy as 1, 2, 3", SC 2011. Elsewhere: keys, splitting and distributions (frontend).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core import dtypes
from axir.dialect.core.errors import DTypeError
from axir.dialect.core.symbolic_zeros import Zero
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.family import as_value
from axir.dialect.ops.elementwise.operand_shapes import align, broadcast_shape
from axir.dialect.program.dimensions import position_wise
from axir.dialect.program.function_rules import LoweringContext
from axir.dialect.program.op_table import declare
from axir.dialect.program.operation import Sample
from axir.dialect.program.rules import BatchAxes, Operand, Tangent, Value

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA
_MASK = 0xFFFFFFFF
# (left, right) shift amounts of the 20 rounds, as arrays: the fastest form for NumPy's shifts.
_SHIFTS = tuple(
    tuple((np.array(r, np.uint32), np.array(32 - r, np.uint32)) for r in ROTATIONS[group % 2])
    for group in range(5)
)
# Up to this number of elements, Python's integers are faster than NumPy's 120 passes.
_FEW = 64
# Elements per pass: few enough for the working set to stay in the second-level cache.
_CHUNK = 16384


def _infer(
    key0: ShapedArray, key1: ShapedArray, count0: ShapedArray, count1: ShapedArray, /
) -> tuple[ShapedArray, ShapedArray]:
    operands = (key0, key1, count0, count1)
    if any(x.dtype != dtypes.uint32 for x in operands):
        raise DTypeError(
            "threefry2x32 takes four uint32 operands (two key words, two counter words), but got "
            f"{' and '.join(map(str, operands))}.",
            "Cast with x.astype('uint32').",
        )
    shape = broadcast_shape("threefry2x32", operands, stretches=False)
    result = ShapedArray(shape, dtypes.uint32)
    return result, result


def _evaluate(*operands: np.ndarray) -> list[np.ndarray]:
    shape = next((x.shape for x in operands if x.shape), ())
    size = math.prod(shape)
    if size <= _FEW:
        return _evaluate_few(operands, shape, size)
    key1, key2, x1, x2 = (x.reshape(-1) if x.shape else x.reshape(1) for x in operands)
    first, second = np.empty(size, np.uint32), np.empty(size, np.uint32)
    first[...], second[...] = x1, x2
    for start in range(0, size, _CHUNK):
        part = slice(start, start + _CHUNK)
        keys = (key if key.size == 1 else key[part] for key in (key1, key2))
        _encrypt(first[part], second[part], *keys)
    return [first.reshape(shape), second.reshape(shape)]


def _encrypt(x: np.ndarray, y: np.ndarray, key1: np.ndarray, key2: np.ndarray) -> None:
    """Encrypts counters in place."""
    add, left, right = np.add, np.left_shift, np.right_shift
    join, mix = np.bitwise_or, np.bitwise_xor
    schedule = (key1, key2, key1 ^ key2 ^ np.uint32(PARITY))
    high = np.empty_like(y)
    add(x, key1, x)
    add(y, key2, y)
    for group, shifts in enumerate(_SHIFTS):
        for left_by, right_by in shifts:
            add(x, y, x)
            left(y, left_by, high)
            right(y, right_by, y)
            join(y, high, y)
            mix(y, x, y)
        add(x, schedule[(group + 1) % 3], x)
        add(y, schedule[(group + 2) % 3] + np.uint32(group + 1), y)


def _evaluate_few(
    operands: Sequence[np.ndarray], shape: tuple[int, ...], size: int
) -> list[np.ndarray]:
    """Encrypts counters as lanes of 64 bits in one Python integer, which has room for carries."""
    ones = _ones(size)
    key1, key2, x, y = (_pack(words, ones) for words in operands)
    mask, parity = ones * _MASK, ones * PARITY
    schedule = (key1, key2, key1 ^ key2 ^ parity)
    x, y = (x + key1) & mask, (y + key2) & mask
    for group in range(5):
        for amount in ROTATIONS[group % 2]:
            x = (x + y) & mask
            y = ((y << amount | y >> 32 - amount) & mask) ^ x
        x = (x + schedule[(group + 1) % 3]) & mask
        y = (y + schedule[(group + 2) % 3] + ones * (group + 1)) & mask
    return [
        np.frombuffer(lanes.to_bytes(8 * size, "little"), "<u4")[::2].reshape(shape)
        for lanes in (x, y)
    ]


@cache
def _ones(size: int) -> int:
    """Returns the integer with a one in each lane."""
    return sum(1 << 64 * lane for lane in range(size))


def _pack(words: np.ndarray, ones: int) -> int:
    if not words.shape:
        return words.item() * ones
    return int.from_bytes(words.astype("<u8").tobytes(), "little")


def _lower(context: LoweringContext, *operands: ir.Value) -> list[ir.Value]:
    shape = context.types_out[0].shape
    key1, key2, x, y = hlo.broadcast_operands(operands, shape)

    def number(value: int) -> ir.Value:
        return hlo.full(value, shape, dtypes.uint32)

    schedule = (key1, key2, hlo.xor(hlo.xor(key1, key2), number(PARITY)))
    x, y = hlo.add(x, key1), hlo.add(y, key2)
    for group in range(5):
        for amount in ROTATIONS[group % 2]:
            x = hlo.add(x, y)
            rotated = hlo.or_(
                hlo.shift_left(y, number(amount)), hlo.shift_right_logical(y, number(32 - amount))
            )
            y = hlo.xor(rotated, x)
        x = hlo.add(x, schedule[(group + 1) % 3])
        y = hlo.add(y, hlo.add(schedule[(group + 2) % 3], number(group + 1)))
    return [x, y]


def _jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], outs: Sequence[Value]
) -> Sequence[Tangent]:
    return [Zero(out.aval.to_tangent_aval()) for out in outs]


def _batch(operands: Sequence[Value], axes: BatchAxes) -> tuple[list[Value], list[int]]:
    aligned, axis = align(operands, axes)
    return _threefry2x32.bind(*aligned), [axis, axis]


def _samples() -> list[Sample]:
    generator = np.random.default_rng(0)

    def words(*shape: int) -> np.ndarray:
        return generator.integers(0, 2**32, shape, np.uint32)

    zero, ones = np.zeros((), np.uint32), np.full((), _MASK, np.uint32)
    return [
        Sample((zero, zero, zero, zero)),
        Sample((ones, ones, ones, ones)),
        Sample((words(), words(), words(3), words(3))),
        Sample((words(), words(), words(4, 5), words(4, 5))),
        Sample(tuple(words(1, 2, 1, 1, 3, 1) for _ in range(4))),
        Sample((words(7), words(), words(7), words())),
        Sample((words(), words(), words(0), words(0))),
        Sample((words(), words(), words(17000), words(17000))),
    ]


_threefry2x32 = declare(
    "threefry2x32",
    multiple_results=True,
    infer=_infer,
    evaluate=_evaluate,
    jvp=_jvp,
    dimensions=position_wise,
    batch=_batch,
    lower=_lower,
    samples=_samples,
    unsupported={"transpose": "random bits are integers; no cotangent reaches them."},
)


def threefry2x32(key1: Operand, key2: Operand, x1: Operand, x2: Operand) -> list[Value]:
    """Encrypts pairs of counter words under pairs of key words.

    Args:
        key1: First uint32 words of the keys, a scalar or an array of the counters' shape.
        key2: Second words of the keys.
        x1: First uint32 words of the counters.
        x2: Second words of the counters.

    Returns:
        Two uint32 arrays of random bits, as many as there are counters.

    Raises:
        DTypeError: for operands other than uint32.
        ShapeError: for arrays of different shapes.
    """
    return _threefry2x32.bind(*map(as_value, (key1, key2, x1, x2)))


threefry2x32.primitive = _threefry2x32  # type: ignore[attr-defined]
