"""Compiled programs that call Python functions of their process."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from axir.dialect.core import dtypes
from axir.dialect.core.array import as_array
from axir.dialect.core.config import config
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.function_rules import HostCall
from axir.runtime import HostCallError, Program, Target, compile_module, default_device

DRIVERS = ("local-sync", "local-task")


def program_of(
    function: Callable[..., Any],
    operand_types: Sequence[ShapedArray],
    result_types: Sequence[ShapedArray],
) -> Program:
    """A program that passes its arguments to a function and returns the function's results."""
    operands = ", ".join(f"%a{n}: {t.mlir}" for n, t in enumerate(operand_types))
    names = ", ".join(f"%a{n}" for n in range(len(operand_types)))
    ins = ", ".join(str(t.mlir) for t in operand_types)
    outs = ", ".join(str(t.mlir) for t in result_types)
    count = len(result_types)
    bound = f"%r:{count} = " if count else ""
    returned = ", ".join(f"%r#{n}" for n in range(count))
    text = f"""
      func.func private @host.callback_0({ins}) -> ({outs})
      func.func @main({operands}) -> ({outs}) {{
        {bound}func.call @host.callback_0({names}) : ({ins}) -> ({outs})
        return {returned} {":" if count else ""} {outs}
      }}"""
    call = HostCall(function, tuple(operand_types), tuple(result_types))
    return Program(compile_module(text, Target()), default_device(), [call])


def run(program: Program, *args: np.ndarray) -> list[np.ndarray]:
    buffers = [program.device.put(x) for x in args]
    return [x.to_numpy() for x in program.function("main")(buffers)]


@pytest.fixture(params=DRIVERS)
def driver(request: pytest.FixtureRequest) -> str:
    config.update("axir_driver", request.param)
    return request.param


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
@pytest.mark.parametrize("shape", [(), (3,), (0, 2), (2, 0), (3, 4)], ids=str)
def test_every_dtype_and_shape_travels_both_ways(dtype: np.dtype, shape: tuple[int, ...]) -> None:
    seen = []

    def function(x: np.ndarray) -> list[np.ndarray]:
        seen.append((x.shape, x.dtype, x.flags.writeable))
        return [x, np.array(x[..., ::-1] if x.ndim else x)]

    array_type = ShapedArray(shape, dtype)
    values = (np.arange(array_type.size) % 2 + 1).reshape(shape).astype(dtype)
    same, reversed_ = run(program_of(function, [array_type], [array_type] * 2), values)
    assert seen == [(shape, dtype, False)]
    assert same.dtype == reversed_.dtype == dtype
    np.testing.assert_array_equal(same, values)
    np.testing.assert_array_equal(reversed_, values[..., ::-1] if shape else values)


def test_results_of_any_layout_are_taken(driver: str) -> None:
    big = ShapedArray((300, 200), np.float32)
    values = np.arange(60000, dtype=np.float32).reshape(300, 200)
    layouts: list[Callable[[np.ndarray], np.ndarray]] = [
        np.asfortranarray,
        lambda x: np.ascontiguousarray(x[::-1])[::-1],
        lambda x: x.astype(">f4").astype("=f4"),
    ]
    for layout in layouts:
        (result,) = run(program_of(lambda x, layout=layout: [layout(x)], [big], [big]), values)
        np.testing.assert_array_equal(result, values)


def test_a_result_does_not_share_memory_with_what_the_function_keeps(driver: str) -> None:
    kept = np.zeros(20000, np.float32)
    array_type = ShapedArray((20000,), np.float32)
    program = program_of(lambda: [kept], [], [array_type])
    (first,) = run(program)
    kept[:] = 1
    (second,) = run(program)
    assert first.max() == 0
    assert second.min() == 1


def test_a_function_without_operands_and_results_is_called_each_time(driver: str) -> None:
    calls: list[int] = []
    program = program_of(lambda: calls.append(1) or (), [], [])
    assert run(program) == run(program) == []
    assert calls == [1, 1]


