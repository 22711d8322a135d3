"""`axir.lax`: the operations themselves, under JAX's names.

Unlike the functions of `axir.numpy`, these promote neither dtypes nor ranks (scalars excepted):
they take the operands of the dialect's ops. Elementwise ops broadcast extents of 1. They are
declared in `axir.dialect.ops`.

>>> import axir.numpy as jnp
>>> from axir import lax
>>> lax.add(jnp.ones(2), 1.0)
Array([2., 2.], dtype=float32)
>>> lax.add(jnp.ones((2, 1)), jnp.ones((1, 3))).shape
(2, 3)
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

from axir._later import later
from axir._primitive_names import primitive_named
from axir.dialect.core.annotations import UserObject
from axir.dialect.ops.contraction.algorithms import DotAlgorithm, DotAlgorithmPreset
from axir.dialect.ops.contraction.dot_general import batch_matmul
from axir.dialect.ops.contraction.fourier_transform import FftType, fft
from axir.dialect.ops.contraction.ragged_dot import (
    RaggedDotDimensionNumbers,
    ragged_dot,
    ragged_dot_general,
)
from axir.dialect.ops.convolution.functions import (
    conv,
    conv_general_shape_tuple,
    conv_shape_tuple,
    conv_transpose,
    conv_transpose_shape_tuple,
    conv_with_general_padding,
)
from axir.dialect.ops.convolution.patches import (
    conv_general_dilated_local,
    conv_general_dilated_patches,
)
from axir.dialect.ops.convolution.types import (
    ConvDimensionNumbers,
    ConvGeneralDilatedDimensionNumbers,
    conv_dimension_numbers,
    conv_general_permutations,
    padtype_to_pads,
)
from axir.dialect.ops.elementwise.arithmetic import (
    abs,
    add,
    ceil,
    clamp,
    div,
    floor,
    is_finite,
    max,
    min,
    mul,
    neg,
    nextafter,
    rem,
    round,
    sign,
    square,
    sub,
)
from axir.dialect.ops.elementwise.comparison import and_ as bitwise_and
from axir.dialect.ops.elementwise.comparison import (
    clz,
    eq,
    ge,
    gt,
    le,
    lt,
    ne,
    population_count,
    select_n,
    shift_left,
    shift_right_arithmetic,
    shift_right_logical,
)
from axir.dialect.ops.elementwise.comparison import not_ as bitwise_not
from axir.dialect.ops.elementwise.comparison import or_ as bitwise_or
from axir.dialect.ops.elementwise.comparison import xor as bitwise_xor
from axir.dialect.ops.elementwise.conversion import (
    bitcast_convert_type,
    conj,
    convert_element_type,
    imag,
    real,
)
from axir.dialect.ops.elementwise.conversion import complex_ as complex
from axir.dialect.ops.elementwise.multiply_high import mulhi
from axir.dialect.ops.elementwise.precision import reduce_precision
from axir.dialect.ops.elementwise.transcendental import (
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    cbrt,
    cos,
    cosh,
    erf,
    erf_inv,
    erfc,
    exp,
    exp2,
    expm1,
    integer_pow,
    log,
    log1p,
    logistic,
    pow,
    rsqrt,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
)
from axir.dialect.ops.indexing.dynamic_slicing import (
    dynamic_index_in_dim,
    dynamic_slice,
    dynamic_slice_in_dim,
    dynamic_update_index_in_dim,
    dynamic_update_slice,
    dynamic_update_slice_in_dim,
)
from axir.dialect.ops.indexing.gather import GatherDimensionNumbers, GatherScatterMode, gather
from axir.dialect.ops.indexing.scatter import (
    ScatterDimensionNumbers,
    scatter,
    scatter_add,
    scatter_max,
    scatter_min,
    scatter_mul,
    scatter_sub,
)
from axir.dialect.ops.indexing.scatter_apply import scatter_apply
from axir.dialect.ops.indexing.static_slicing import index_in_dim, slice, slice_in_dim
from axir.dialect.ops.random.bit_generators import RandomAlgorithm, rng_bit_generator
from axir.dialect.ops.reductions.arg_reduce import argmax, argmin
from axir.dialect.ops.reductions.cumulative import cumlogsumexp, cummax, cummin, cumprod, cumsum
from axir.dialect.ops.reductions.reduce import (
    reduce_and,
    reduce_or,
    reduce_prod,
    reduce_xor,
)
from axir.dialect.ops.shape.broadcasting import (
    broadcast_shapes,
    broadcast_to_rank,
    expand_dims,
)
from axir.dialect.ops.shape.concatenation import concatenate
from axir.dialect.ops.shape.constants import (
    copy,
    iota,
    zeros_like_array,
)
from axir.dialect.ops.shape.padding import pad
from axir.dialect.ops.shape.rearranging import collapse, rev, squeeze, transpose
from axir.dialect.ops.shape.stacking import broadcast_like, split, stack, tile, unstack
from axir.dialect.ops.sorting.approximate_top_k import approx_max_k, approx_min_k
from axir.dialect.ops.sorting.sort import sort, sort_key_val, top_k
from axir.dialect.ops.special.special_functions import (
    bessel_i0e,
    bessel_i1e,
    betainc,
    digamma,
    igamma,
    igamma_grad_a,
    igammac,
    lgamma,
    polygamma,
    random_gamma_grad,
    zeta,
)
from axir.dialect.ops.windows.sliding_windows import reduce_window_shape_tuple
from axir.dialect.program.rules import Value

from . import linalg
from ._filled import (
    broadcast,
    broadcast_in_dim,
    broadcasted_iota,
    conv_general_dilated,
    dot,
    dot_general,
    full,
    full_like,
    reduce_max,
    reduce_min,
    reduce_sum,
    reshape,
)
from ._implicit import custom_linear_solve, custom_root
from ._operators import (
    AccuracyMode,
    Precision,
    Tolerance,
    dtype,
    index_take,
    optimization_barrier,
    reduce,
    reduce_window,
    stop_gradient,
    tie_in,
)
from ._platforms import empty, platform_dependent, rng_uniform
from ._polynomials import log2, one_minus_square, polynomial
from ._ragged_exchange import psum_scatter_start, ragged_all_to_all
from ._scaled import scaled_dot
from ._tokens import after_all, composite, create_token, dce_sink, shape_as_value, stage
from .control_flow import associative_scan, cond, fori_loop, map, scan, switch, while_loop
from .parallel import (
    all_gather,
    all_to_all,
    axis_index,
    axis_size,
    pbroadcast,
    pcast,
    pmax,
    pmean,
    pmin,
    ppermute,
    pshuffle,
    psum,
    psum_scatter,
    pswapaxes,
)

__all__ = [
    "AccuracyMode", "ConvDimensionNumbers", "ConvGeneralDilatedDimensionNumbers", "DotAlgorithm",
    "DotAlgorithmPreset", "DotDimensionNumbers", "FftType", "GatherDimensionNumbers",
    "GatherScatterMode", "Precision", "PrecisionLike", "RaggedDotDimensionNumbers",
    "RandomAlgorithm", "RoundingMethod", "ScatterDimensionNumbers", "Tolerance", "abs", "acos",
    "acosh", "add", "after_all", "all_gather", "all_to_all", "approx_max_k", "approx_min_k",
    "argmax", "argmin", "asin", "asinh", "associative_scan", "atan", "atan2", "atanh", "axis_index",
    "axis_size", "batch_matmul", "bessel_i0e", "bessel_i1e", "betainc", "bitcast_convert_type",
    "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "broadcast", "broadcast_in_dim",
    "broadcast_like", "broadcast_shapes", "broadcast_to_rank", "broadcasted_iota", "cbrt", "ceil",
    "clamp", "clz", "collapse", "complex", "composite", "concatenate", "cond", "conj", "conv",
    "conv_dimension_numbers", "conv_general_dilated", "conv_general_dilated_local",
    "conv_general_dilated_patches", "conv_general_permutations", "conv_general_shape_tuple",
    "conv_shape_tuple", "conv_transpose", "conv_transpose_shape_tuple", "conv_with_general_padding",
    "convert_element_type", "copy", "cos", "cosh", "create_token", "cumlogsumexp", "cummax",
    "cummin", "cumprod", "cumsum", "custom_linear_solve", "custom_root", "dce_sink", "digamma",
    "div", "dot", "dot_general", "dtype", "dynamic_index_in_dim", "dynamic_slice",
    "dynamic_slice_in_dim", "dynamic_update_index_in_dim", "dynamic_update_slice",
    "dynamic_update_slice_in_dim", "empty", "eq", "erf", "erf_inv", "erfc", "exp", "exp2",
    "expand_dims", "expm1", "fft", "floor", "fori_loop", "full", "full_like", "gather", "ge", "gt",
    "igamma", "igamma_grad_a", "igammac", "imag", "index_in_dim", "index_take", "integer_pow",
    "iota", "is_finite", "le", "lgamma", "linalg", "log", "log1p", "log2", "logistic", "lt", "map",
    "max", "min", "mul", "mulhi", "ne", "neg", "nextafter", "one_minus_square",
    "optimization_barrier", "pad", "padtype_to_pads", "pbroadcast", "pcast", "platform_dependent",
    "pmax", "pmean", "pmin", "polygamma", "polynomial", "population_count", "pow", "ppermute",
    "pshuffle", "psum", "psum_scatter", "psum_scatter_start", "pswapaxes", "ragged_all_to_all",
    "ragged_dot", "ragged_dot_general", "random_gamma_grad", "real", "reciprocal", "reduce",
    "reduce_and", "reduce_max", "reduce_min", "reduce_or", "reduce_precision", "reduce_prod",
    "reduce_sum", "reduce_window", "reduce_window_shape_tuple", "reduce_xor", "rem", "reshape",
    "rev", "rng_bit_generator", "rng_uniform", "round", "rsqrt", "scaled_dot", "scan", "scatter",
    "scatter_add", "scatter_apply", "scatter_max", "scatter_min", "scatter_mul", "scatter_sub",
    "select", "select_n", "shape_as_value", "shift_left", "shift_right_arithmetic",
    "shift_right_logical", "sign", "sin", "sinh", "slice", "slice_in_dim", "sort", "sort_key_val",
    "split", "sqrt", "square", "squeeze", "stack", "stage", "stop_gradient", "sub", "switch", "tan",
    "tanh", "tie_in", "tile", "top_k", "transpose", "unstack", "while_loop",
    "with_sharding_constraint", "zeros_like_array", "zeta",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


DotDimensionNumbers = tuple[
    tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]
]
PrecisionLike = str | Precision | tuple[str, str] | tuple[Precision, Precision] | None


class RoundingMethod(enum.IntEnum):
    """Where `round` takes values halfway between two integers."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def reciprocal(x: Value) -> Value:
    """Returns 1 / x."""
    return integer_pow(x, -1)


def select(pred: Value, on_true: Value, on_false: Value) -> Value:
    """Chooses elementwise by a bool: `on_true` where it holds, else `on_false`.

    >>> import axir.numpy as jnp
    >>> select(jnp.array([True, False]), jnp.array([1, 2]), jnp.array([3, 4]))
    Array([1, 4], dtype=int32)
    """
    return select_n(pred, on_false, on_true)


def __getattr__(name: str) -> UserObject:
    """Returns the primitive behind a name that ends in `_p`: `exp_p`, `dot_general_p` ...

    And what few programs name, which is loaded then.
    """
    if name == "with_sharding_constraint":
        return later.with_sharding_constraint
    primitive = primitive_named(name)
    if primitive is not None:
        return primitive
    raise AttributeError(f"module 'axir.lax' has no attribute {name!r}")
