"""Every op of the table compiles for CUDA, or is refused with a reason; that needs no GPU."""

from __future__ import annotations

import numpy as np
import pytest
from support.gpus import RUNS_ALL
from support.op_cases import cases_of, joined, sampled_ops

import axir.numpy as jnp
from axir.dialect.core.config import config
from axir.dialect.core.errors import HostCallNeededError, UnsupportedByDeviceError
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.function_tracing import trace_function
from axir.passes.transforms.lower_to_stablehlo import lower_functions
from axir.runtime import Target, compile_module
from axir.runtime.compiler.function_compilation import prepare_for_target

TARGET = Target("cuda", gpu_architecture="sm_80")
MOVED = ("cumlogsumexp", "select_and_scatter_add")


@pytest.mark.parametrize("name", sampled_ops() if RUNS_ALL else ("sin", "sort"))
def test_op_compiles_or_is_refused(name: str) -> None:
    config.update("jax_enable_x64", True)
    cases = list(joined(cases_of(name)))
    cases = cases if RUNS_ALL else cases[-1:]
    functions = {f"{name}_{case.index}": case.function() for case in cases}
    try:
        module = lower_functions(functions, "cuda")
        prepare_for_target(module, TARGET)
    except (HostCallNeededError, UnsupportedByDeviceError) as error:
        refusal: str | None = error.way_out
    else:
        refusal = None
        assert compile_module(module, TARGET, name)
    assert refusal != ""


def test_sums_of_negatives_and_of_broadcast_products_compile() -> None:
    def sums(x, v):
        return [jnp.sum(-x), jnp.sum(-x / v[:, None], axis=1), jnp.sum(x * v[:, None])]

    types = [ShapedArray(shape, np.dtype(np.float32)) for shape in ((64, 33), (64,))]
    module = lower_functions({"main": trace_function(sums, types, name="sums")}, "cuda")
    prepare_for_target(module, TARGET)
    assert compile_module(module, TARGET, "sums")


def test_narrow_numbers_that_are_widened_and_moved_compile() -> None:
    cases = {f"{name}_{c.index}": c for name in MOVED for c in cases_of(name)}
    narrow = {s: c for s, c in cases.items() if str(c.args[0].dtype) in ("float16", "bfloat16")}
    functions = {symbol: case.function() for symbol, case in narrow.items()}
    assert len({symbol.rpartition("_")[0] for symbol in functions}) == len(MOVED)
    module = lower_functions(functions, "cuda")
    prepare_for_target(module, TARGET)
    assert "optimization_barrier" in str(module)
    assert compile_module(module, TARGET, "moved")
