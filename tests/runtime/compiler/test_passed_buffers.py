"""Arrays that are passed to blocks and to programs: kept while they are read, not checked."""

from __future__ import annotations

import numpy as np
import pytest
from iree.compiler import ir

import axir
import axir.numpy as jnp
from axir.dialect.core.config import config
from axir.runtime import Program, RuntimeExecutionError, Target, compile_module, default_device
from axir.runtime.compiler.invocation.passed_buffers import (
    keep_passed_buffers,
    remove_argument_checks,
)

_FREE = (
    "!vm.ref<!hal.device>, i64, !vm.ref<!hal.fence>, !vm.ref<!hal.fence>, !vm.ref<!hal.buffer>, i64"
)
MODULE = f"""
vm.module public @module {{
  vm.import private @hal.device.queue.dealloca(
      %device : !vm.ref<!hal.device>, %queue_affinity : i64, %wait_fence : !vm.ref<!hal.fence>,
      %signal_fence : !vm.ref<!hal.fence>, %buffer : !vm.ref<!hal.buffer>, %flags : i64)
  vm.import private @make() -> !vm.ref<!hal.buffer>
  vm.func private @f(%flag: i32, %device: !vm.ref<!hal.device>, %queue: i64,
                     %wait: !vm.ref<!hal.fence>, %signal: !vm.ref<!hal.fence>) {{
    %origin = vm.const.i64 1
    %a = vm.call @make() : () -> !vm.ref<!hal.buffer>
    vm.cond_br %flag, ^bb1, ^bb2(%a : !vm.ref<!hal.buffer>)
  ^bb1:
    %b = vm.call @make() : () -> !vm.ref<!hal.buffer>
    vm.br ^bb2(%b : !vm.ref<!hal.buffer>)
  ^bb2(%c: !vm.ref<!hal.buffer>):
    vm.call @hal.device.queue.dealloca(%device, %queue, %wait, %signal, %c, %origin)
        : ({_FREE}) -> ()
    vm.call @hal.device.queue.dealloca(%device, %queue, %wait, %signal, %a, %origin)
        : ({_FREE}) -> ()
    vm.return
  }}
}}
"""


def _calls(module: ir.Module) -> list[ir.Operation]:
    found = []

    def collect(operation: ir.Operation) -> ir.WalkResult:
        if operation.name == "vm.call" and "queue" in str(operation.attributes["callee"]):
            found.append(operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(collect)
    return found


def test_an_array_that_a_block_was_handed_is_not_freed() -> None:
    with ir.Context():
        module = ir.Module.parse(MODULE)
        before = _calls(module)[0].operands
        expected = [before[i] for i in range(4)]
        assert keep_passed_buffers(module.operation) == 1
        assert module.operation.verify()
        barrier, free = _calls(module)
        assert str(barrier.attributes["callee"]) == "@hal.device.queue.barrier"
        assert list(barrier.operands)[:4] == expected
        assert barrier.operands[4].owner.name == "vm.const.i64.zero"
        # An array that was made here, and is read only by this name, is freed as before.
        assert str(free.attributes["callee"]) == "@hal.device.queue.dealloca"


def test_the_barrier_is_imported_once() -> None:
    with ir.Context():
        module = ir.Module.parse(MODULE.replace("%a, %origin", "%c, %origin"))
        assert keep_passed_buffers(module.operation) == 2
        assert str(module).count("vm.import private @hal.device.queue.barrier") == 1
        assert module.operation.verify()


def test_a_module_that_frees_what_it_made_stays_as_it_is() -> None:
    with ir.Context():
        module = ir.Module.parse(MODULE.replace("%c, %origin", "%a, %origin"))
        before = str(module)
        assert keep_passed_buffers(module.operation) == 0
        assert str(module) == before


CHECKED = """
!view = !vm.ref<!hal.buffer_view>
!buffer = !vm.ref<!hal.buffer>
vm.module public @module {
  vm.import private @hal.buffer.assert(%buffer : !buffer)
  vm.import private @hal.buffer_view.assert(%view : !view, %shape : i64 ...)
  vm.import private @hal.buffer_view.buffer(%view : !view) -> !buffer
  vm.func private @main(%view: !view) -> !buffer {
    vm.call.variadic @hal.buffer_view.assert(%view, []) : (!view, i64 ...)
    %0 = vm.call @hal.buffer_view.buffer(%view) : (!view) -> !buffer
    vm.call @hal.buffer.assert(%0) : (!buffer) -> ()
    vm.return %0 : !buffer
  }
}
"""
DOUBLE = """func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = stablehlo.add %x, %x : tensor<3xf32>
  return %0 : tensor<3xf32>
}"""


def test_checks_are_removed_and_other_calls_stay():
    with ir.Context():
        module = ir.Module.parse(CHECKED)
        assert remove_argument_checks(module.operation) == 2
        assert module.operation.verify()
        assert "vm.call @hal.buffer_view.buffer" in str(module)
        assert remove_argument_checks(module.operation) == 0


@pytest.mark.parametrize("mode", ["always", "never"])
def test_programs_check_their_arguments_unless_told_otherwise(mode):
    config.update("axir_isolate_compiler", mode)
    device = default_device()
    x = device.put(np.arange(3, dtype=np.float32))
    binaries = {c: compile_module(DOUBLE, Target(checks_arguments=c)) for c in (True, False)}
    assert len(binaries[False]) < len(binaries[True])
    for binary in binaries.values():
        (result,) = Program(binary, device).function()([x])
        assert result.to_numpy().tolist() == [0, 2, 4]
    with pytest.raises(RuntimeExecutionError, match="shape"):
        Program(binaries[True], device).function()([device.put(np.zeros(2, np.float32))])


def test_a_compiled_function_says_what_it_takes():
    unit = axir.jit(jnp.sin).lower(jnp.arange(3.0)).compile().runtime_executable()
    (result,) = unit([jnp.zeros(3)])
    assert result.tolist() == [0, 0, 0]
    for wrong in ([jnp.zeros(2)], [jnp.zeros(3, jnp.int32)], []):
        with pytest.raises(RuntimeExecutionError, match=r"takes \(float32\[3\]\), not \("):
            unit(wrong)
