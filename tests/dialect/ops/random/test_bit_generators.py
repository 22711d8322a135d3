"""Random bits: generators with a state, and bits of keys."""

from __future__ import annotations

import re
from pathlib import Path

import jax
import numpy as np
import pytest
from jax.extend.random import threefry2x32_p

import axir
from axir import lax
from axir.dialect.core.array import as_array
from axir.dialect.core.errors import DTypeError, ShapeError
from axir.dialect.core.symbolic_zeros import Zero
from axir.dialect.ops.random.random_bits import threefry2x32
from axir.export import load

KEYS = ([1, 2, 3, 4], [5, 6, 2**32 - 1, 2**32 - 1], [2**31, 7, 2**32 - 2, 9])
SHAPES = ((), (4,), (3, 5), (5, 3), (3, 4), (3, 4, 5), (3, 3), (3, 1), (0,), (7,), (0, 3))


@pytest.mark.parametrize("algorithm", list(lax.RandomAlgorithm))
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32"])
def test_bits_and_state_are_those_of_jax(algorithm: int, dtype: str) -> None:
    for words in KEYS:
        key = np.array(words, np.uint32)
        for shape in SHAPES:
            ours = lax.rng_bit_generator(key, shape, dtype, algorithm)
            theirs = jax.lax.rng_bit_generator(key, shape, dtype, int(algorithm))
            for mine, other in zip(ours, theirs, strict=True):
                assert mine.dtype == other.dtype
                np.testing.assert_array_equal(np.asarray(mine), np.asarray(other), f"{shape}")


@pytest.mark.parametrize("algorithm", list(lax.RandomAlgorithm))
def test_long_words_and_keys_are_those_of_jax(algorithm: int) -> None:
    key = np.array([1 + (2 << 32), 3 + (2**32 - 1 << 32)], np.uint64)
    with axir.enable_x64(), jax.enable_x64(True):
        ours = lax.rng_bit_generator(key, (2, 3), "uint64", algorithm)
        theirs = jax.lax.rng_bit_generator(key, (2, 3), "uint64", int(algorithm))
        for mine, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(np.asarray(mine), np.asarray(other))


def test_compiled_bits_are_the_same() -> None:
    key = np.array(KEYS[1], np.uint32)
    generate = lambda k: lax.rng_bit_generator(k, (3, 3))  # noqa: E731
    for compiled, direct in zip(axir.jit(generate)(key), generate(key), strict=True):
        np.testing.assert_array_equal(np.asarray(compiled), np.asarray(direct))


def test_long_keys_of_modules_are_compiled(tmp_path: Path) -> None:
    # Whether the process computes with 64 bits makes no difference.
    kind = "tensor<2xui64>"
    (tmp_path / "bits.mlir").write_text(f"""func.func @main(%s: {kind}) -> ({kind}, {kind}) {{
      %0, %1 = "stablehlo.rng_bit_generator"(%s) {{
        rng_algorithm = #stablehlo<rng_algorithm PHILOX>}} : ({kind}) -> ({kind}, {kind})
      return %0, %1 : {kind}, {kind}
    }}""")
    key = np.array([1 + (2 << 32), 3], np.uint64)
    found = load(tmp_path / "bits.mlir")(key)
    with jax.enable_x64(True):
        wanted = jax.lax.rng_bit_generator(key, (2,), "uint64", 2)
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))


def test_errors_name_what_is_wrong() -> None:
    key = np.array(KEYS[0], np.uint32)
    with pytest.raises(axir.errors.DTypeError, match="unsigned"):
        lax.rng_bit_generator(key, (2,), "int32")
    with pytest.raises(axir.errors.ShapeError, match="four words"):
        lax.rng_bit_generator(key[:2], (2,))
    with pytest.raises(axir.errors.DTypeError, match="uint32 or uint64"):
        lax.rng_bit_generator(key.astype(np.int32), (2,))
    with pytest.raises(axir.errors.ParameterError, match="no algorithm"):
        lax.rng_bit_generator(key, (2,), algorithm=7)


