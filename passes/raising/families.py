"""All families of rules: importing them fills the table."""

from . import (
    arith,
    chlo,
    contractions,
    control_flow,
    custom_calls,
    devices,
    elementwise,
    indexing,
    linear_algebra,
    parts,
    quantized_products,
    reductions,
    shape_arithmetic,
    shapes,
    sorting,
    windows,
)

__all__ = [
    "arith",
    "chlo",
    "contractions",
    "control_flow",
    "custom_calls",
    "devices",
    "elementwise",
    "indexing",
    "linear_algebra",
    "parts",
    "quantized_products",
    "reductions",
    "shape_arithmetic",
    "shapes",
    "sorting",
    "windows",
]
