"""A kernel that reads an array which it works on in place reads it as another operand."""

from __future__ import annotations

import numpy as np
import pytest
from iree.compiler import ir
from support.stablehlo_runner import Example, deviations, run_examples

from axir.dialect.builders import stablehlo as hlo
from axir.runtime import Target, compile_module
from axir.runtime.compiler.invocation.own_reads import give_own_reads

X = np.arange(35, dtype=np.float64).reshape(7, 5)
MOVED = X.copy()
MOVED[1:] = X[:6]


def moved(x, i, j):
    zero = hlo.constant(np.int32(0))
    part = hlo.dynamic_slice(x, [i, zero], (6, 5))
    return [hlo.dynamic_update_slice(x, part, [j, zero])]


EXAMPLE = Example("moved", (X, np.int32(0), np.int32(1)), moved, [MOVED])


def test_a_part_that_moves_within_its_array_is_right_without_a_pass() -> None:
    results = run_examples(
        [EXAMPLE], "protect-inputs", compiler=lambda module: compile_module(module, Target())
    )
    assert deviations(results["moved"], EXAMPLE) == []


def _module(shape: str, extents: str, reads: str, more: str = "") -> str:
    kind = f"!iree_tensor_ext.dispatch.tensor<readwrite:tensor<{shape}xf32>>"
    made = "!iree_tensor_ext.dispatch.tensor<writeonly:tensor<f32>>"
    handed = f"tensor<{shape}xf32>"
    open_ = f"{{{extents}}}" if extents else ""
    return f"""
      flow.executable private @e {{
        flow.executable.export public @k
        builtin.module {{
          func.func @k(%a: {kind}, %d: index, %r: {made}) {{
            %c0 = arith.constant 0 : index
            %p = iree_tensor_ext.dispatch.tensor.load %a, offsets = [0, 0], sizes = [2, 4],
                strides = [1, 1] : {kind}{open_.replace("%n", "%d")} -> tensor<2x4xf32>
            {reads}
            iree_tensor_ext.dispatch.tensor.store %s, %a, offsets = [1, 0], sizes = [2, 4],
                strides = [1, 1] : tensor<2x4xf32> -> {kind}{open_.replace("%n", "%d")}
            {more}
            return
          }}
        }}
      }}
      util.func public @main(%x: {handed}, %n: index) -> ({handed}, tensor<f32>) {{
        %0, %1 = flow.dispatch @e::@k(%x, %n) : ({handed}{open_}, index) -> (%x{open_}, tensor<f32>)
        util.return %0, %1 : {handed}, tensor<f32>
      }}
    """


_NEGATED = """
  %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>,
      affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<2x4xf32>) outs(%p : tensor<2x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %n = arith.negf %in : f32
      linalg.yield %n : f32
  } -> tensor<2x4xf32>
"""
_ADDED = _NEGATED.replace("ins(%p", "ins(%q").replace(
    "%s =", "%q = tensor.empty() : tensor<2x4xf32>\n%s ="
)
_STORED = """
  %e = tensor.extract %p[%c0, %c0] : tensor<2x4xf32>
  %f = tensor.from_elements %e : tensor<f32>
  iree_tensor_ext.dispatch.tensor.store %f, %r, offsets = [], sizes = [], strides = []
    : tensor<f32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<f32>>
"""


@pytest.mark.parametrize(
    ("shape", "extents", "reads", "more", "count"),
    [
        ("7x4", "", _NEGATED, "", 1),
        ("?x4", "%n", _NEGATED, "", 1),
        ("7x4", "", _NEGATED, _STORED, 1),
        ("7x4", "", _ADDED, "", 0),  # the only read is of the changed array
        ("7x4", "", _ADDED, _STORED, 1),
    ],
)
def test_what_is_read_is_another_operand(
    shape: str, extents: str, reads: str, more: str, count: int
) -> None:
    with ir.Context():
        module = ir.Module.parse(_module(shape, extents, reads, more))
        assert give_own_reads(module.operation) == count
        assert module.operation.verify()
        text = str(module)
    handed = "%x, %n, %x" if count else "%x, %n"
    assert f"flow.dispatch @e::@k({handed})".replace("%x", "%arg0").replace("%n", "%arg1") in text
    assert ("readonly:tensor<" in text) == bool(count)


def test_a_kernel_that_is_right_stays_as_it_is() -> None:
    with ir.Context():
        module = ir.Module.parse(_module("7x4", "", _ADDED))
        before = str(module)
        assert give_own_reads(module.operation) == 0
        assert str(module) == before
