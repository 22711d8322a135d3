"""`tune-for-cpu`: all rewrites for speed on a CPU in their order."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.core.annotations import OptionValue
from axir.passes.framework.base import Pass
from axir.passes.legalize.stages import Stage, looks_for, run_stages

_SUMS = "reduce reduce_window scatter dot_general convolution"
STAGES: dict[str, Stage] = {
    "convolve-bytes": looks_for("convolution"),
    "split-dilated-convolutions": looks_for("convolution"),
    "unroll-wide-windows": looks_for("convolution"),
    "unfold-convolutions": looks_for("convolution"),
    "tile-convolutions": looks_for("convolution"),
    "put-features-last": looks_for("convolution"),
    "fuse-convolutions": looks_for("convolution"),
    "absorb-transposes": looks_for("dot_general"),
    "tile-products": looks_for("dot_general"),
    "spread-matvecs": looks_for("dot_general"),
    "transpose-rhs": looks_for("dot_general"),
    "fuse-rows": looks_for("reduce"),
    "fuse-long-sums": looks_for("reduce"),
    "fuse-small-sums": looks_for(_SUMS),
    "fuse-sums": looks_for("reduce"),
    "split-reductions": looks_for("reduce"),
    "write-out-doubles": looks_for("exponential log logistic tanh", is_double=True),
}
"""The passes in order, which matters (see `TuneForCpu`), and what each looks for."""


@dataclasses.dataclass(frozen=True)
class TuneForCpu(Pass):
    """Rewrites a StableHLO module into forms that run faster on a CPU.

    1. `convolve-bytes` and `split-dilated-convolutions`, which create convolutions;
       `unroll-wide-windows` and `unfold-convolutions`, which create matrix products and
       transpositions; `tile-convolutions`; and `put-features-last` for the remaining convolutions,
       which `fuse-convolutions` then takes.
    2. `absorb-transposes`, then `tile-products`; of the remaining products, `spread-matvecs` takes
       products with vectors, which creates reductions, and `transpose-rhs` takes products that gain
       from a transposition.
    3. `fuse-rows` for reductions, and `fuse-long-sums` for single rows and narrow arrays, which
       have no rows to divide among workgroups or no vectors in a row.
    4. `fuse-small-sums` for the remaining small sums, `fuse-sums` for other sums;
       `split-reductions` for reductions in loops, of complex numbers, and by other computations.
       Then `write-out-doubles` for functions that no kernel computes.

    With `calls`, kernels are fast to compile, and call functions that only programs without IREE
    have.

    For small arrays only sums change. Precondition: `legalize-for-iree` has run. Before and after:
    see the passes.
    """

    name: ClassVar[str] = "tune-for-cpu"
    vector_bits: int = 128
    calls: bool = False
    byte_products: bool = False

    def run(self, module: ir.Module) -> None:
        """Runs the stages."""
        options: dict[str, dict[str, OptionValue]] = {
            "tile-products": {
                "vector_bits": self.vector_bits,
                "calls": self.calls,
                "byte_products": self.byte_products,
            },
            "tile-convolutions": {"vector_bits": self.vector_bits, "small": self.calls},
        }
        run_stages(module, STAGES, options)
