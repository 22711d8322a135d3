"""`store-moved-conversions`: which conversions are stored; `tests/gpu` compiles them for CUDA."""

from __future__ import annotations

import pytest
from support.stablehlo_runner import parse

from axir.passes.framework.pipeline import run_passes

HALF, FULL, PART = "tensor<8x4xf16>", "tensor<8x4xf32>", "tensor<8x2xf32>"
SLICE = f"stablehlo.slice %y [0:8, 0:2] : ({FULL}) -> {PART}"
VIEW = f"""stablehlo.transpose %y, dims = [1, 0] : ({FULL}) -> tensor<4x8xf32>
  %t = stablehlo.reverse %r, dims = [0] : tensor<4x8xf32>"""


@pytest.mark.parametrize(
    ("source", "use", "is_stored"),
    [
        pytest.param(HALF, SLICE, True, id="taken apart"),
        pytest.param(HALF, VIEW, True, id="moved by a view"),
        pytest.param(HALF, f"stablehlo.negate %y : {FULL}", False, id="computed with"),
        pytest.param("tensor<8x4xi8>", SLICE, False, id="integers"),
        pytest.param("tensor<8x4xf64>", SLICE, False, id="narrowed"),
    ],
)
def test_what_is_stored(source: str, use: str, is_stored: bool) -> None:
    text = f"""func.func @f(%x: {source}) -> {FULL} {{
      %y = stablehlo.convert %x : ({source}) -> {FULL}
      %r = {use}
      return %y : {FULL} }}"""
    module = parse(text)
    run_passes(module, "store-moved-conversions")
    assert str(module).count("stablehlo.optimization_barrier") == is_stored
