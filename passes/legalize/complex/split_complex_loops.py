"""`split-complex-loops`: loops carry the parts of complex numbers."""

from __future__ import annotations

import logging
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.base import Pass
from axir.passes.legalize.rewriting import operations_in_order

from .complex_parts import CONTROL_FLOW, Parts, find_unsplittable, has_complex, split

_LOGGER = logging.getLogger(__name__)
_WHILE = "stablehlo.while"


class SplitComplexLoops(Pass):
    """Computes with real and imaginary parts in loops, and lets these carry parts.

    The fact: kernels have no complex numbers, so a loop over complex numbers was ten dispatches per
    iteration. (An escape-time fractal of 100 x 200 points took five times JAX's time.)

    1. Visit each outermost loop. Every complex operation in it, including its inner loops and
       branches, must have a rule (`complex_parts.py`).
    2. Before the loop, take the parts of its initial values and of the outer values that it reads.
    3. Write each operation out on the parts; loops carry, and branches return, two tensors for each
       complex one.
    4. Join the parts of the results behind the loop.

    Before::

        %0 = stablehlo.while(%z = %a) : tensor<complex<f32>>
        cond { … } do {
          %1 = stablehlo.add %z, %c
          stablehlo.return %1
        }

    After::

        %0:2 = stablehlo.while(%re = %real_a, %im = %imag_a) : tensor<f32>, tensor<f32>
        cond { … } do {
          %1 = stablehlo.add %re, %real_c
          %2 = stablehlo.add %im, %imag_c
          stablehlo.return %1, %2
        }
        %3 = stablehlo.complex %0#0, %0#1

    Precondition: `expand-complex` and `split-complex-dot` have run.
    """

    name: ClassVar[str] = "split-complex-loops"

    def run(self, module: ir.Module) -> None:
        """Rewrites the outermost loops of the module."""
        loops = operations_in_order(module.operation, (_WHILE,))
        # All loops are chosen first: rewriting a loop erases the operations inside it.
        for loop in [x for x in loops if _is_outermost(x) and _holds_complex(x)]:
            reason = find_unsplittable(loop)
            if reason is not None:
                _LOGGER.info("the loop at %s stays complex: %s", loop.location, reason)
                continue
            with loop.location:
                _split_outermost(loop)


def _is_outermost(loop: ir.Operation) -> bool:
    parent = loop.parent
    while parent is not None and parent.name != "func.func":
        if parent.name not in CONTROL_FLOW[1:]:
            return False
        parent = parent.parent
    return True


def _holds_complex(loop: ir.Operation) -> bool:
    found = False

    def visit(operation: ir.Operation) -> ir.WalkResult:
        nonlocal found
        found = has_complex(operation)
        return ir.WalkResult.INTERRUPT if found else ir.WalkResult.ADVANCE

    loop.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _split_outermost(loop: ir.Operation) -> None:
    parts = Parts(loop)
    split(loop, parts)
    with ir.InsertionPoint(loop):
        for result in loop.results:
            if hlo.is_complex(result):
                result.replace_all_uses_with(hlo.complex(*parts.of(result)))
    parts.finish()
