"""`legalize-for-iree`: all legalizations in their order."""

from __future__ import annotations

import dataclasses
from contextlib import nullcontext
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.core.annotations import OptionValue
from axir.passes.framework.base import Pass

from .elementwise_loops import sharing_formulas
from .stages import Stage, looks_for, run_stages

_ANY = "func.func"
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
    "store-narrow-elements": looks_for("func.func constant convert", is_narrow=True),
    "compute-splats-once": looks_for("broadcast_in_dim constant"),
    "sort-by-digits": looks_for("sort"),
    "sort-by-rank": looks_for("sort"),
    "expand-fft": looks_for("fft"),
    "expand-complex": looks_for(_COMPLEX, is_complex=True),
    "expand-power": looks_for("power"),
    "expand-trigonometry": looks_for("sine cosine tan chlo.tan"),
    "expand-inverse-trigonometry": looks_for("atan2 chlo.atan chlo.asin chlo.acos"),
    "expand-hyperbolic": looks_for(_HYPERBOLIC),
    "expand-cube-root": looks_for("cbrt"),
    "expand-rounding": looks_for("round_nearest_even"),
    "define-digamma": looks_for("chlo.digamma"),
    "divide-by-signed": looks_for("divide remainder"),
    "expand-remainder": looks_for("remainder"),
    "count-zeros-of-words": looks_for("count_leading_zeros"),
    "saturate-conversions": looks_for("convert"),
    "keep-denormal-halves": looks_for("convert"),
    "convert-by-single": looks_for("convert"),
    "round-to-bfloat16": looks_for("convert"),
    "fill-empty-dot": looks_for(_CONTRACTIONS),
    "accumulate-in-single": looks_for(_CONTRACTIONS),
    "split-complex-conv": looks_for("convolution", is_complex=True),
    "split-complex-dot": looks_for("dot_general", is_complex=True),
    "split-complex-sums": looks_for("reduce", is_complex=True),
    "split-grouped-convolutions": looks_for("convolution"),
    "fit-conv-windows": looks_for("convolution"),
    "select-boolean-operands": looks_for("convert"),
    "widen-unsigned-dot": looks_for(_CONTRACTIONS),
    "clamp-unsigned-operands": looks_for("convert"),
    "split-complex-loops": looks_for("while"),
    "expand-c-functions": looks_for(_ANY),
    "multiply-in-double": looks_for("reduce reduce_window"),
    "write-out-fused-products": looks_for("linalg.generic"),
    "position-select-and-scatter": looks_for("select_and_scatter"),
    "lead-index-components": looks_for("gather"),
    "fuse-small-programs": looks_for(_ANY),
    "fuse-loops": looks_for("while"),
    "absorb-transposes": looks_for("dot_general"),
    "fuse-moves": looks_for("gather iota transpose pad concatenate reverse slice"),
    "write-out-formulas": looks_for("linalg.generic", calls=True),
    "clamp-gather": looks_for("gather"),
    "scatter-by-kernel": looks_for("scatter"),
    "drop-scatter": looks_for("scatter"),
    "fit-scatter-operands": looks_for("scatter"),
    "index-scatter-windows": looks_for("scatter"),
    "lead-scatter-dims": looks_for("scatter"),
    "stabilize-sort": looks_for("sort"),
    "reduce-long-windows": looks_for("reduce_window"),
    "run-by-kernel": looks_for("reduce_window"),
    "unfold-windows": looks_for("reduce_window"),
    "scan-by-doubling": looks_for("reduce_window", is_complex=True),
    "pad-windows": looks_for("reduce_window"),
    "fuse-windows": looks_for("reduce_window"),
    "split-complex-pad": looks_for("pad", is_complex=True),
    "split-complex-constants": looks_for("constant", is_complex=True),
    "reduce-in-single": looks_for("reduce"),
    "negate-products": looks_for("reduce"),
    "hide-negations": looks_for("reduce"),
    "limit-fusion": looks_for(_ANY),
    "limit-scalar-fusion": looks_for(_ANY),
    "keep-roundings": looks_for("add subtract linalg.generic"),
    "refuse-unsupported": looks_for(_ANY),
    "separate-views": looks_for("broadcast_in_dim reshape transpose dot_general"),
    "sign-unsigned-data": looks_for("reverse reduce_window convert"),
    "loop-over-windows": looks_for("reduce_window"),
    "slice-reshaped": looks_for("slice"),
    "bypass-barriers": looks_for("optimization_barrier"),
    "protect-inputs": looks_for(_ANY),
    "copy-returned-inputs": looks_for(_ANY),
    "separate-scatter-reads": looks_for("scatter"),
    "store-positions": looks_for("iota"),
    "store-reductions": looks_for("broadcast_in_dim"),
    "store-several-results": looks_for("reduce linalg.generic", has_several=True),
    "store-widened": looks_for("convert select linalg.generic"),
    "store-moved-conversions": looks_for("convert"),
    "store-dilations": looks_for("pad"),
    "store-moved-parts": looks_for("dynamic_update_slice"),
    "store-sliced": looks_for("slice dynamic_slice"),
    "store-slices": looks_for("gather reverse sort func.call"),
    "renew-fills": looks_for("pad scatter dynamic_update_slice sort flow.dispatch"),
    "renew-branch-results": looks_for("if case"),
    "renew-loop-operands": looks_for("scatter dynamic_update_slice sort flow.dispatch"),
    "collapse-single-elements": looks_for("reshape"),
    "branch-loops": looks_for("while"),
}
"""The passes in order, which matters (see `LegalizeForIree`), and what each looks for."""

