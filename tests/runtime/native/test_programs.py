"""Kernels that are called with arrays of the host: accepted arrays, results, many threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from iree.compiler import ir
from support.native_programs import kernel_of, loaded
from support.object_files import object_of

import axir
import axir.numpy as jnp
from axir import lax
from axir.dialect.core.context import context
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.function_tracing import trace_function
from axir.runtime.compiler.native_compilation import compile_natively
from axir.runtime.native.kernel_program import ARGUMENT, CONSTANT, RESULT, KernelProgram
from axir.runtime.native.object_files import ObjectFileError
from axir.runtime.native.programs import NativeProgram

SINGLE = np.dtype(np.float32)
X = np.arange(12, dtype=np.float32).reshape(3, 4)


def native(function: Callable[..., Any], *arguments: np.ndarray) -> NativeProgram:
    types = [ShapedArray(x.shape, x.dtype) for x in arguments]
    traced = trace_function(lambda *xs: axir.tree.leaves(function(*xs)), types, name="program")
    assert not traced.captured
    kernel = kernel_of(traced)
    assert isinstance(kernel, KernelProgram), kernel
    return loaded(traced, kernel)


@pytest.fixture(scope="module")
def tripled() -> NativeProgram:
    return native(lambda x: x * 3 + 1, X)


class Named(np.ndarray):
    """A subclass of arrays, as users write."""


def misaligned() -> np.ndarray:
    content = np.empty(X.nbytes + 1, np.uint8)
    x = content[1:].view(np.float32).reshape(X.shape)
    x[...] = X
    assert not x.flags.aligned
    return x


def read_only() -> np.ndarray:
    x = X.copy()
    x.flags.writeable = False
    return x


ARRAYS = {
    "in the order of C": lambda: X,
    "in the order of Fortran": lambda: np.asfortranarray(X),
    "every second": lambda: np.repeat(X, 2, 1)[:, ::2],
    "backwards": lambda: X[::-1, ::-1].copy()[::-1, ::-1],
    "one row repeated": lambda: np.broadcast_to(X[1], X.shape),
    "a subclass": lambda: X.view(Named),
    "misaligned": misaligned,
    "read only": read_only,
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_lie_as_they_like(tripled: NativeProgram, name: str) -> None:
    x = ARRAYS[name]()
    before = np.array(x)
    [result] = tripled([x])
    np.testing.assert_array_equal(result, before * 3 + 1, strict=True)
    np.testing.assert_array_equal(x, before)
    assert type(result) is np.ndarray
    assert result.base is None


@pytest.mark.parametrize(
    "name",
    ["in the order of Fortran", "every second", "one row repeated", "a subclass", "misaligned"],
)
def test_the_entry_does_nothing_with_what_it_cannot_read(tripled: NativeProgram, name: str) -> None:
    result = np.full(X.shape, 7, np.float32)
    assert tripled.entry(ARRAYS[name](), result) is None
    assert tripled.entry(X, np.asfortranarray(result)) is None
    np.testing.assert_array_equal(result, 7)
    assert tripled.entry(X, result) is X


@pytest.mark.parametrize(
    "given", [(), (X,), (X, X, X), (None, X), (3.0, X), ("text", X), ([1.0], X), (np.float32(3), X)]
)
def test_the_entry_takes_arrays_alone_and_as_many_as_it_wants(
    tripled: NativeProgram, given: tuple[Any, ...]
) -> None:
    before = X.copy()
    assert tripled.entry(*given) is None
    np.testing.assert_array_equal(X, before)


def test_arrays_of_no_axis_and_without_elements() -> None:
    one = np.asarray(2.5, np.float32)
    [result] = native(lambda x: x * 2, one)([one])
    np.testing.assert_array_equal(result, np.float32(5), strict=True)
    assert result.shape == ()
    none = np.empty((0, 3), np.float32)
    total, same = native(lambda x: (jnp.sum(x), x), none)([none])
    np.testing.assert_array_equal(total, np.float32(0))
    assert same is none


CONSTANTS = """
func.func @main(%x: tensor<3x4xf32>) -> (tensor<4xf32>, tensor<3x4xf32>, tensor<2x2xf32>) {
  %c = stablehlo.constant dense<[3.0, 0x7FC00001, -0.0, 1.0e-40]> : tensor<4xf32>
  %0 = stablehlo.broadcast_in_dim %c, dims = [1] : (tensor<4xf32>) -> tensor<3x4xf32>
  %1 = stablehlo.multiply %x, %0 : tensor<3x4xf32>
  %2 = stablehlo.reshape %c : (tensor<4xf32>) -> tensor<2x2xf32>
  return %c, %1, %2 : tensor<4xf32>, tensor<3x4xf32>, tensor<2x2xf32>
}
"""


def test_constants_come_back_and_are_read() -> None:
    bits = np.asarray([0x40400000, 0x7FC00001, 0x80000000, 71362], np.uint32)
    module = ir.Module.parse(CONSTANTS, context())
    kernel = compile_natively(module, CONSTANTS, "constants")
    assert isinstance(kernel, KernelProgram), kernel
    kinds = [((4,), SINGLE), ((3, 4), SINGLE), ((2, 2), SINGLE)]
    program = NativeProgram(kernel, kinds)
    assert len(program.constants) == 1
    first, product, square = program([X])
    np.testing.assert_array_equal(first.view(np.uint32), bits, strict=True)
    np.testing.assert_array_equal(square.view(np.uint32), bits.reshape(2, 2), strict=True)
    np.testing.assert_array_equal(product[:, 0], X[:, 0] * 3, strict=True)
    assert np.isnan(product[:, 1]).all()
    assert program([X])[0] is first  # it must not be written to
    assert not first.flags.writeable


def test_arguments_are_handed_on_in_the_form_that_was_asked_for() -> None:
    program = native(lambda x, y: (y, x + y, x), X, X)
    results = program([X, X + 1])
    np.testing.assert_array_equal(results[0], X + 1, strict=True)
    assert results[2] is X
    assert program.handed_on == (1, 0)
    assert not program.is_direct
    [pieces] = native(lambda x: lax.bitcast_convert_type(x, np.uint8), X)([X])
    np.testing.assert_array_equal(pieces, X.view(np.uint8).reshape(3, 4, 4), strict=True)
    [flat] = native(lambda x: x.reshape(-1), X.astype(np.complex64))([X.astype(np.complex64)])
    np.testing.assert_array_equal(flat, X.reshape(-1).astype(np.complex64), strict=True)


def test_one_array_is_several_results_of_other_types() -> None:
    returns = ((RESULT, 0), (RESULT, 0), (ARGUMENT, 0))
    kernel = KernelProgram((), (), (), (("float32", (3, 4)),), 0, returns)
    kinds = [((3, 4), SINGLE), ((12,), np.dtype(np.int32)), ((3, 4, 4), np.dtype(np.uint8))]
    program = NativeProgram(kernel, kinds)
    written = [np.zeros(*kind) for kind in program.written]
    results = program.returned([X], written)
    assert [(x.shape, x.dtype) for x in results] == kinds


def test_workspaces_are_taken_in_turns_and_nobody_sees_them() -> None:
    def function(x: Any) -> Any:
        return jnp.cumsum(jnp.cumsum(x)[::-1]), jnp.max(x)

    x = np.random.default_rng(0).uniform(0, 1, 5000).astype(np.float32)
    program = native(function, x)
    assert len(program.written) == 2
    wanted = np.cumsum(np.cumsum(x)[::-1])
    for _ in range(3):
        result, largest = program([x])
        np.testing.assert_allclose(result, wanted, rtol=1e-5)
        np.testing.assert_array_equal(largest, x.max())
    rooms = [program.make_room(), program.make_room()]
    spaces = [room[-1] for room in rooms]
    assert len({id(x) for room in rooms for x in room}) == 6
    for room in rooms:
        program.give_back(room)
    assert program.make_room()[-1] is spaces[1]
    assert program.make_room()[-1] is spaces[0]


def test_a_kernel_leaves_the_processor_as_it_was(tripled: NativeProgram) -> None:
    least = np.full(X.shape, 1e-44, np.float32)
    np.testing.assert_array_equal(native(lambda x: x * 3, X)([least])[0], 0)
    tripled([X])
    assert (least * np.float32(3) > 0).all()


def test_many_threads_call_one_program_at_once() -> None:
    def looped(x: Any) -> Any:
        return lax.fori_loop(0, 50, lambda _, c: jnp.sort(c * 1.01, axis=0), x), x[:2] * 2

    program = native(looped, X)
    inputs = [X + number for number in range(8)]
    wanted = [program([x])[0].copy() for x in inputs]
    wrong: list[int] = []
    start = threading.Barrier(len(inputs))

    def call(number: int) -> None:
        start.wait()
        for _ in range(200):
            swept, doubled = program([inputs[number]])
            if not np.array_equal(swept, wanted[number]):
                wrong.append(number)
            if not np.array_equal(doubled, inputs[number][:2] * 2):
                wrong.append(number)

    threads = [threading.Thread(target=call, args=(number,)) for number in range(len(inputs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def _without_code(returns: Sequence[tuple[int, int]]) -> KernelProgram:
    constant = ("int32", (2,), np.asarray([5, 6], np.int32).tobytes())
    return KernelProgram((), (), (constant,), (), 0, tuple(returns))


def test_a_program_without_a_kernel_returns_what_it_has() -> None:
    program = NativeProgram(
        _without_code([(ARGUMENT, 1), (CONSTANT, 0)]), [((3, 4), SINGLE), ((2,), np.dtype("u4"))]
    )
    first, second = program([None, X])  # type: ignore[list-item]
    assert first is X
    np.testing.assert_array_equal(second, np.asarray([5, 6], np.uint32), strict=True)
    assert program.size == 0


def test_code_without_an_entry_is_refused() -> None:
    code = object_of("define void @other() {\n  ret void\n}\n")
    kernel = KernelProgram((code,), (), (), (), 0, (), libraries=(code,))
    with pytest.raises(ObjectFileError, match="has no function 'axir_entry'"):
        NativeProgram(kernel, [])