def test_mulhi_agrees_with_jax_at_the_limits() -> None:
    for dtype in ("int8", "uint16", "int32", "uint32"):
        limits = np.iinfo(dtype)
        values = np.array([limits.min, limits.max, 1, 3, limits.max // 3], dtype)
        x, y = np.meshgrid(values, values)
        theirs = np.asarray(jax.lax.mulhi(x, y))
        np.testing.assert_array_equal(np.asarray(lax.mulhi(x, y)), theirs)
        np.testing.assert_array_equal(np.asarray(axir.jit(lax.mulhi)(x, y)), theirs)


def test_mulhi_of_64_bits_compiles() -> None:
    with axir.enable_x64():
        for dtype in ("int64", "uint64"):
            limits = np.iinfo(dtype)
            values = np.array([limits.min, limits.max, 1, 3, limits.max // 3, 1 << 40], dtype)
            x, y = np.meshgrid(values, values)
            pairs = zip(x.ravel().tolist(), y.ravel().tolist(), strict=True)
            exact = [a * b >> 64 for a, b in pairs]
            for function in (lax.mulhi, axir.jit(lax.mulhi)):
                assert np.asarray(function(x, y)).ravel().tolist() == exact


ZERO = np.uint32(0)

# From the file `kat_vectors` of Random123 (threefry2x32, 20 rounds): counter, key, result.
KNOWN_ANSWERS = [
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
]


@pytest.mark.parametrize("size", [1, 4, 5, 40000])  # the ways of computing few and many
@pytest.mark.parametrize(("counter", "key", "result"), KNOWN_ANSWERS)
def test_known_answers(
    counter: tuple[int, int], key: tuple[int, int], result: tuple[int, int], size: int
) -> None:
    words = [np.full(size, word, np.uint32) for word in counter]
    bits = threefry2x32(*map(np.uint32, key), *words)
    for found, expected in zip(bits, result, strict=True):
        assert found.dtype == np.uint32
        np.testing.assert_array_equal(found.host(), np.full(size, expected, np.uint32))


@pytest.mark.parametrize(
    ("key_shape", "counter_shape"),
    [((), ()), ((), (3,)), ((), (7, 11)), ((2, 3), (2, 3)), ((20000,), (20000,)), ((), (0, 2))],
)
def test_bits_equal_those_of_jax(
    key_shape: tuple[int, ...], counter_shape: tuple[int, ...]
) -> None:
    generator = np.random.default_rng(1)
    shapes = [key_shape, key_shape, counter_shape, counter_shape]
    words = [np.asarray(generator.integers(0, 2**32, shape, np.uint32)) for shape in shapes]
    expected = threefry2x32_p.bind(*words)
    for found, reference in zip(threefry2x32(*words), expected, strict=True):
        assert found.shape == counter_shape
        np.testing.assert_array_equal(found.host(), reference)


def test_operands_are_left_alone() -> None:
    counters = np.arange(1000, dtype=np.uint32)
    operand = as_array(counters)
    threefry2x32(ZERO, ZERO, operand, operand)
    np.testing.assert_array_equal(operand.host(), counters)


def test_bits_have_no_derivative() -> None:
    outs = threefry2x32(ZERO, ZERO, ZERO, ZERO)
    tangents = [Zero(out.aval.to_tangent_aval()) for out in outs] * 2
    rule = threefry2x32.primitive.jvp
    assert [type(t) for t in rule([ZERO] * 4, tangents, outs)] == [Zero, Zero]


def test_other_dtypes_are_refused() -> None:
    text = "threefry2x32 takes four uint32 operands (two key words, two counter words), but got"
    with pytest.raises(DTypeError, match=re.escape(text)):
        threefry2x32(ZERO, ZERO, np.float32(0), ZERO)


def test_other_shapes_are_refused() -> None:
    text = "threefry2x32 requires operands of equal shape (or scalars)"
    with pytest.raises(ShapeError, match=re.escape(text)):
        threefry2x32(ZERO, ZERO, np.zeros(3, np.uint32), np.zeros(4, np.uint32))
