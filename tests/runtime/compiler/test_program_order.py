"""Programs run in the order of their text, and the host waits only where it has to."""

from __future__ import annotations

import numpy as np
import pytest
from iree.compiler import ir

from axir.runtime import Program, Target, compile_module, devices
from axir.runtime.compiler.invocation.program_order import keep_order

# Two updates of one array. The second is the array's last reader, and works in place; a number of
# it is read by the host, so it runs early. The results of the first are needed at the end only.
UPDATES = """
func.func public @main(%x: tensor<4x4xf32>, %n: tensor<7xf32>, %row: tensor<1x4xf32>,
                       %number: tensor<1x1xf32>) -> tensor<4x4xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %c0 = stablehlo.constant dense<0> : tensor<i32>
  %c1 = stablehlo.constant dense<1> : tensor<i32>
  %c3 = stablehlo.constant dense<3> : tensor<i32>
  %y = stablehlo.tanh %x : tensor<4x4xf32>
  %sum = stablehlo.reduce(%n init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<7xf32>, tensor<f32>) -> tensor<f32>
  %i = stablehlo.convert %sum : (tensor<f32>) -> tensor<i32>
  %first = stablehlo.dynamic_update_slice %y, %row, %i, %c0
      : (tensor<4x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<4x4xf32>
  %second = stablehlo.dynamic_update_slice %y, %number, %c1, %c3
      : (tensor<4x4xf32>, tensor<1x1xf32>, tensor<i32>, tensor<i32>) -> tensor<4x4xf32>
  %total = stablehlo.reduce(%second init: %zero) applies stablehlo.add across dimensions = [0, 1]
      : (tensor<4x4xf32>, tensor<f32>) -> tensor<f32>
  %j = stablehlo.convert %total : (tensor<f32>) -> tensor<i32>
  %later = stablehlo.tanh %first : tensor<4x4xf32>
  %result = stablehlo.dynamic_update_slice %later, %row, %j, %c0
      : (tensor<4x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<4x4xf32>
  return %result : tensor<4x4xf32>
}
"""

_KERNEL = "(tensor<4xf32>) -> tensor<4xf32>"
_NUMBER = "(tensor<4xf32>) -> tensor<i32>"
_BARRIER = "util.optimization_barrier"


def _ordered(body: str) -> list[str]:
    """Returns the lines of a function of an array `%x` and a flag, kept in order."""
    text = f"""
      util.func public @main(%x: tensor<4xf32>, %flag: i1) -> tensor<4xf32> {{
        %c0 = arith.constant 0 : index
        {body}
      }}
    """
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        module = ir.Module.parse(text)
        keep_order(module.operation)
        assert module.operation.verify()
        lines = str(module).splitlines()
    return [line.strip() for line in lines[2:-2] if "arith.constant 0 : index" not in line]


def _names(lines: list[str]) -> list[str]:
    """Returns the operations of lines, in order."""
    return [line.partition(" = ")[2].split()[0] for line in lines if " = " in line]


def test_an_old_value_is_read_before_it_is_overwritten() -> None:
    rng = np.random.default_rng(0)
    x, row = rng.standard_normal((4, 4), np.float32), rng.standard_normal((1, 4), np.float32)
    n, number = np.full(7, 1 / 6, np.float32), np.full((1, 1), 9, np.float32)
    device = devices("cpu")[0]
    executable = Program(compile_module(UPDATES, Target()), device).function()
    [result] = executable([device.put(array) for array in (x, n, row, number)])
    first, second = np.tanh(x), np.tanh(x)
    first[1] = row
    second[1, 3] = 9
    expected = np.tanh(first)
    expected[int(np.clip(second.sum(), 0, 3))] = row
    np.testing.assert_allclose(result.to_numpy(), expected, rtol=1e-6)


def test_behind_what_the_host_reads_stands_a_barrier() -> None:
    lines = _ordered(f"""
        %0 = flow.dispatch @e::@a(%x) : {_NUMBER}
        %1 = flow.tensor.load %0 : tensor<i32>
        %2 = arith.index_cast %1 : i32 to index
        %3 = flow.dispatch @e::@b[%2](%x, %2) : (tensor<4xf32>, index) -> tensor<4xf32>
        util.return %3 : tensor<4xf32>
    """)
    assert _names(lines)[:4] == [
        "flow.dispatch",
        "flow.tensor.load",
        "arith.constant",
        _BARRIER,
    ]


