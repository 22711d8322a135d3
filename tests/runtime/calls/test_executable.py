"""Calls of compiled programs: every dtype on both CPU drivers, threads, errors, driver choice."""

from __future__ import annotations

import threading
import time

import ml_dtypes
import mpmath
import numpy as np
import pytest

from axir.dialect.core.config import config
from axir.dialect.core.errors import DeletedArrayError, ParameterError
from axir.runtime import (
    LoadError,
    Program,
    RuntimeExecutionError,
    Target,
    aligned_empty,
    compile_module,
    devices,
)

DRIVERS = ("local-sync", "local-task")
ELEMENTS = {
    "i1": np.bool_,
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    "complex<f32>": np.complex64,
    "complex<f64>": np.complex128,
}


def typed_name(element: str) -> str:
    return element.replace("<", "_").replace(">", "")


def identity_and_add(element: str) -> str:
    name = typed_name(element)
    # IREE adds i1 like xor, StableHLO and NumPy like or.
    add = "or" if element == "i1" else "add"
    return f"""
  func.func @identity_{name}(%x: tensor<2x3x{element}>) -> tensor<2x3x{element}> {{
    return %x : tensor<2x3x{element}>
  }}
  func.func @add_{name}(%x: tensor<2x3x{element}>, %y: tensor<2x3x{element}>)
      -> tensor<2x3x{element}> {{
    %0 = stablehlo.{add} %x, %y : tensor<2x3x{element}>
    return %0 : tensor<2x3x{element}>
  }}"""


OTHERS = """
  func.func @sine(%x: tensor<64xf64>) -> tensor<64xf64> {
    %0 = stablehlo.sine %x : tensor<64xf64>
    return %0 : tensor<64xf64>
  }
  func.func @double(%x: tensor<100000xf32>) -> tensor<100000xf32> {
    %0 = stablehlo.add %x, %x : tensor<100000xf32>
    return %0 : tensor<100000xf32>
  }
  func.func @swap(%x: tensor<f32>, %y: tensor<2xi32>) -> (tensor<2xi32>, tensor<f32>) {
    return %y, %x : tensor<2xi32>, tensor<f32>
  }
  func.func @nothing() -> tensor<i32> {
    %0 = stablehlo.constant dense<7> : tensor<i32>
    return %0 : tensor<i32>
  }
  func.func @empty(%x: tensor<0x3xf32>) -> tensor<0x3xf32> {
    %0 = stablehlo.add %x, %x : tensor<0x3xf32>
    return %0 : tensor<0x3xf32>
  }
  func.func @any(%x: tensor<?xf32>) -> tensor<?xf32> {
    %0 = stablehlo.add %x, %x : tensor<?xf32>
    return %0 : tensor<?xf32>
  }
"""


@pytest.fixture(scope="module")
def device():
    return devices("cpu")[0]


@pytest.fixture(scope="module")
def program(device):
    functions = "".join(map(identity_and_add, ELEMENTS)) + OTHERS
    return Program(compile_module(f"module @tests {{{functions}}}", Target()), device)


@pytest.fixture(params=DRIVERS)
def driver(request):
    config.update("axir_driver", request.param)
    return request.param


def samples(dtype: np.dtype, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if dtype == np.bool_:
        return rng.integers(0, 2, (2, 3)).astype(np.bool_)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, (2, 3), dtype, endpoint=True)
    values = rng.standard_normal((2, 3))
    if dtype.kind == "c":
        values = values + 1j * rng.standard_normal((2, 3))
    return values.astype(dtype)


@pytest.mark.parametrize("element", ELEMENTS)
def test_every_dtype_goes_through_every_driver(program, device, driver, element):
    dtype = np.dtype(ELEMENTS[element])
    x, y = samples(dtype, 0), samples(dtype, 1)
    arguments = [device.put(x), device.put(y)]
    (same,) = program.function(f"identity_{typed_name(element)}")(arguments[:1])
    np.testing.assert_array_equal(same.to_numpy(), x)
    executable = program.function(f"add_{typed_name(element)}")
    assert executable.driver == driver
    (total,) = executable(arguments)
    assert total.dtype == dtype
    # The sum of two floats is the rounded exact one, and integers wrap: no tolerance.
    np.testing.assert_array_equal(total.to_numpy(), x + y)


def test_f64_sine_is_exact_to_one_ulp(program, device, driver):
    x = np.concatenate([np.linspace(-10, 10, 32), np.logspace(-300, 15, 32)])
    (result,) = program.function("sine")([device.put(x)])
    assert result.dtype == np.float64
    for value, expected in zip(result.to_numpy(), map(mpmath.sin, x), strict=True):
        assert abs(mpmath.mpf(float(value)) - expected) <= np.spacing(abs(float(expected)))


@pytest.mark.parametrize("offset", [0, 1, 4])
def test_misaligned_arrays_are_safe(program, device, driver, offset):
    array = aligned_empty((100_000 + offset,), np.float32)[offset:]
    array[:] = np.arange(100_000)
    array.flags.writeable = False
    (result,) = program.function("double")([device.put(array)])
    np.testing.assert_array_equal(result.to_numpy(), 2 * array)


