"""The call that frees a block's argument becomes a barrier, and references free the array."""

from __future__ import annotations

from iree.compiler import ir

from axir.runtime.compiler.invocation.passed_buffers import keep_passed_buffers

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