def test_the_host_waits_for_all_that_stands_before_a_read() -> None:
    # The number is computed before @b runs, so the wait for it does not wait for @b.
    lines = _ordered(f"""
        %0 = flow.dispatch @e::@a(%x) : {_NUMBER}
        %1 = flow.dispatch @e::@a(%x) : {_NUMBER}
        %2 = flow.tensor.load %0 : tensor<i32>
        %3 = flow.dispatch @e::@b(%x) : {_KERNEL}
        %4 = flow.tensor.load %1 : tensor<i32>
        %5 = arith.addi %2, %4 : i32
        %6 = arith.index_cast %5 : i32 to index
        %7 = flow.dispatch @e::@c[%6](%3, %6) : (tensor<4xf32>, index) -> tensor<4xf32>
        util.return %7 : tensor<4xf32>
    """)
    barriers = [line.partition(" = ")[2] for line in lines if _BARRIER in line]
    assert barriers == [f"{_BARRIER} %c0_i32 : i32", f"{_BARRIER} %4 : tensor<4xf32>"]
    assert "%4 = flow.dispatch @e::@b" in "\n".join(lines)


def test_a_branch_begins_when_all_before_it_has_run() -> None:
    lines = _ordered(f"""
        %0 = flow.dispatch @e::@a(%x) : {_KERNEL}
        %1 = scf.if %flag -> (tensor<4xf32>) {{
          %2 = flow.dispatch @e::@b(%0) : {_KERNEL}
          scf.yield %2 : tensor<4xf32>
        }} else {{
          scf.yield %x : tensor<4xf32>
        }}
        util.return %1 : tensor<4xf32>
    """)
    assert _names(lines)[:3] == ["flow.dispatch", _BARRIER, "scf.if"]


def test_what_is_made_of_nothing_is_made_once_for_later_parts() -> None:
    # IREE makes the array again for @a, @b and @c, and loses the other readers.
    lines = _ordered(f"""
        %0 = flow.dispatch @e::@filled() : () -> tensor<4xf32>
        %1 = flow.dispatch @e::@a(%0) : {_KERNEL}
        %2 = flow.dispatch @e::@b(%0) : {_KERNEL}
        %3 = scf.if %flag -> (tensor<4xf32>) {{
          scf.yield %2 : tensor<4xf32>
        }} else {{
          %4 = flow.dispatch @e::@c(%0) : {_KERNEL}
          scf.yield %4 : tensor<4xf32>
        }}
        %5 = flow.dispatch @e::@d(%0, %1, %3)
          : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
        util.return %5 : tensor<4xf32>
    """)
    text = "\n".join(lines)
    barriers = [line for line in lines if f"{_BARRIER} %0" in line]
    assert len(barriers) == 1
    kept = barriers[0].split()[0]
    for reader, array in {"a": "%0", "b": "%0", "c": kept, "d": f"{kept}, %1"}.items():
        assert f"@e::@{reader}({array}" in text
    # An array that only one part reads needs no barrier.
    lines = _ordered(f"""
        %0 = flow.dispatch @e::@filled() : () -> tensor<4xf32>
        %1 = flow.dispatch @e::@a(%0) : {_KERNEL}
        util.return %0 : tensor<4xf32>
    """)
    assert _BARRIER not in _names(lines)


def test_a_number_that_is_known_is_not_read() -> None:
    lines = _ordered(f"""
        %true = arith.constant dense<true> : tensor<i1>
        %0 = flow.dispatch @e::@a(%x) : {_KERNEL}
        %1:2 = {_BARRIER} %true, %true : tensor<i1>, tensor<i1>
        %2 = flow.tensor.reshape %1#1 : tensor<i1> -> tensor<1xi1>
        %3 = flow.tensor.load %2[%c0] : tensor<1xi1>
        %4 = flow.tensor.load %1#1 : tensor<i1>
        %5 = flow.dispatch @e::@b(%0, %3, %4) : (tensor<4xf32>, i1, i1) -> tensor<4xf32>
        util.return %5 : tensor<4xf32>
    """)
    # The barrier of the number is at the begin of the block, and separates nothing.
    assert _names(lines)[:4] == ["arith.constant", _BARRIER] * 2
    assert lines[0] == "%true = arith.constant true"
    assert _names(lines)[-1] == "flow.dispatch"
    assert not any("flow.tensor.load" in line for line in lines)


@pytest.mark.parametrize(
    ("stays", "following"),
    [
        (False, f"%2 = flow.dispatch @e::@b(%1) : {_KERNEL}"),
        # Another operation reads the array that the barrier hides.
        (
            True,
            "%2 = flow.dispatch @e::@b(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>",
        ),
        # @a would write to where the update puts its result, and that too early.
        (True, "%2 = flow.tensor.update %1, %x[%c0] : tensor<4xf32> -> %x as tensor<4xf32>"),
        (
            True,
            """%v = flow.tensor.reshape %1 : tensor<4xf32> -> tensor<4xf32>
        %2 = flow.tensor.update %v, %x[%c0] : tensor<4xf32> -> %x as tensor<4xf32>""",
        ),
    ],
)
def test_a_barrier_that_has_done_its_work_is_removed(stays: bool, following: str) -> None:
    lines = _ordered(f"""
        %0 = flow.dispatch @e::@a(%x) : {_KERNEL}
        %1 = {_BARRIER} %0 : tensor<4xf32>
        {following}
        util.return %2 : tensor<4xf32>
    """)
    assert (_BARRIER in _names(lines)) == stays
