"""Programs with and without a look at their arguments."""

from __future__ import annotations

import numpy as np
import pytest
from iree.compiler import ir

import axir
import axir.numpy as jnp
from axir.dialect.core.config import config
from axir.runtime import Program, RuntimeExecutionError, Target, compile_module, default_device
from axir.runtime.compiler.invocation.passed_buffers import remove_argument_checks

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
