"""`tune-for-cpu`: all rewrites for speed on a CPU in their order."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from iree.compiler import ir

from axir.passes.base import Pass
from axir.passes.registry import find_pass

STAGES = (
    "unroll-wide-windows",
    "put-features-last",
    "absorb-transposes",
    "spread-matvecs",
    "transpose-rhs",
    "split-reductions",
)
"""The passes in order; why it matters stands in `TuneForCpu`."""


@dataclasses.dataclass(frozen=True)
class TuneForCpu(Pass):
    """Rewrites a StableHLO module into forms that run faster on a CPU.

    1. `unroll-wide-windows` first, because it leaves matrix products and transpositions behind;
       `put-features-last` takes the convolutions that remain.
    2. `absorb-transposes`, then `spread-matvecs`, which leaves reductions behind, and
       `transpose-rhs` for the transpositions that pay; `split-reductions` last.

    Programs of small arrays pass through unchanged. Precondition: `legalize-for-iree` has run.
    Before and after: see the passes.
    """

    name: ClassVar[str] = "tune-for-cpu"

    def run(self, module: ir.Module) -> None:
        """Runs the stages."""
        for name in STAGES:
            find_pass(name)().run(module)
