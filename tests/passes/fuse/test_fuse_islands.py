"""Operations between kernels become kernels, and reshaping their results costs nothing."""

from __future__ import annotations

import re

import pytest
from iree.compiler import ir

from axir.dialect.text.parsing import parse_module
from axir.passes.framework.pipeline import run_passes

_HEAD = "func.func @main(%x: tensor<4x6xf32>)"
_SUM = "%0 = stablehlo.add %x, %x : tensor<4x6xf32>"
_RESHAPE = "stablehlo.reshape"


def kernels_of(body: str, results: str) -> tuple[ir.Module, str]:
    module = parse_module(f"{_HEAD} -> {results} {{\n{body}\n}}")
    run_passes(module, "fuse-islands")
    text = str(module)
    return module, text[text.index("func.func @main") :]


def test_other_shapes_of_results_are_no_copies() -> None:
    module, main = kernels_of(
        f"""{_SUM}
        %1 = stablehlo.reshape %0 : (tensor<4x6xf32>) -> tensor<24xf32>
        %2 = stablehlo.reshape %1 : (tensor<24xf32>) -> tensor<2x12xf32>
        return %2, %1 : tensor<2x12xf32>, tensor<24xf32>""",
        "(tensor<2x12xf32>, tensor<24xf32>)",
    )
    assert main.count("flow.dispatch") == 1
    assert main.count(_RESHAPE) == 2
    # One loop over all elements, and no memory except for the argument and the result.
    kernel = str(module)
    assert kernel.count("scf.for") == 1
    assert len(re.findall(r"stream\.binding\.subspan", kernel)) == 2
    assert module.operation.verify()


@pytest.mark.parametrize("order", ["%1, %2", "%2, %1"])
def test_a_shape_that_is_read_inside_stays_inside(order: str) -> None:
    module, main = kernels_of(
        f"""{_SUM}
        %1 = stablehlo.reshape %0 : (tensor<4x6xf32>) -> tensor<24xf32>
        %2 = stablehlo.multiply %1, %1 : tensor<24xf32>
        return {order} : tensor<24xf32>, tensor<24xf32>""",
        "(tensor<24xf32>, tensor<24xf32>)",
    )
    assert main.count("flow.dispatch") == 1
    assert _RESHAPE not in main
    assert module.operation.verify()
