"""`accumulate-in-single`: products of half precision for GPUs; `tests/gpu` tests the values."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from support.stablehlo_runner import build

from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.pipeline import run_passes
from axir.runtime import CompileError, Target, compile_module

KINDS = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32}


def product_of(kind: str):
    x = np.ones((64, 64), KINDS[kind])
    return build({"f": ((x, x), lambda x, y: hlo.dot_general(x, y, ((1,), (0,))))})


@pytest.mark.parametrize(("kind", "is_widened"), [("f16", False), ("bf16", True), ("f32", False)])
def test_sums_are_of_single_precision(kind: str, is_widened: bool) -> None:
    module = product_of(kind)
    run_passes(module, "accumulate-in-single{widens=true}")
    (line,) = [line for line in str(module).splitlines() if "stablehlo.dot" in line]
    assert "-> tensor<64x64xf32>" in line
    assert (f"tensor<64x64x{kind}>" in line) == (not is_widened)
    assert ("optimization_barrier" in str(module)) == is_widened


def test_products_of_brain_floats_compile_for_cuda() -> None:
    module = product_of("bf16")
    run_passes(module, "accumulate-in-single")
    assert compile_module(module, Target("cuda"), "product")


def test_they_still_do_not_by_themselves() -> None:
    with pytest.raises(CompileError, match="failed to distribute"):
        compile_module(product_of("bf16"), Target("cuda"), "product")
