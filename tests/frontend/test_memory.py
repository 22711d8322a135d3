"""Long processes: what ever new shapes and functions leave behind is bounded."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.memory import resident_memory

import axir
import axir.numpy as jnp
from axir import lax
from axir._transforms import jit_function
from axir.dialect.program.function import Function
from axir.runtime.calls.executable import Program
from axir.runtime.native.programs import NativeProgram

pytestmark = pytest.mark.usefixtures("small_heap")

# With IREE and without.
PROGRAMS = (Program, NativeProgram)
# A shape leaves its types in the MLIR context, which keeps them for good.
_BYTES_PER_SHAPE = 10_000


def model(x: Any) -> Any:
    return jnp.sin(x) * 2 + lax.fori_loop(0, 3, lambda _, y: y + x, x).sum()


def live(*kinds: type) -> int:
    gc.collect()
    return sum(type(x) in kinds for x in gc.get_objects())


@pytest.mark.parametrize(
    "use",
    [
        axir.make_jaxpr(model),
        lambda x: axir.eval_shape(lambda x: model(x), x),
        lambda x: axir.jit(lambda x: model(x)).lower(x).as_text(),
        lambda x: axir.linearize(lambda x: jnp.sin(x) * 2, x)[1](x),
        lambda x: axir.vmap(lambda x: jnp.sin(x) * 2)(x),
    ],
    ids=["make_jaxpr", "eval_shape", "lower", "linearize", "vmap"],
)
def test_new_shapes_leave_no_more_than_their_types(use: Callable[..., Any]) -> None:
    def use_shapes(first: int, last: int) -> None:
        for size in range(first, last):
            use(np.ones(size, np.float32))

    use_shapes(1, 20)
    functions, memory = live(Function), resident_memory()
    use_shapes(1000, 1200)
    assert live(Function) <= functions
    assert resident_memory() - memory < 200 * _BYTES_PER_SHAPE


def test_programs_go_with_their_function() -> None:
    programs, functions = live(*PROGRAMS), live(Function)
    for size in range(4):
        f = axir.jit(lambda x: x * 2)
        f(np.ones(size, np.float32))
    assert live(*PROGRAMS) == programs + 1
    del f
    assert live(*PROGRAMS) == programs
    assert live(Function) == functions


def test_a_function_remembers_a_limited_number_of_programs(monkeypatch: Any) -> None:
    monkeypatch.setattr(jit_function, "_ENTRY_LIMIT", 3)
    axir.clear_caches()  # other tests' programs are freed now, and not together with this one's
    programs = live(*PROGRAMS)
    f = axir.jit(lambda x: x * 2)
    for size in range(1, 9):
        np.testing.assert_array_equal(f(np.ones(size, np.float32)), np.full(size, 2, np.float32))
        assert live(*PROGRAMS) <= programs + 3
    axir.clear_caches()
    assert live(*PROGRAMS) == programs


def test_cleared_caches_leave_no_program_of_a_mesh() -> None:
    axir.clear_caches()
    programs = live(*PROGRAMS)
    mesh = axir.sharding.Mesh(np.array(axir.devices()[:1]), ("x",))
    spec = axir.sharding.PartitionSpec("x")
    mapped = axir.shard_map(lambda x: x * 2, mesh=mesh, in_specs=spec, out_specs=spec)
    np.testing.assert_array_equal(mapped(jnp.ones(4)), np.full(4, 2, np.float32))
    assert live(*PROGRAMS) > programs
    axir.clear_caches()
    assert live(*PROGRAMS) == programs


def test_code_goes_with_its_program() -> None:
    def code_in_memory() -> list[str]:
        gc.collect()
        # The mapping of a program's code has no name; a library's mapping has a file.
        with open("/proc/self/maps") as file:
            return [x for x in file if " r-xp 00000000 00:00 0" in x and "[" not in x]

    def pages(lines: list[str]) -> int:
        ends = [x.split()[0].split("-") for x in lines]
        return sum(int(end, 16) - int(start, 16) for start, end in ends) >> 12

    before = pages(code_in_memory())
    kept = [axir.jit(lambda x, n=n: x * n - 1) for n in range(3)]
    assert [float(f(2.0)) for f in kept] == [-1, 1, 3]
    assert live(NativeProgram) >= 3
    assert pages(code_in_memory()) >= before + 3
    kept.clear()
    assert pages(code_in_memory()) == before
