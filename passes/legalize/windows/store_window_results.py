"""`store-window-results`: window reductions do not share what they begin with."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.rewriting import RewritePass

_PADS = frozenset(("stablehlo.pad", "stablehlo.reduce_window", "stablehlo.convolution"))
_VIEWS = frozenset(
    f"stablehlo.{name}" for name in ("reshape", "broadcast_in_dim", "transpose", "bitcast_convert")
)


@dataclasses.dataclass(frozen=True)
class StoreWindowResults(RewritePass):
    """Keeps in memory the result of a window reduction that is padded.

    The fact: window reductions of equal shapes begin with one and the same array of initial values.
    Where the result of one is padded, which further windows and convolutions do, too, IREE has the
    first reduction write that array for the second one, in a loop that it then refuses ("write
    affecting operations on global resources are restricted to workgroup distributed contexts").

    1. Visit every result of a window reduction.
    2. If it is read by a pad, a window reduction or a convolution, itself or through reshapes,
       broadcasts and transpositions, let its users read an optimization barrier of it.

    Before::

        %0 = "stablehlo.reduce_window"(%x, %zero) …
        %1 = stablehlo.pad %0, %zero, low = [0], high = [1], interior = [0]

    After::

        %0 = "stablehlo.reduce_window"(%x, %zero) …
        %b = stablehlo.optimization_barrier %0
        %1 = stablehlo.pad %b, %zero, low = [0], high = [1], interior = [0]

    Precondition: `protect-inputs` has run, which removes barriers.
    """

    name: ClassVar[str] = "store-window-results"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.reduce_window",)

    def rewrite(self, operation: ir.Operation) -> None:
        """Puts barriers behind a window reduction."""
        for result in operation.results:
            if _is_padded(result):
                with ir.InsertionPoint.after(operation):
                    stored = hlo.optimization_barrier(result)[0]
                result.replace_all_uses_except(stored, stored.owner.operation)


def _is_padded(value: ir.Value) -> bool:
    """Tells whether a value, or a view of it, is read by what pads."""
    users = [use.owner for use in value.uses]
    return any(user.name in _PADS for user in users) or any(
        _is_padded(result) for user in users if user.name in _VIEWS for result in user.results
    )
