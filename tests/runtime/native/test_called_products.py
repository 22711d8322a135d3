"""Products by the function that native programs share: bit by bit the numbers of IREE."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.object_files import object_of

import axir
import axir.numpy as jnp
from axir.dialect.core.config import config
from axir.dialect.program.function_tracing import trace_function
from axir.runtime import default_device
from axir.runtime.calls.compiled_function import CompiledFunction
from axir.runtime.calls.executable import Executable
from axir.runtime.calls.native_executable import NativeExecutable
from axir.runtime.compiler.invocation.product_function import product_function
from axir.runtime.native.object_files import load_object

pytestmark = pytest.mark.chooses_compiler
RNG = np.random.default_rng(11)


def floats(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return RNG.normal(size=shape).astype(dtype)


def small_integers(*shape: int) -> np.ndarray:
    return RNG.integers(-99, 99, shape).astype(np.int8)


def product(a: Any, b: Any) -> Any:
    return a @ b


def transposed_right(a: Any, b: Any) -> Any:
    return a @ b.T


def activated(a: Any, b: Any, bias: Any, scale: Any) -> Any:
    return jnp.maximum(a @ b * scale + bias, 0)


def updated(a: Any, b: Any, weights: Any) -> Any:
    return weights - 0.1 * (a @ b).T


def used_twice(a: Any, b: Any, c: Any) -> Any:
    return jnp.tanh(a @ b + c), a @ b


DOUBLE = np.float64
# Extents that are no multiples of a tile's; sums of one depth, of several, and in several parts.
CASES: list[tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = [
    (product, (floats(129, 67), floats(67, 53))),
    (product, (floats(40, 1100), floats(1100, 45))),
    (lambda a, b: a.T @ b, (floats(1100, 40), floats(1100, 45))),
    (transposed_right, (floats(37, 700), floats(333, 700))),
    (product, (floats(2, 512 * 64 + 700), floats(512 * 64 + 700, 3))),
    (product, (floats(129, 67, dtype=DOUBLE), floats(67, 53, dtype=DOUBLE))),
    (transposed_right, (floats(61, 600, dtype=DOUBLE), floats(49, 600, dtype=DOUBLE))),
    (
        lambda a, b: jnp.einsum("bhqd,bhkd->bhqk", a, b),
        (floats(2, 3, 33, 20), floats(2, 3, 35, 20)),
    ),
    (lambda a, b: jnp.einsum("qhd,khd->hqk", a, b), (floats(33, 3, 40), floats(35, 3, 40))),
    (lambda a, b: jnp.einsum("bij,jk->bik", a, b), (floats(5, 17, 40), floats(40, 31))),
    (activated, (floats(70, 80), floats(80, 19), floats(19), floats(70, 1))),
    (updated, (floats(70, 80), floats(80, 219), floats(219, 70))),
    (used_twice, (floats(70, 900), floats(900, 50), floats(70, 50))),
    (product, (floats(100, 90, dtype=np.float16), floats(90, 70, dtype=np.float16))),
    (product, (floats(3, 200, dtype=DOUBLE), floats(200, 513))),
    (product, (small_integers(60, 80), small_integers(80, 90))),
    (product, (floats(300, 2), floats(2, 300))),
]


def test_products_of_all_kinds_are_those_of_iree() -> None:
    counts = [len(arguments) for _, arguments in CASES]

    def all_cases(*arrays: Any) -> list[Any]:
        taken = iter(arrays)
        groups = [[next(taken) for _ in range(count)] for count in counts]
        made = [function(*group) for (function, _), group in zip(CASES, groups, strict=True)]
        return axir.tree.leaves(made)

    arrays = [jnp.asarray(x) for _, arguments in CASES for x in arguments]
    traced = trace_function(all_cases, [x.type for x in arrays], name="products")
    results = []
    for choice, kind in (("native", NativeExecutable), ("iree", Executable)):
        with config(axir_compiler=choice):
            program = CompiledFunction(traced, default_device())
        assert isinstance(program._executable, kind)
        results.append([x.host() for x in program.run(arrays)])
    for native, other in zip(*results, strict=True):
        np.testing.assert_array_equal(native, other, strict=True)
    exact = CASES[0][1][0].astype(DOUBLE) @ CASES[0][1][1].astype(DOUBLE)
    np.testing.assert_allclose(results[0][0], exact, atol=1e-5)


@pytest.mark.parametrize("vector_bytes", [16, 32, 64])
@pytest.mark.parametrize(("element", "dtype"), [("f32", np.float32), ("f64", np.float64)])
def test_the_function_is_right_for_registers_of_each_width(
    element: str, dtype: Any, vector_bytes: int
) -> None:
    code = load_object(object_of(product_function(element, vector_bytes).decode()), {})
    address = code.address_of(f"axir_product_{element}")
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 13)(address)
    for rows, columns, length in ((1, 1, 1), (5, 37, 20), (9, 64, 7)):
        a, b = floats(rows, length, dtype=dtype), floats(length, columns, dtype=dtype)
        for right in (b, np.asfortranarray(b)):
            steps = [x // right.itemsize for x in right.strides]
            sums = np.full((rows, columns), np.nan, dtype)
            given = (a.ctypes.data, length, 1, right.ctypes.data, *reversed(steps))
            extents = (sums.ctypes.data, columns, rows, columns, length)
            function(*given, *extents, 6, length > 6)
            np.testing.assert_allclose(sums, a @ b, rtol=1e-5, atol=1e-5)


def test_nothing_is_compiled_for_a_product_alone(tmp_path: Path) -> None:
    """Neither for another shape, nor for operands in another memory order."""
    with config(axir_dump_dir=str(tmp_path), axir_compiler="native"):
        axir.jit(lambda a, b: (a @ b, (a.T @ b.T).T))(floats(70, 70), floats(70, 70))
    [file] = tmp_path.glob("*.kernel.mlir")
    assert "axir_products_f32" in (text := file.read_text())
    assert "axir_product_f32" not in text
    assert "scf.for" not in text.partition("matrix_product")[2]
