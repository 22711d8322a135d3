"""The table of passes by name. A pass is imported when it is first asked for."""

from __future__ import annotations

import importlib

from axir.passes.base import Pass
from axir.passes.errors import UnknownPassError

PASSES: dict[str, str] = {
    "absorb-transposes": "axir.passes.tune.transposed_dot:AbsorbTransposes",
    "branch-loops": "axir.passes.legalize.branch_loops:BranchLoops",
    "clamp-gather": "axir.passes.legalize.gather:ClampGather",
    "copy-returned-inputs": "axir.passes.legalize.returned_inputs:CopyReturnedInputs",
    "define-digamma": "axir.passes.legalize.digamma:DefineDigamma",
    "drop-scatter": "axir.passes.legalize.scatter:DropScatter",
    "expand-complex": "axir.passes.legalize.complex:ExpandComplex",
    "expand-cube-root": "axir.passes.legalize.cube_root:ExpandCubeRoot",
    "expand-fft": "axir.passes.legalize.fft:ExpandFft",
    "expand-hyperbolic": "axir.passes.legalize.hyperbolic:ExpandHyperbolic",
    "expand-inverse-trigonometry": "axir.passes.legalize.arc_functions:ExpandInverseTrigonometry",
    "expand-power": "axir.passes.legalize.power:ExpandPower",
    "expand-trigonometry": "axir.passes.legalize.trigonometry:ExpandTrigonometry",
    "fill-empty-dot": "axir.passes.legalize.contractions:FillEmptyDot",
    "fit-conv-windows": "axir.passes.legalize.convolution:FitConvWindows",
    "fit-scatter-operands": "axir.passes.legalize.scatter_operands:FitScatterOperands",
    "index-scatter-windows": "axir.passes.legalize.scatter_windows:IndexScatterWindows",
    "jvp": "axir.passes.jvp:Jvp",
    "keep-denormal-halves": "axir.passes.legalize.conversions:KeepDenormalHalves",
    "lead-scatter-dims": "axir.passes.legalize.scatter_order:LeadScatterDims",
    "legalize-for-iree": "axir.passes.legalize.for_iree:LegalizeForIree",
    "limit-fusion": "axir.passes.legalize.fusion:LimitFusion",
    "linearize": "axir.passes.linearize:Linearize",
    "lower-to-stablehlo": "axir.passes.lower_to_stablehlo:LowerToStableHLO",
    "negate-products": "axir.passes.legalize.broadcast_products:NegateProducts",
    "pad-windows": "axir.passes.legalize.padded_windows:PadWindows",
    "position-select-and-scatter": (
        "axir.passes.legalize.select_and_scatter:PositionSelectAndScatter"
    ),
    "protect-inputs": "axir.passes.legalize.inputs:ProtectInputs",
    "put-features-last": "axir.passes.tune.conv_layout:PutFeaturesLast",
    "renew-loop-operands": "axir.passes.legalize.loop_operands:RenewLoopOperands",
    "saturate-conversions": "axir.passes.legalize.conversions:SaturateConversions",
    "separate-scatter-reads": "axir.passes.legalize.scatter_reads:SeparateScatterReads",
    "sign-unsigned-data": "axir.passes.legalize.unsigned_data:SignUnsignedData",
    "simplify": "axir.passes.simplify:Simplify",
    "sort-by-digits": "axir.passes.legalize.sort_by_digits:SortByDigits",
    "split-complex-constants": "axir.passes.legalize.complex_constants:SplitComplexConstants",
    "split-complex-conv": "axir.passes.legalize.complex_convolution:SplitComplexConv",
    "split-complex-pad": "axir.passes.legalize.complex_pad:SplitComplexPad",
    "split-reductions": "axir.passes.tune.reductions:SplitReductions",
    "spread-matvecs": "axir.passes.tune.matvec:SpreadMatvecs",
    "stabilize-sort": "axir.passes.legalize.stable_sort:StabilizeSort",
    "store-slices": "axir.passes.legalize.stored_slices:StoreSlices",
    "transpose": "axir.passes.transpose:Transpose",
    "transpose-rhs": "axir.passes.tune.rhs_rows:TransposeRhs",
    "tune-for-cpu": "axir.passes.tune.for_cpu:TuneForCpu",
    "unfold-windows": "axir.passes.legalize.unfolded_windows:UnfoldWindows",
    "unroll-wide-windows": "axir.passes.tune.wide_windows:UnrollWideWindows",
    "use-window-results": "axir.passes.legalize.window_results:UseWindowResults",
    "vmap": "axir.passes.vmap:Vmap",
    "widen-unsigned-dot": "axir.passes.legalize.contractions:WidenUnsignedDot",
}
"""Pass name to `module:class`."""


def find_pass(name: str) -> type[Pass]:
    """The pass of that name.

    Raises:
        UnknownPassError: There is none; the message offers the nearest names.
    """
    if name not in PASSES:
        raise UnknownPassError(name, PASSES)
    module, _, class_name = PASSES[name].partition(":")
    return getattr(importlib.import_module(module), class_name)


def pass_names() -> list[str]:
    """All pass names in alphabetical order."""
    return sorted(PASSES)
