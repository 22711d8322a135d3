"""`take-complex-parts`: parts of what was made of parts are these."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.rewriting import RewritePass, defining_operation

# What does with each part what it does with the number.
_MOVES = tuple(f"stablehlo.{n}" for n in ("reshape", "transpose", "broadcast_in_dim", "slice"))


@dataclasses.dataclass(frozen=True)
class TakeComplexParts(RewritePass):
    """Takes real and imaginary parts from where a complex number was made of them.

    The fact: IREE finds out that `real(complex(a, b))` is `a` when it has fused the two with what
    makes `a`, and returns `a` from that dispatch twice, with a third value for example. Of equal
    results it keeps one, and where that was not the first, what used the other then reads the
    first: `(z.T @ z.conj(), vecdot(z, z, axis=0))` were other numbers.

    1. From a real or an imaginary part follow the operand through reshapes, transpositions,
       broadcasts and slices to where it was made of two parts.
    2. Move the part as the number was moved.

    Before::

        %0 = stablehlo.complex %a, %b
        %1 = stablehlo.reshape %0 : (tensor<4x3xcomplex<f32>>) -> tensor<4x1x3xcomplex<f32>>
        %2 = stablehlo.real %1

    After::

        %2 = stablehlo.reshape %a : (tensor<4x3xf32>) -> tensor<4x1x3xf32>
    """

    name: ClassVar[str] = "take-complex-parts"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.real", "stablehlo.imag")

    def rewrite(self, operation: ir.Operation) -> ir.Value | None:
        """Builds the moves of the part."""
        moves: list[ir.Operation] = []
        maker = defining_operation(operation.operands[0])
        while maker is not None and maker.name in _MOVES:
            moves.append(maker)
            maker = defining_operation(maker.operands[0])
        if maker is None or maker.name != "stablehlo.complex":
            return None
        part: ir.Value = maker.operands[self.operations.index(operation.name)]
        for move in reversed(moves):
            part = _move(move, part)
        return part


def _move(move: ir.Operation, part: ir.Value) -> ir.Value:
    """Builds what `move` does to a number for one of its parts."""
    result = hlo.tensor_type(move.results[0].type.shape, hlo.element_type_of(part))
    attributes = {name: move.attributes[name] for name in move.attributes}
    return hlo.build(move.name.split(".")[1], move.name, (part,), [result], attributes).result
