"""`copy-returned-inputs`: a result never shares memory with an argument."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from iree.compiler import ir

from axir.passes.framework.base import Pass
from axir.passes.legalize.rewriting import find_operations, replace

from .protect_inputs import transfer
from .storage import folded_sources

# Operations that may return the whole of an array. A result of the array's own type is the whole
# array, and IREE would drop a transfer behind it.
_WHOLES = tuple(f"stablehlo.{name}" for name in "dynamic_update_slice dynamic_slice slice".split())
_VIEWS = _WHOLES + tuple(
    f"stablehlo.{name}" for name in "reshape bitcast_convert scatter reduce_precision map".split()
)
_BARRIER = "stablehlo.optimization_barrier"


@dataclasses.dataclass(frozen=True)
class CopyReturnedInputs(Pass):
    """Copies an argument that a public function returns as it is or reshaped.

    The fact: IREE returns the caller's own buffer for such a result. If the result is donated to
    another call later, that call may overwrite the buffer, and the argument's owner sees it change.

    1. Visit the results of each public function.
    2. Follow each back through reshapes and bitcasts, through slices and updates of a whole array,
       and through operations that may change no element. (Optimization barriers of arguments are
       removed first: they have no effect, and a transfer next to one is optimized away.)
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
        for barrier in find_operations(module.operation, (_BARRIER,)):
            if all(isinstance(operand, ir.BlockArgument) for operand in barrier.operands):
                replace(barrier, list(barrier.operands))
        for function in find_operations(module.operation, ("func.func",)):
            if "sym_visibility" not in function.attributes:
                _copy_returned(function, self.device)


def _copy_returned(function: ir.Operation, device: str) -> None:
    # Found by walks: `Value.owner` imports the Python package of the operation's dialect.
    views = {
        result: folded_sources(result)
        for view in find_operations(function, _VIEWS)
        for result in view.results
    }
    (terminator,) = find_operations(function, ("func.return",))
    for index, value in enumerate(terminator.operands):
        pending, seen = [value], {value}
        for source in pending:
            fresh = [x for x in views.get(source, []) if x not in seen]
            seen.update(fresh)
            pending += fresh
        if any(isinstance(source, ir.BlockArgument) for source in pending):
            with ir.InsertionPoint(terminator), function.location:
                terminator.operands[index] = transfer(_unwrapped(value, views), device)


def _unwrapped(value: ir.Value, views: dict[ir.Value, list[ir.Value]]) -> ir.Value:
    """Returns the array that a value equals if it is a slice or an update of the whole array."""
    while (sources := views.get(value)) and value.owner.name in _WHOLES:
        (source,) = sources
        if source.type != value.type:  # such as slices of an empty array
            break
        value = source
    return value
