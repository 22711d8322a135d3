"""The table of passes by name. A pass is imported when it is first looked up."""

from __future__ import annotations

import functools
import importlib

from .base import Pass
from .errors import UnknownPassError

_FILES = {
    "transforms.grad": "grad",
    "transforms.instantiate": "instantiate",
    "transforms.jvp": "jvp",
    "transforms.linearize": "linearize",
    "transforms.lower_to_stablehlo": "lower-to-stablehlo",
    "transforms.simplify": "simplify",
    "transforms.transpose": "transpose",
    "transforms.vmap": "vmap",
    "partition.partition": "partition",
    "legalize.elementwise_loops": "write-out-formulas",
    "legalize.legalize_for_iree": "legalize-for-iree",
    "legalize.numbers.compute_splats_once": "compute-splats-once",
    "legalize.numbers.conversions": (
        "convert-by-single keep-denormal-halves round-to-bfloat16 saturate-conversions"
    ),
    "legalize.numbers.expand_c_functions": "expand-c-functions",
    "legalize.numbers.expand_hyperbolic": "expand-hyperbolic",
    "legalize.numbers.expand_inverse_trigonometry": "expand-inverse-trigonometry",
    "legalize.numbers.expand_trigonometry": "expand-trigonometry",
    "legalize.numbers.for_spirv": (
        "count-zeros-of-words divide-by-signed expand-remainder write-out-fused-products"
    ),
    "legalize.numbers.keep_roundings": "keep-roundings",
    "legalize.numbers.real_functions": (
        "define-digamma expand-cube-root expand-power expand-rounding"
    ),
    "legalize.numbers.refuse_unsupported": "refuse-unsupported",
    "legalize.numbers.sign_unsigned_data": "sign-unsigned-data",
    "legalize.numbers.narrow_elements": "store-narrow-elements",
    "legalize.complex.complex_operations": (
        "expand-complex split-complex-constants split-complex-conv split-complex-dot"
        " split-complex-pad split-complex-sums"
    ),
    "legalize.complex.paired_programs": "pair-complex-programs split-complex-loops",
    "legalize.indices.drop_scatter": "drop-scatter",
    "legalize.indices.gathers": "clamp-gather lead-index-components",
    "legalize.indices.scatter_by_kernel": "scatter-by-kernel",
    "legalize.indices.scatters": "fit-scatter-operands index-scatter-windows lead-scatter-dims",
    "legalize.sorting.sort_by_digits": "sort-by-digits",
    "legalize.sorting.stable_sorts": "sort-by-rank stabilize-sort",
    "legalize.windows.convolutions": "fit-conv-windows split-grouped-convolutions",
    "legalize.windows.loop_over_windows": "loop-over-windows",
    "legalize.windows.pad_windows": "pad-windows",
    "legalize.windows.position_select_and_scatter": "position-select-and-scatter",
    "legalize.windows.running_reductions": "run-by-kernel scan-by-doubling",
    "legalize.windows.whole_arrays": "reduce-long-windows unfold-windows",
    "legalize.contractions.operands": (
        "clamp-unsigned-operands fill-empty-dot select-boolean-operands widen-unsigned-dot"
    ),
    "legalize.contractions.sums": (
        "accumulate-in-single hide-negations multiply-in-double negate-products reduce-in-single"
    ),
    "legalize.fft.expand_fft": "expand-fft",
    "legalize.fft.write_transforms": "write-transforms",
    "legalize.loops.branch_loops": "branch-loops",
    "legalize.loops.renew_loop_operands": "renew-loop-operands",
    "legalize.buffers.bypass_barriers": "bypass-barriers",
    "legalize.buffers.copy_returned_inputs": "copy-returned-inputs",
    "legalize.buffers.limits": "limit-fusion limit-scalar-fusion",
    "legalize.buffers.protect_inputs": "protect-inputs",
    "legalize.buffers.renew_branch_results": "renew-branch-results",
    "legalize.buffers.renew_fills": "renew-fills",
    "legalize.buffers.reshapes": "collapse-single-elements slice-reshaped",
    "legalize.buffers.separate_dispatches": "separate-dispatches",
    "legalize.buffers.separate_views": "separate-views",
    "raising.raise_stablehlo": "raise-stablehlo",
    "fuse.fuse_islands": "fuse-islands",
    "fuse.fuse_loops": "fuse-loops",
    "fuse.fuse_programs": "fuse-small-programs fuse-small-sums fuse-whole-programs",
    "fuse.moves.fuse_moves": "fuse-moves",
    "fuse.shares.fuse_long_sums": "fuse-long-sums",
    "fuse.shares.fuse_sums": "fuse-sums",
    "fuse.shares.fuse_windows": "fuse-convolutions fuse-windows",
    "tune.convolutions": "convolve-bytes put-features-last split-dilated-convolutions",
    "tune.split_reductions": "split-reductions",
    "tune.spread_loops": "spread-matvecs write-out-doubles",
    "tune.transposes": "absorb-transposes transpose-rhs",
    "tune.tune_for_cpu": "tune-for-cpu",
    "tune.unroll_wide_windows": "unroll-wide-windows",
    "tune.products.tile_convolutions": "tile-convolutions",
    "tune.products.tile_products": "tile-products",
    "tune.products.unfold_convolutions": "unfold-convolutions",
    "tune.rows.fuse_rows": "fuse-rows",
}
"""The passes of each file below `axir.passes`."""

PASSES: dict[str, str] = {
    name: f"axir.passes.{file}" for file, names in _FILES.items() for name in names.split()
}
"""Pass name to module."""


def takes_jaxpr(name: str) -> bool:
    """Tells whether a pass works on modules of the jaxpr dialect."""
    return PASSES.get(name, "").startswith(("axir.passes.transforms.", "axir.passes.partition."))


@functools.cache
def find_pass(name: str) -> type[Pass]:
    """Returns the pass of that name.

    Raises:
        UnknownPassError: The name is unknown; the message offers the nearest names.
    """
    if name not in PASSES:
        raise UnknownPassError(name, PASSES)
    module = importlib.import_module(PASSES[name])
    return next(
        value
        for value in vars(module).values()
        # In Python 3.10 aliases such as `dict[str, int]` are instances of type, but no classes.
        if isinstance(value, type) and vars(value).get("name") == name and issubclass(value, Pass)
    )


def pass_names() -> list[str]:
    """All pass names in alphabetical order."""
    return sorted(PASSES)
