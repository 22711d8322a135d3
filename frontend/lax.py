"""`axir.lax`: the operations themselves, under JAX's names.

Unlike the functions of `axir.numpy`, these neither promote dtypes nor broadcast (scalars excepted):
what they take is what the dialect's ops take. They are declared in `axir.dialect.ops`.

>>> import axir.numpy as jnp
>>> from axir import lax
>>> lax.add(jnp.ones(2), 1.0)
Array([2., 2.], dtype=float32)
"""

from __future__ import annotations

import enum
from typing import Any

from axir.dialect.ops.arg_reduce import argmax, argmin
from axir.dialect.ops.broadcasting import (
    broadcast,
    broadcast_in_dim,
    broadcast_shapes,
    broadcast_to_rank,
    expand_dims,
)
from axir.dialect.ops.constants import (
    broadcasted_iota,
    copy,
    full,
    full_like,
    iota,
    zeros_like_array,
)
from axir.dialect.ops.conversion import (
    bitcast_convert_type,
    conj,
    convert_element_type,
    imag,
    real,
    stop_gradient,
)
from axir.dialect.ops.conversion import complex_ as complex
from axir.dialect.ops.cumulative import cumlogsumexp, cummax, cummin, cumprod, cumsum
from axir.dialect.ops.dot import batch_matmul, dot, dot_general
from axir.dialect.ops.elementwise import (
    abs,
    add,
    ceil,
    clamp,
    clz,
    div,
    eq,
    floor,
    ge,
    gt,
    is_finite,
    le,
    lt,
    max,
    min,
    mul,
    ne,
    neg,
    nextafter,
    population_count,
    rem,
    round,
    select_n,
    shift_left,
    shift_right_arithmetic,
    shift_right_logical,
    sign,
    square,
    sub,
)
from axir.dialect.ops.elementwise import and_ as bitwise_and
from axir.dialect.ops.elementwise import not_ as bitwise_not
from axir.dialect.ops.elementwise import or_ as bitwise_or
from axir.dialect.ops.elementwise import xor as bitwise_xor
from axir.dialect.ops.indexing import GatherDimensionNumbers, GatherScatterMode, gather
from axir.dialect.ops.padding import pad
from axir.dialect.ops.reduce import (
    reduce_and,
    reduce_max,
    reduce_min,
    reduce_or,
    reduce_prod,
    reduce_sum,
    reduce_xor,
)
from axir.dialect.ops.scatter import (
    ScatterDimensionNumbers,
    scatter,
    scatter_add,
    scatter_max,
    scatter_min,
    scatter_mul,
    scatter_sub,
)
from axir.dialect.ops.shape import collapse, concatenate, reshape, rev, squeeze, transpose
from axir.dialect.ops.slicing import (
    dynamic_index_in_dim,
    dynamic_slice,
    dynamic_slice_in_dim,
    dynamic_update_index_in_dim,
    dynamic_update_slice,
    dynamic_update_slice_in_dim,
)
from axir.dialect.ops.sort import sort, sort_key_val, top_k
from axir.dialect.ops.static_slicing import index_in_dim, slice, slice_in_dim
from axir.dialect.ops.transcendental import (
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
from axir.dialect.ops.variadic_reduce import reduce

__all__ = [
    "GatherDimensionNumbers", "GatherScatterMode", "RoundingMethod", "ScatterDimensionNumbers",
    "abs", "acos", "acosh", "add", "argmax", "argmin", "asin", "asinh", "atan", "atan2", "atanh",
    "batch_matmul", "bitcast_convert_type", "bitwise_and", "bitwise_not", "bitwise_or",
    "bitwise_xor", "broadcast", "broadcast_in_dim", "broadcast_shapes", "broadcast_to_rank",
    "broadcasted_iota", "cbrt", "ceil", "clamp", "clz", "collapse", "complex", "concatenate",
    "conj", "convert_element_type", "copy", "cos", "cosh", "cumlogsumexp", "cummax", "cummin",
    "cumprod", "cumsum", "div", "dot", "dot_general", "dynamic_index_in_dim", "dynamic_slice",
    "dynamic_slice_in_dim", "dynamic_update_index_in_dim", "dynamic_update_slice",
    "dynamic_update_slice_in_dim", "eq", "erf", "erf_inv", "erfc", "exp", "exp2", "expand_dims",
    "expm1", "floor", "full", "full_like", "gather", "ge", "gt", "imag", "index_in_dim",
    "integer_pow", "iota", "is_finite", "le", "log", "log1p", "logistic", "lt", "max", "min",
    "mul", "ne", "neg", "nextafter", "pad", "population_count", "pow", "real", "reciprocal",
    "reduce", "reduce_and", "reduce_max", "reduce_min", "reduce_or", "reduce_prod", "reduce_sum",
    "reduce_xor", "rem", "reshape", "rev", "round", "rsqrt", "scatter", "scatter_add",
    "scatter_max", "scatter_min", "scatter_mul", "scatter_sub", "select", "select_n",
    "shift_left", "shift_right_arithmetic", "shift_right_logical", "sign", "sin", "sinh", "slice",
    "slice_in_dim", "sort", "sort_key_val", "sqrt", "square", "squeeze", "stop_gradient", "sub",
    "tan", "tanh", "top_k", "transpose", "zeros_like_array",
]  # fmt: skip

Value = Any


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
