"""The Gumbel distribution: the maximum of its shifted draws is a categorical draw."""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np

from axir._devices.placement import lies_where_told
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import DTypeLike
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.config import config
from axir.dialect.core.errors import ParameterError
from axir.dialect.ops.elementwise.arithmetic import add, mul, neg, sub
from axir.dialect.ops.elementwise.comparison import (
    and_,
    clz,
    eq,
    ge,
    lt,
    not_,
    or_,
    select_n,
    shift_left,
    shift_right_logical,
)
from axir.dialect.ops.elementwise.conversion import bitcast_convert_type
from axir.dialect.ops.elementwise.transcendental import log, log1p
from axir.dialect.ops.indexing.static_slicing import index_in_dim
from axir.dialect.program.rules import Value

from ._parameters import constant, standard
from ._ranges import draw_uniform, random_bits


@lies_where_told
def gumbel(
    key: ArrayLike,
    shape: Sequence[int] = (),
    dtype: DTypeLike = None,
    mode: str | None = None,
    *,
    out_sharding: object = None,
) -> Value:
    """Draws from the Gumbel distribution, of distribution function exp(-exp(-x)).

    Args:
        key: The key.
        shape: Shape of the result.
        dtype: Float dtype of the result.
        mode: How far the tail reaches: in float32, "low" (the default) yields values up to about
            16, "high" and "highest" up to about 32 at twice the cost.
        out_sharding: Placement of the result: a sharding, or a `PartitionSpec`.

    Raises:
        ParameterError: for another mode, or a dtype that is not a float type.
    """
    key, extents, dtype = standard("gumbel", key, shape, dtype)
    return draw_gumbel("gumbel", key, extents, dtype, mode)


def draw_gumbel(
    name: str, key: Value, shape: tuple[int, ...], dtype: np.dtype, mode: str | None
) -> Value:
    """Draws Gumbel floats with checked arguments, save for the mode."""
    if mode not in (None, "low", "high", "highest"):
        raise ParameterError(
            f"random.{name}: there is no mode {mode!r}.", 'Pass "low", "high" or "highest".'
        )
    if mode is None:
        mode = "high" if config.jax_high_dynamic_range_gumbel else "low"
    limits = ml_dtypes.finfo(dtype)
    if mode == "low":
        u = draw_uniform(name, key, shape, dtype, float(limits.tiny), 1.0)
        return neg(log(neg(log(u))))
    if mode == "highest" and dtype == dtypes.float32:
        return _finest_gumbel(key, shape)
    pair = draw_uniform(name, key, (2, *shape), dtype)
    high, low = (index_in_dim(pair, i, keepdims=False) for i in (0, 1))
    scale, tiny = (constant(float(x), dtype) for x in (2.0**-limits.nmant, limits.tiny))
    finer = add(add(high, mul(scale, low)), tiny)
    return _upper_gumbel(select_n(ge(high, constant(0.5, dtype)), finer, high))


def _upper_gumbel(x: Value) -> Value:
    """Maps numbers of (0, 1) to Gumbel ones; those near 0, which are dense, to the long tail."""
    return neg(log(neg(log1p(neg(x)))))


def _finest_gumbel(key: Value, shape: tuple[int, ...]) -> Value:
    """Makes float32 Gumbel numbers of 64 bits each, without gaps at either end of (0, 1)."""
    drawn = random_bits(key, 32, (2, *shape))
    high, low = (index_in_dim(drawn, i, keepdims=False) for i in (0, 1))
    is_lower = lt(high, 1 << 31)
    # In the upper half, 2**64 - bits is the distance from one; the low words carry into the high.
    no_carry, carry = constant(0, dtypes.uint32), constant(1, dtypes.uint32)
    opposite_low = add(not_(low), carry)
    opposite_high = add(not_(high), select_n(eq(low, 0), no_carry, carry))
    x = _fixed_to_float(
        select_n(is_lower, opposite_high, high), select_n(is_lower, opposite_low, low)
    )
    return select_n(is_lower, neg(log(neg(log(x)))), _upper_gumbel(x))


def _fixed_to_float(high: Value, low: Value) -> Value:
    """Makes float32 of a 64-bit fixed-point fraction, keeping its leading 24 bits."""
    zeros_high, zeros_low = clz(high), clz(low)
    is_small = eq(high, 0)
    shifted = or_(
        shift_left(high, zeros_high),
        select_n(
            is_small, shift_right_logical(low, sub(32, zeros_high)), shift_left(low, zeros_low)
        ),
    )
    mantissa = and_(shift_right_logical(shifted, 8), (1 << 23) - 1)
    zeros = select_n(is_small, zeros_high, add(zeros_low, 32))
    exponent = and_(shift_left(sub(126, zeros), 23), 0x3F800000)
    return bitcast_convert_type(or_(exponent, mantissa), dtypes.float32)
