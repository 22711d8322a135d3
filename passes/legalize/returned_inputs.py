"""`copy-returned-inputs`: a result never shares memory with an argument."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from iree.compiler import ir

from axir.dialect import stablehlo as hlo
from axir.passes.base import Pass
from axir.passes.legalize.inputs import signless, transfer
from axir.passes.legalize.rewriting import find_operations

_VIEWS = ("stablehlo.reshape", "stablehlo.bitcast_convert", "stablehlo.optimization_barrier")


@dataclasses.dataclass(frozen=True)
class CopyReturnedInputs(Pass):
    """Copies an argument that a public function returns as it is, or reshaped.

    The fact: IREE returns the caller's own buffer for such a result. If the result is donated to
    another call later, that call may overwrite the buffer, and the argument's owner sees it change.

    1. Visit the results of each public function.
    2. Follow each back through reshapes and bitcasts.
    3. If it ends at an argument, return a transfer of the value instead, which is a copy.

    Before::

        func.func @main(%arg0: tensor<9xf32>) -> tensor<9xf32> { return %arg0 }

    After::

        %0 = flow.tensor.transfer %arg0 : tensor<9xf32> to #hal.device.promise<@__device_0>
        return %0

    Precondition: `protect-inputs` has run.
    """

    name: ClassVar[str] = "copy-returned-inputs"
    device: str = "__device_0"

    def run(self, module: ir.Module) -> None:
        """Inserts the transfers."""
        promise = ir.Attribute.parse(f"#hal.device.promise<@{self.device}>")
        for function in find_operations(module.operation, ("func.func",)):
            if "sym_visibility" in function.attributes:
                continue
            block = function.regions[0].blocks[0]
            terminator = list(block.operations)[-1].operation
            for index, value in enumerate(terminator.operands):
                if not isinstance(_source(value), ir.BlockArgument):
                    continue
                with ir.InsertionPoint(terminator), function.location:
                    copy = _copy(value, promise)
                terminator.operands[index] = copy


def _copy(value: ir.Value, promise: ir.Attribute) -> ir.Value:
    if not hlo.is_unsigned(value):
        return transfer(value, promise)
    return hlo.bitcast_convert(transfer(signless(value), promise), hlo.element_type_of(value))


def _source(value: ir.Value) -> ir.Value:
    while isinstance(value, ir.OpResult) and value.owner.name in _VIEWS:
        value = value.owner.operands[value.result_number if len(value.owner.operands) > 1 else 0]
    return value