def test_the_exception_itself_surfaces_and_the_program_stays_usable(driver: str) -> None:
    original = KeyError("the user's own")
    cause = ValueError("the cause")

    def fails(x: np.ndarray) -> list[np.ndarray]:
        if x[0] < 0:
            raise original from cause
        return [x + 1]

    array_type = ShapedArray((2,), np.float32)
    program = program_of(fails, [array_type], [array_type])
    for _ in range(3):
        original.__traceback__ = None
        with pytest.raises(KeyError) as caught:
            run(program, np.full(2, -1, np.float32))
        assert caught.value is original
        assert original.__cause__ is cause
        assert original.__context__ is cause or original.__context__ is None
        names = [frame.name for frame in traceback.extract_tb(original.__traceback__)]
        assert names[0].startswith("test_the_exception_itself")
        assert names[-1] == "fails"
        np.testing.assert_array_equal(run(program, np.ones(2, np.float32)), [[2, 2]])


def test_a_keyboard_interrupt_passes_through(driver: str) -> None:
    def interrupted() -> list[np.ndarray]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(program_of(interrupted, [], []))


@pytest.mark.parametrize(
    "result",
    [
        [],
        [np.zeros(2, np.float64)],
        [np.zeros(3, np.float32)],
        [np.zeros(2, np.float32)] * 2,
    ],
)
def test_wrong_results_are_refused(result: list[np.ndarray]) -> None:
    program = program_of(lambda: result, [], [ShapedArray((2,), np.float32)])
    with pytest.raises(HostCallError, match=r"lambda.*declared to give \(float32\[2\]\)"):
        run(program)


def test_threads_call_side_by_side(driver: str) -> None:
    array_type = ShapedArray((4,), np.float32)
    together = threading.Barrier(4, timeout=30)

    def function(x: np.ndarray) -> list[np.ndarray]:
        together.wait()
        if x[0] == 2:
            raise LookupError("two")
        return [x * 10]

    program = program_of(function, [array_type], [array_type])
    executable = program.function("main")
    outcomes: dict[int, Any] = {}

    def work(number: int) -> None:
        try:
            (out,) = executable([program.device.put(np.full(4, number, np.float32))])
            outcomes[number] = float(out.to_numpy()[0])
        except LookupError as error:
            outcomes[number] = str(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == {0: 0.0, 1: 10.0, 2: "two", 3: 30.0}


def test_a_function_may_call_its_own_program(driver: str) -> None:
    array_type = ShapedArray((), np.int32)
    programs: list[Program] = []

    def countdown(x: np.ndarray) -> list[np.ndarray]:
        if x == 3:
            raise StopIteration("innermost") if x < 0 else ZeroDivisionError("innermost")
        (inner,) = run(programs[0], np.array(x - 1, np.int32)) if x > 0 else [x]
        return [np.array(inner + 1, np.int32)]

    programs.append(program_of(countdown, [array_type], [array_type]))
    assert run(programs[0], np.array(2, np.int32))[0] == 3
    with pytest.raises(ZeroDivisionError, match="innermost"):
        run(programs[0], np.array(5, np.int32))


def test_a_program_that_nobody_holds_lets_its_functions_go() -> None:
    import gc
    import weakref

    class Holder:
        program: Program

        def __call__(self) -> Sequence[np.ndarray]:
            return ()

    holder = Holder()
    holder.program = program_of(holder, [], [])
    run(holder.program)
    reference = weakref.ref(holder)
    del holder
    gc.collect()
    assert reference() is None


def test_arrays_are_views_of_the_arguments_memory() -> None:
    values = as_array(np.arange(10000, dtype=np.float32))
    seen = []
    program = program_of(
        lambda x: seen.append(x.__array_interface__["data"][0]) or (),
        [ShapedArray((10000,), np.float32)],
        [],
    )
    buffer = program.device.put(values.host())
    program.function("main")([buffer])
    assert seen == [buffer.to_numpy().__array_interface__["data"][0]]
