"""Every op of the table compiles for CUDA, or is refused with a reason; that needs no GPU."""

from __future__ import annotations

import pytest
from support.gpus import RUNS_ALL
from support.op_cases import cases_of, joined, sampled_ops

from axir.dialect.core.config import config
from axir.dialect.core.errors import HostCallNeededError, UnsupportedByDeviceError
from axir.passes.transforms.lower_to_stablehlo import lower_functions
from axir.runtime import Target, compile_module
from axir.runtime.calls.compiled_function import prepare_for_target

TARGET = Target("cuda", gpu_architecture="sm_80")


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
