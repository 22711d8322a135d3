"""The table of passes by name. A pass is imported when it is first looked up."""

from __future__ import annotations

import functools
import importlib

from .base import Pass
from .errors import UnknownPassError

_FOLDERS: dict[str, tuple[str, ...]] = {
    "transforms": (
        "grad",
        "instantiate",
        "jvp",
        "linearize",
        "lower-to-stablehlo",
        "simplify",
        "transpose",
        "vmap",
    ),
    "partition": ("partition",),
    "legalize": ("legalize-for-iree",),
    "legalize.numbers": (
        "compute-splats-once",
        "convert-by-single",
        "count-zeros-of-words",
        "define-digamma",
        "expand-c-functions",
        "divide-by-signed",
        "expand-cube-root",
        "expand-hyperbolic",
        "expand-inverse-trigonometry",
        "expand-power",
        "expand-remainder",
        "expand-rounding",
        "expand-trigonometry",
        "keep-denormal-halves",
        "multiply-in-double",
        "keep-roundings",
        "refuse-unsupported",
        "round-to-bfloat16",
        "saturate-conversions",
        "store-narrow-elements",
        "sign-unsigned-data",
        "write-out-formulas",
        "write-out-fused-products",
    ),
    "legalize.complex": (
        "expand-complex",
        "pair-complex-programs",
        "split-complex-constants",
        "split-complex-conv",
        "split-complex-dot",
        "split-complex-loops",
        "split-complex-pad",
        "split-complex-sums",
    ),
    "legalize.indices": (
        "clamp-gather",
        "drop-scatter",
        "fit-scatter-operands",
        "index-scatter-windows",
        "lead-index-components",
        "lead-scatter-dims",
        "scatter-by-kernel",
    ),
    "legalize.sorting": (
        "sort-by-digits",
        "sort-by-rank",
        "stabilize-sort",
    ),
    "legalize.windows": (
        "fit-conv-windows",
        "loop-over-windows",
        "pad-windows",
        "position-select-and-scatter",
        "reduce-long-windows",
        "run-by-kernel",
        "scan-by-doubling",
        "split-grouped-convolutions",
        "unfold-windows",
    ),
    "legalize.contractions": (
        "accumulate-in-single",
        "clamp-unsigned-operands",
        "fill-empty-dot",
        "hide-negations",
        "negate-products",
        "reduce-in-single",
        "select-boolean-operands",
        "widen-unsigned-dot",
    ),
    "legalize.fft": ("expand-fft", "write-transforms"),
    "legalize.loops": (
        "branch-loops",
        "renew-loop-operands",
    ),
    "legalize.buffers": (
        "bypass-barriers",
        "collapse-single-elements",
        "copy-returned-inputs",
        "limit-fusion",
        "limit-scalar-fusion",
        "protect-inputs",
        "renew-branch-results",
        "renew-fills",
        "separate-dispatches",
        "separate-views",
        "slice-reshaped",
    ),
    "raising": ("raise-stablehlo",),
    "fuse": (
        "fuse-islands",
        "fuse-loops",
        "fuse-small-programs",
        "fuse-small-sums",
        "fuse-whole-programs",
    ),
    "fuse.moves": ("fuse-moves",),
    "fuse.shares": ("fuse-convolutions", "fuse-long-sums", "fuse-sums", "fuse-windows"),
    "tune": (
        "absorb-transposes",
        "convolve-bytes",
        "put-features-last",
        "split-dilated-convolutions",
        "split-reductions",
        "write-out-doubles",
        "spread-matvecs",
        "transpose-rhs",
        "tune-for-cpu",
        "unroll-wide-windows",
    ),
    "tune.products": ("tile-convolutions", "tile-products", "unfold-convolutions"),
    "tune.rows": ("fuse-rows",),
}
"""The passes of each folder. A pass stands in the file of its name."""

PASSES: dict[str, str] = {
    name: f"axir.passes.{folder}.{name.replace('-', '_')}"
    for folder, names in _FOLDERS.items()
    for name in names
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
