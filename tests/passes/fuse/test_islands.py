"""Islands: the operations between kernels, and `fuse-islands`."""

from __future__ import annotations

import re
import time

import pytest
from iree.compiler import ir
from support.stablehlo_runner import parse

from axir.dialect.text.parsing import parse_module
from axir.passes.framework.pipeline import run_passes
from axir.passes.fuse.islands import connected
from axir.passes.legalize.regions import operations_of

LOOP = """
func.func @main(%x: tensor<9xf32>, %y: tensor<16384x9xf32>)
    -> (tensor<16384x9xf32>, tensor<9xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %end = stablehlo.constant dense<7> : tensor<i32>
  %ones = stablehlo.constant dense<1.0> : tensor<99xf32>
  %0:4 = stablehlo.while(%i = %zero, %a = %y, %b = %x, %c = %ones)
      : tensor<i32>, tensor<16384x9xf32>, tensor<9xf32>, tensor<99xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %none = stablehlo.constant dense<0.0> : tensor<f32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %first = stablehlo.constant dense<0> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %1 = stablehlo.multiply %b, %b : tensor<9xf32>
    %2 = stablehlo.reduce(%1 init: %none) applies stablehlo.add across dimensions = [0]
        : (tensor<9xf32>, tensor<f32>) -> tensor<f32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<f32>) -> tensor<1x9xf32>
    %4 = stablehlo.dynamic_update_slice %a, %3, %j, %first
        : (tensor<16384x9xf32>, tensor<1x9xf32>, tensor<i32>, tensor<i32>) -> tensor<16384x9xf32>
    %5 = stablehlo.add %c, %c : tensor<99xf32>
    stablehlo.return %j, %4, %1, %5
        : tensor<i32>, tensor<16384x9xf32>, tensor<9xf32>, tensor<99xf32>
  }
  return %0#1, %0#2 : tensor<16384x9xf32>, tensor<9xf32>
}
"""


def text_after(passes: str) -> str:
    module = parse(LOOP)
    run_passes(module, passes)
    text = str(module)
    return text[text.index("func.func @main") :]


def test_small_sums_leave_counters_and_large_updates_to_iree() -> None:
    text = text_after("fuse-small-sums")
    assert "stablehlo.reduce" not in text
    assert text.count("flow.dispatch @program_0") == 1
    assert "stablehlo.add %iterArg, %c" in text
    assert "stablehlo.dynamic_update_slice" in text


def test_loops_of_kernels_change_parts_in_place_and_compute_what_they_begin_with() -> None:
    text = text_after("fuse-small-sums,fuse-islands")
    operations = {x for x in text.split() if x.startswith("stablehlo.")}
    assert operations <= {
        "stablehlo.constant",
        "stablehlo.optimization_barrier",
        "stablehlo.reshape",
        "stablehlo.return",
        "stablehlo.while(%iterArg",
    }
    # The result is stored in the first operand's memory.
    assert "@part_0(%iterArg_" in text
    assert text.count("-> %iterArg_") == 1
    begin = text[text.index("stablehlo.while") :].partition("\n")[0]
    assert "= %cst" not in begin


FILLED = """
func.func @main(%x: tensor<9xf32>) -> tensor<9xf32> {
  %0 = call @inner(%x) : (tensor<9xf32>) -> tensor<9xf32>
  %1 = call @inner(%0) : (tensor<9xf32>) -> tensor<9xf32>
  return %1 : tensor<9xf32>
}
func.func private @inner(%x: tensor<9xf32>) -> tensor<9xf32> {
  %two = arith.constant 2.0 : f32
  %hidden = util.optimization_barrier %two : f32
  %filled = flow.tensor.splat %hidden : tensor<9xf32>
  %0 = stablehlo.add %x, %filled : tensor<9xf32>
  return %0 : tensor<9xf32>
}
"""


def test_functions_that_fill_arrays_are_part_of_kernels() -> None:
    module = parse(FILLED)
    run_passes(module, "fuse-islands")
    text = str(module)
    main = text[text.index("func.func @main") :].partition("func.func private")[0]
    assert "flow.dispatch @elementwise_0" in main
    assert "call @inner" not in main
    assert "flow.tensor.splat" not in text


CHAINS = """
func.func @main(%x: tensor<9xf32>, %y: tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>) {{
{}
  return %a{last}, %b{last} : tensor<9xf32>, tensor<9xf32>
}}
"""


def test_what_hangs_together_is_found_in_the_order_of_the_program() -> None:
    count = 2000
    lines = [
        "  %a0 = stablehlo.add %x, %x : tensor<9xf32>",
        "  %b0 = stablehlo.add %y, %y : tensor<9xf32>",
    ]
    lines += [
        f"  %{v}{n} = stablehlo.add %{v}{n - 1}, %{v}{max(0, n - 2)} : tensor<9xf32>"
        for n in range(1, count)
        for v in "ba"
    ]
    module = parse(CHAINS.format("\n".join(lines), last=count - 1))
    [function] = module.body.operations
    [operations] = operations_of(function.operation)
    started = time.thread_time()
    parts = connected(operations[:-1])
    assert time.thread_time() - started < 1.0
    assert [len(part) for part in parts] == [count, count]
    assert parts[0][0] == operations[1]
    assert parts[1][0] == operations[0]
    assert [x for part in parts for x in part if x == operations[-2]] == [parts[1][-1]]
    assert len(connected(operations)) == 1  # the end reads both


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
