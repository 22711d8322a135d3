"""`legalize-for-iree`: all legalizations in their order."""

from __future__ import annotations

import dataclasses
from contextlib import nullcontext
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.core.annotations import OptionValue
from axir.passes.framework.base import Pass

from .elementwise_loops import sharing_formulas
from .stages import GPUS, SPIRV, Stage, looks_for, run_stages

_ANY = "func.func"
_CPU = ("cpu",)
_CONTRACTIONS = "dot_general dot convolution"
_COMPLEX = (
    "sign sqrt rsqrt abs log log_plus_one exponential exponential_minus_one tanh logistic divide "
    "power sine cosine tan chlo.tan chlo.sinh chlo.cosh chlo.asin chlo.acos chlo.atan chlo.asinh "
    "chlo.acosh chlo.atanh"
)
_HYPERBOLIC = (
    "exponential_minus_one log_plus_one chlo.sinh chlo.cosh chlo.asinh chlo.acosh chlo.atanh"
)

STAGES: dict[str, Stage] = {
    # First, so that no other pass meets narrow elements.
    "store-narrow-elements": looks_for("func.func constant convert", is_narrow=True),
    # All elementwise operations are still operations.
    "compute-splats-once": looks_for("broadcast_in_dim constant"),
    # The next passes create all kinds of operations.
    "sort-by-digits": looks_for("sort", _CPU),
    "sort-by-rank": looks_for("sort", GPUS),
    "expand-fft": looks_for("fft"),
    # Functions of numbers, in any order, because each pass handles other functions or types.
    "expand-complex": looks_for(_COMPLEX, is_complex=True),
    "expand-power": looks_for("power"),
    "expand-trigonometry": looks_for("sine cosine tan chlo.tan"),
    "expand-inverse-trigonometry": looks_for("atan2 chlo.atan chlo.asin chlo.acos"),
    "expand-hyperbolic": looks_for(_HYPERBOLIC),
    "expand-cube-root": looks_for("cbrt"),
    "expand-rounding": looks_for("round_nearest_even", _CPU),
    "define-digamma": looks_for("chlo.digamma"),
    # Integers, conversions and contractions, in any order.
    "divide-by-signed": looks_for("divide remainder", SPIRV),
    "expand-remainder": looks_for("remainder", SPIRV),
    "count-zeros-of-words": looks_for("count_leading_zeros", SPIRV),
    "saturate-conversions": looks_for("convert"),
    "keep-denormal-halves": looks_for("convert"),
    "convert-by-single": looks_for("convert"),
    "round-to-bfloat16": looks_for("convert"),
    "fill-empty-dot": looks_for(_CONTRACTIONS),
    "accumulate-in-single": looks_for(_CONTRACTIONS, GPUS),
    "split-complex-conv": looks_for("convolution", is_complex=True),
    "split-complex-dot": looks_for("dot_general", is_complex=True),
    "split-complex-sums": looks_for("reduce", _CPU, is_complex=True),
    "split-grouped-convolutions": looks_for("convolution", SPIRV),
    "fit-conv-windows": looks_for("convolution"),
    "select-boolean-operands": looks_for("convert"),
    "widen-unsigned-dot": looks_for(_CONTRACTIONS),
    # The passes that make the conversions of contractions' operands have run.
    "clamp-unsigned-operands": looks_for("convert"),
    "split-complex-loops": looks_for("while", _CPU, is_fusion=True),
    "expand-c-functions": looks_for(_ANY),
    "multiply-in-double": looks_for("reduce reduce_window", _CPU),
    "write-out-fused-products": looks_for("linalg.generic", SPIRV),
    # This pass makes scatters and gathers.
    "position-select-and-scatter": looks_for("select_and_scatter"),
    "lead-index-components": looks_for("gather"),
    # Kernels: functions of numbers are written out, and gathers and scatters are unchanged.
    "fuse-small-programs": looks_for(_ANY, _CPU, is_fusion=True),
    "fuse-loops": looks_for("while", _CPU, is_fusion=True),
    "absorb-transposes": looks_for("dot_general", _CPU, is_fusion=True),
    "fuse-moves": looks_for(
        "gather iota transpose pad concatenate reverse slice", _CPU, is_fusion=True
    ),
    "write-out-formulas": looks_for("linalg.generic", calls=True),
    # Indices. Scatters and sorts that become no kernels stay for the passes behind the first one.
    "clamp-gather": looks_for("gather"),
    "scatter-by-kernel": looks_for("scatter", _CPU),
    "drop-scatter": looks_for("scatter"),
    "fit-scatter-operands": looks_for("scatter"),
    "index-scatter-windows": looks_for("scatter"),
    "lead-scatter-dims": looks_for("scatter"),
    "stabilize-sort": looks_for("sort", ("cpu", "vmvx")),
    # Windows.
    "reduce-long-windows": looks_for("reduce_window"),
    "run-by-kernel": looks_for("reduce_window", _CPU),
    "unfold-windows": looks_for("reduce_window"),
    "scan-by-doubling": looks_for("reduce_window", SPIRV, is_complex=True),
    "pad-windows": looks_for("reduce_window"),
    "fuse-windows": looks_for("reduce_window", _CPU, is_fusion=True),
    # Complex pads, which `drop-scatter` makes, too; then complex constants, which pads read.
    "split-complex-pad": looks_for("pad", is_complex=True),
    "split-complex-constants": looks_for("constant", is_complex=True),
    # Sums. `negate-products` makes the negations that `hide-negations` hides.
    "reduce-in-single": looks_for("reduce", SPIRV),
    "negate-products": looks_for("reduce"),
    "hide-negations": looks_for("reduce", GPUS),
    # All elementwise operations exist. The passes limit their fusion.
    "limit-fusion": looks_for(_ANY),
    "limit-scalar-fusion": looks_for(_ANY),
    "keep-roundings": looks_for("add subtract linalg.generic", SPIRV),
    "refuse-unsupported": looks_for(_ANY, GPUS),
    "separate-views": looks_for("broadcast_in_dim reshape transpose dot_general"),
    "sign-unsigned-data": looks_for("reverse reduce_window convert"),
    "loop-over-windows": looks_for("reduce_window"),
    # All slices exist.
    "slice-reshaped": looks_for("slice"),
    # All operations that work in place exist. `protect-inputs` removes barriers, so the passes that
    # put barriers and copies for these operations come after it.
    "bypass-barriers": looks_for("optimization_barrier"),
    "protect-inputs": looks_for(_ANY),
    "copy-returned-inputs": looks_for(_ANY),
    "separate-dispatches": looks_for(
        "scatter pad dynamic_update_slice slice dynamic_slice gather reverse sort func.call",
        also=(
            looks_for("reduce linalg.generic", has_several=True),
            looks_for("convert", ("cuda",)),
            looks_for("iota broadcast_in_dim convert select linalg.generic", SPIRV),
        ),
    ),
    "renew-fills": looks_for("pad scatter dynamic_update_slice sort flow.dispatch"),
    "renew-branch-results": looks_for("if case"),
    "renew-loop-operands": looks_for("scatter dynamic_update_slice sort flow.dispatch"),
    # Only IREE's programs need these kernels.
    "write-transforms": looks_for("flow.dispatch", _CPU),
    # Last, because the other passes handle reshapes and loops, not blocks.
    "collapse-single-elements": looks_for("reshape"),
    "branch-loops": looks_for("while"),
}
"""The passes in order, the operations that each looks for, and its platforms (all by default).

The comments give the reasons for the order.
"""