def test_several_results_and_no_arguments(program, device, driver):
    x, y = device.put(np.float32(3).reshape(())), device.put(np.array([1, 2], np.int32))
    executable = program.function("swap")
    for _ in range(3):
        first, second = executable([x, y])
        assert (first.shape, first.dtype) == ((2,), np.int32)
        assert (second.shape, second.dtype) == ((), np.float32)
        np.testing.assert_array_equal(first.to_numpy(), [1, 2])
        assert second.to_numpy() == 3
    assert program.function("nothing")([])[0].to_numpy() == 7


def test_zero_size_arrays(program, device, driver):
    (result,) = program.function("empty")([device.put(np.zeros((0, 3), np.float32))])
    assert result.shape == result.to_numpy().shape == (0, 3)


def test_dynamic_shapes_are_looked_up_at_each_call(program, device, driver):
    executable = program.function("any")
    for size in (2, 5, 3):
        x = np.arange(size, dtype=np.float32)
        (result,) = executable([device.put(x)])
        assert result.shape == (size,)
        np.testing.assert_array_equal(result.to_numpy(), 2 * x)


def test_results_of_one_driver_are_arguments_of_the_other(program, device):
    array = np.arange(100_000, dtype=np.float32)
    buffer = device.put(array)
    for round_number, name in enumerate((*DRIVERS, *DRIVERS), 1):
        config.update("axir_driver", name)
        (buffer,) = program.function("double")([buffer])
        np.testing.assert_array_equal(buffer.to_numpy(), array * 2**round_number)


def test_references_go_in_and_out_without_buffers(program, device):
    executable = program.function("double")
    buffer = device.put(np.ones(100_000, np.float32))
    (expected,) = executable([buffer])
    (reference,) = executable.invoke([buffer.ref])
    result = type(buffer)(reference, expected.type)
    np.testing.assert_array_equal(result.to_numpy(), expected.to_numpy())


def test_memory_of_results_is_given_back(program, device):
    executable = program.function("double")
    buffer = device.put(np.ones(100_000, np.float32))
    with open("/proc/self/statm") as file:
        before = int(file.read().split()[1])
    for _ in range(400):  # 160 MB if none were freed
        executable([buffer])
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[1]) - before
    assert pages * 4096 < 40e6


def test_threads_share_an_executable(program, device, driver):
    executable = program.function("double")
    failures: list[str] = []

    def work(seed: int) -> None:
        array = np.full(100_000, seed, np.float32)
        for _ in range(25):
            (result,) = executable([device.put(array)])
            if not np.array_equal(result.to_numpy(), 2 * array):
                failures.append(f"thread {seed}")

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert 1 <= len(program.idle_contexts(driver)) <= 7


def test_a_deleted_argument_is_named(program, device):
    buffer = device.put(np.zeros(100_000, np.float32))
    buffer.delete()
    with pytest.raises(DeletedArrayError, match=r"shape \(100000,\) and dtype float32"):
        program.function("double")([buffer])


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        ([], "input list and function mismatch"),
        ([np.zeros(3, np.float32)], "input0 shape dimension 0 mismatch"),
        ([np.zeros(100_000, np.int32)], "input0 element type mismatch"),
    ],
)
def test_wrong_arguments_are_refused_in_one_sentence(program, device, driver, arrays, reason):
    executable = program.function("double")
    with pytest.raises(RuntimeExecutionError, match=reason) as caught:
        executable([device.put(array) for array in arrays])
    assert "The compiled function 'double' failed on cpu:0" in str(caught.value)
    assert "runtime/src" not in str(caught.value)
    # The program stays usable.
    (result,) = executable([device.put(np.ones(100_000, np.float32))])
    assert result.to_numpy()[0] == 2


def test_unknown_functions_are_named(program):
    with pytest.raises(ParameterError, match="no function 'triple'") as caught:
        program.function("triple")
    assert "double" in str(caught.value)
    assert "__init" not in program.function_names


@pytest.mark.parametrize("binary", [b"", b"not a program at all, only words", bytes(1000)])
def test_damaged_binaries_are_refused(device, binary):
    with pytest.raises(LoadError, match="cannot be loaded"):
        Program(binary, device)


def test_a_binary_for_another_device_is_refused(device):
    text = """
    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = stablehlo.add %x, %x : tensor<2xf32>
      return %0 : tensor<2xf32>
    }"""
    program = Program(compile_module(text, Target(backend="vulkan")), device)
    with pytest.raises(LoadError, match="does not run on cpu:0"):
        program.function()([device.put(np.zeros(2, np.float32))])


def test_results_are_right_during_trials(program, device):
    executable = program.function("double")
    array = np.arange(100_000, dtype=np.float32)
    buffer = device.put(array)
    calls = 0
    while calls < 300:
        result = executable([buffer])[0].to_numpy()
        if calls % 50 < 9:  # on both drivers
            np.testing.assert_array_equal(result, 2 * array)
        calls += 1
    while executable.quick is None:
        executable([buffer])
    assert executable.quick[0] == executable.driver in DRIVERS


def test_a_call_is_fast(program, device):
    config.update("axir_driver", "local-sync")
    executable = program.function("nothing")
    executable([])
    best = float("inf")
    for _ in range(20):
        start = time.perf_counter()
        for _ in range(100):
            executable([])
        best = min(best, (time.perf_counter() - start) / 100)
    assert best < 50e-6  # 3 us on an idle machine
