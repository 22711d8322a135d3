"""The operations of the dialect: a folder per family, with all rules of an op together.

Importing this package imports every file that declares an op, and so fills the op
table `OPS`.
"""

from __future__ import annotations

from axir.dialect.program.op_table import OPS

from . import control_flow, custom_rules, linalg
from .calls import barriers, callbacks, checks, jit_call
from .collectives import axis_exchanges, axis_reductions, joined_sums
from .contraction import dot_general, fourier_transform
from .convolution import conv_general_dilated
from .elementwise import arithmetic, conversion, multiply_high, precision, transcendental
from .indexing import dynamic_slicing, gather, scatter, scatter_apply
from .random import bit_generators, random_bits, random_keys
from .reductions import arg_reduce, cumulative, linear_recurrence, reduce, variadic_reduce
from .shape import concatenation, constants, extents, rearranging, stacking
from .sharding import layout_callback, parallel_map, shard_map, sharding_constraint
from .sorting import sort
from .special import hypergeometric, integrals, special_functions
from .windows import (
    reduce_window,
    reduce_window_by_function,
    select_and_scatter,
    select_and_scatter_by_function,
)

__all__ = [
    "OPS",
    "arg_reduce",
    "arithmetic",
    "axis_exchanges",
    "axis_reductions",
    "barriers",
    "bit_generators",
    "callbacks",
    "checks",
    "concatenation",
    "constants",
    "control_flow",
    "conv_general_dilated",
    "conversion",
    "cumulative",
    "custom_rules",
    "dot_general",
    "dynamic_slicing",
    "extents",
    "fourier_transform",
    "gather",
    "hypergeometric",
    "integrals",
    "jit_call",
    "joined_sums",
    "layout_callback",
    "linalg",
    "linear_recurrence",
    "multiply_high",
    "parallel_map",
    "precision",
    "random_bits",
    "random_keys",
    "rearranging",
    "reduce",
    "reduce_window",
    "reduce_window_by_function",
    "scatter",
    "scatter_apply",
    "select_and_scatter",
    "select_and_scatter_by_function",
    "shard_map",
    "sharding_constraint",
    "sort",
    "special_functions",
    "stacking",
    "transcendental",
    "variadic_reduce",
]