_ON_DEVICE = ("protect-inputs", "copy-returned-inputs", "branch-loops")
_FIRST_FUSION = "fuse-small-programs"
_BLOCKS = 3
"""The number of passes at the end that only IREE's programs need."""


@dataclasses.dataclass(frozen=True)
class LegalizeForIree(Pass):
    """Rewrites a StableHLO module into operations that IREE compiles and computes correctly.

    1. Go through the table `STAGES`, which gives the order and the reasons for it.
    2. Skip a pass that is not for the platform, or that makes kernels if `fuses` is off, and
       `expand-c-functions` if the program has a C library.
    3. Skip a pass if the module holds none of the operations that the pass looks for.

    `part` chooses a part of the sequence. "numbers" is the passes before the fusions; after it a
    program may become one kernel that runs without IREE. "rest" is the fusions and the passes
    behind them, without the last three. Between these parts, many loops of one formula share a
    function, and `write-out-formulas` inlines it into the loops that become no kernel. "blocks" is
    the last three: programs that run without IREE call a library of transforms and keep their
    loops, and the tuning passes expect loops. "regions" is "numbers" and "rest" together.

    Precondition: the module holds StableHLO, CHLO and `func` only. Before and after: see each pass.
    """

    name: ClassVar[str] = "legalize-for-iree"
    device: str = "__device_0"
    platform: str = "cpu"
    missing: str = ""
    fuses: bool = True
    has_c_library: bool = True
    part: str = "all"

    def run(self, module: ir.Module) -> None:
        """Runs the stages."""
        options: dict[str, dict[str, OptionValue]] = {
            name: {"device": self.device} for name in _ON_DEVICE
        }
        options["expand-c-functions"] = {"platform": self.platform}
        options["expand-fft"] = {"platform": self.platform}
        options["refuse-unsupported"] = {"platform": self.platform, "missing": self.missing}
        options["protect-inputs"]["platform"] = self.platform
        options["separate-dispatches"] = {"platform": self.platform}
        is_spirv = self.platform in SPIRV
        for name in ("expand-trigonometry", "expand-complex"):
            options[name] = {"fuses": not is_spirv}
        options["accumulate-in-single"] = {"widens": is_spirv}
        is_for_kernels = self.part == "numbers"
        with sharing_formulas() if is_for_kernels else nullcontext():
            run_stages(module, self.stages(), options)

    def stages(self) -> dict[str, Stage]:
        """Returns the stages of the part that the platform has."""
        names = list(STAGES)
        first = names.index(_FIRST_FUSION)
        parts = {
            "all": names,
            "numbers": names[:first],
            "rest": names[first:-_BLOCKS],
            "regions": names[:-_BLOCKS],
            "blocks": names[-_BLOCKS:],
        }
        return {
            name: STAGES[name].for_platform(self.platform)
            for name in parts[self.part]
            if STAGES[name].is_on(self.platform)
            and (self.fuses or not STAGES[name].is_fusion)
            and not (self.has_c_library and name == "expand-c-functions")
        }