_ON_DEVICE = ("protect-inputs", "copy-returned-inputs", "branch-loops")
_FUSIONS = (
    "split-complex-loops",
    "fuse-loops",
    "absorb-transposes",
    "fuse-moves",
    "fuse-small-programs",
    "fuse-windows",
)
_FIRST_FUSION = "fuse-small-programs"
_GPUS = ("vulkan", "cuda", "rocm", "metal")
_SPIRV = ("vulkan", "metal")
_ONLY_ON = {
    **dict.fromkeys(
        (
            "expand-rounding",
            "multiply-in-double",
            "run-by-kernel",
            "scatter-by-kernel",
            "sort-by-digits",
            "split-complex-sums",
            *_FUSIONS,
        ),
        ("cpu",),
    ),
    "stabilize-sort": ("cpu", "vmvx"),
    "store-moved-conversions": ("cuda",),
    **dict.fromkeys(
        ("accumulate-in-single", "sort-by-rank", "hide-negations", "refuse-unsupported"), _GPUS
    ),
    **dict.fromkeys(
        (
            "count-zeros-of-words",
            "divide-by-signed",
            "expand-remainder",
            "keep-roundings",
            "reduce-in-single",
            "scan-by-doubling",
            "split-grouped-convolutions",
            "store-positions",
            "store-reductions",
            "store-widened",
            "write-out-fused-products",
        ),
        _SPIRV,
    ),
}


@dataclasses.dataclass(frozen=True)
class LegalizeForIree(Pass):
    """Rewrites a StableHLO module into operations that IREE compiles and computes correctly.

    1. `store-narrow-elements`, so that no other pass meets narrow elements; `compute-splats-once`,
       while all elementwise operations are still operations; `sort-by-digits` on CPUs,
       `sort-by-rank` on GPUs, and `expand-fft`, which create all kinds of operations; then the
       passes for functions of numbers, in any order, because each handles other element types.
    2. For Vulkan `divide-by-signed`, `expand-remainder` and `count-zeros-of-words`.
       `saturate-conversions`, `keep-denormal-halves`, `convert-by-single`, `round-to-bfloat16`,
       `fill-empty-dot`, on GPUs `accumulate-in-single`, `split-complex-conv`, `split-complex-dot`,
       `split-complex-sums` on CPUs,
       for Vulkan `split-grouped-convolutions`, `fit-conv-windows`, `select-boolean-operands` and
       `widen-unsigned-dot`, in any order, then `clamp-unsigned-operands`. Then
       `split-complex-loops`, on CPUs and unless `fuses` is off, and `expand-c-functions`, unless
       the program has a C library; on CPUs `multiply-in-double`; for Vulkan
       `write-out-fused-products`; `position-select-and-scatter`, which makes scatters and gathers;
       `lead-index-components`; then, on CPUs and unless `fuses` is off,
       `fuse-small-programs`, `fuse-loops`, `absorb-transposes` and `fuse-moves`, after functions of
       numbers are written out and before gathers and scatters change; and `write-out-formulas`.
    3. Indices: `clamp-gather`;
       `scatter-by-kernel`, on CPUs only, and for the remaining scatters `drop-scatter`, then
       `fit-scatter-operands`, `index-scatter-windows` and `lead-scatter-dims`; `stabilize-sort` for
       the remaining sorts on CPUs.
    4. `reduce-long-windows`, on CPUs `run-by-kernel`, `unfold-windows`, for Vulkan
       `scan-by-doubling`, and `pad-windows`; on CPUs and unless `fuses` is off `fuse-windows`; then
       `split-complex-pad`, because `drop-scatter` pads too; then `split-complex-constants`.
    5. For Vulkan `reduce-in-single`; `negate-products`, and on GPUs `hide-negations`, because
       `negate-products` makes negations; `limit-fusion` and `limit-scalar-fusion`; for Vulkan
       `keep-roundings`; for GPUs `refuse-unsupported` with the types that are `missing`; and
       `separate-views`, when all elementwise operations exist. Then `sign-unsigned-data` and
       `loop-over-windows`, and `slice-reshaped`, when all slices exist.
    6. `bypass-barriers` and `protect-inputs` when all operations that work in place exist. Then
       `copy-returned-inputs`, `separate-scatter-reads`, for Vulkan `store-positions` and
       `store-reductions`, `store-several-results`, for Vulkan `store-widened`, for CUDA
       `store-moved-conversions`, `store-dilations`, `store-moved-parts`, `store-sliced`,
       `store-slices`, `renew-fills`, `renew-branch-results` and `renew-loop-operands`:
       `protect-inputs` would remove the barriers of all these passes.
    7. `collapse-single-elements` and `branch-loops` last: the other passes handle reshapes and
       loops, not blocks.

    `part` chooses a part of the sequence. "numbers" is the passes before the fusions; after it a
    program may become one kernel that runs without IREE. "rest" is the fusions and the passes
    behind them, without step 7. Between the two, many loops of one formula share a function, and
    `write-out-formulas` inlines it into the loops that become no kernel. "blocks" is only step 7:
    programs that run without IREE keep their loops, and the tuning passes expect loops. "regions"
    is "numbers" and "rest" together.

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
        is_spirv = self.platform in _SPIRV
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
            "rest": names[first:-2],
            "regions": names[:-2],
            "blocks": names[-2:],
        }
        return {
            name: STAGES[name]
            for name in parts[self.part]
            if self.platform in _ONLY_ON.get(name, (self.platform,))
            and (self.fuses or name not in _FUSIONS)
            and not (self.has_c_library and name == "expand-c-functions")
        }
