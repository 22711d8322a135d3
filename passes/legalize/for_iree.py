"""`legalize-for-iree`: all legalizations in their order."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from iree.compiler import ir

from axir.passes.base import Pass
from axir.passes.registry import find_pass

STAGES = (
    "sort-by-digits",
    "expand-fft",
    "expand-complex",
    "expand-power",
    "expand-trigonometry",
    "expand-inverse-trigonometry",
    "expand-hyperbolic",
    "expand-cube-root",
    "define-digamma",
    "saturate-conversions",
    "keep-denormal-halves",
    "fill-empty-dot",
    "split-complex-conv",
    "fit-conv-windows",
    "widen-unsigned-dot",
    "position-select-and-scatter",
    "clamp-gather",
    "drop-scatter",
    "fit-scatter-operands",
    "index-scatter-windows",
    "lead-scatter-dims",
    "stabilize-sort",
    "unfold-windows",
    "use-window-results",
    "pad-windows",
    "split-complex-pad",
    "split-complex-constants",
    "negate-products",
    "limit-fusion",
    "sign-unsigned-data",
    "protect-inputs",
    "copy-returned-inputs",
    "separate-scatter-reads",
    "store-slices",
    "renew-loop-operands",
    "branch-loops",
)
"""The passes in order; why it matters stands in `LegalizeForIree`."""

_ON_DEVICE = ("protect-inputs", "copy-returned-inputs")
_ONLY_ON = {"sort-by-digits": "cpu"}


@dataclasses.dataclass(frozen=True)
class LegalizeForIree(Pass):
    """Rewrites a StableHLO module into what IREE compiles and computes right.

    1. `sort-by-digits`, on CPUs only, and `expand-fft`, which leave all kinds of operations behind;
       then functions of numbers, in any order: each of the passes takes those of its own types.
    2. `saturate-conversions`, `keep-denormal-halves`, `fill-empty-dot`, `split-complex-conv`,
       `fit-conv-windows` and `widen-unsigned-dot`, in any order.
    3. Indices: `position-select-and-scatter`, which makes scatters; `clamp-gather`; `drop-scatter`,
       then `fit-scatter-operands`, `index-scatter-windows` and `lead-scatter-dims`;
       `stabilize-sort` for the sorts that are left.
    4. `unfold-windows`, `use-window-results` and `pad-windows`, then `split-complex-pad`, because
       `drop-scatter` pads too; then `split-complex-constants`.
    5. `negate-products` and `limit-fusion`, when all elementwise operations are there, then
       `sign-unsigned-data`.
    6. `protect-inputs` when all operations that work in place are there. Then
       `copy-returned-inputs`, `separate-scatter-reads`, `store-slices` and `renew-loop-operands`,
       whose barriers `protect-inputs` would remove.
    7. `branch-loops` last: other passes know loops, and no blocks.

    Precondition: the module holds StableHLO, CHLO and `func` only. Before and after: see each pass.
    """

    name: ClassVar[str] = "legalize-for-iree"
    device: str = "__device_0"
    platform: str = "cpu"

    def run(self, module: ir.Module) -> None:
        """Runs the stages."""
        for name in STAGES:
            if _ONLY_ON.get(name, self.platform) != self.platform:
                continue
            options: dict[str, object] = {"device": self.device} if name in _ON_DEVICE else {}
            find_pass(name).from_options(options).run(module)
