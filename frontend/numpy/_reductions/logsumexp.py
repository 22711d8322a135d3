"""`logsumexp`: the logarithm of a sum of exponentials, which `axir.nn` and `axir.scipy` offer."""

from __future__ import annotations

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Axes, UserObject
from axir.dialect.core.array import ArrayLike, ConcreteArray
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise import transcendental as lax
from axir.dialect.ops.elementwise.arithmetic import abs as absolute
from axir.dialect.ops.elementwise.arithmetic import add, is_finite, mul, sign, sub
from axir.dialect.ops.elementwise.comparison import lt, ne, select_n
from axir.dialect.ops.elementwise.conversion import convert_element_type, real, stop_gradient
from axir.dialect.ops.reductions.blocks import reduce_in_blocks
from axir.dialect.program.rules import Value
from axir.numpy._arguments.checks import canonical_axes, spread
from axir.numpy._arguments.promotion import broadcast_arguments, constant, promote_inexact
from axir.numpy._elementwise.elementwise import are_local, evaluate

from .reductions import as_mask
from .reductions import max as largest
from .reductions import sum as total

# Concrete arrays of these dtypes are evaluated by NumPy in one step instead of op by op.
_DIRECT = frozenset((dtypes.float32, dtypes.float64))


def _evaluated_logsumexp(a: ConcreteArray, axis: Axes, keepdims: bool) -> Value:
    axes = canonical_axes("logsumexp", axis, a.ndim)
    extents = [1 if d in axes else extent for d, extent in enumerate(a.shape)]
    shape = tuple([n for d, n in enumerate(extents) if keepdims or d not in axes])

    def compute(x: np.ndarray) -> object:
        shift = np.maximum.reduce(x, axis=axes, keepdims=True)
        shift = np.where(np.isfinite(shift), shift, 0)
        added = reduce_in_blocks(np.add, np.exp(x - shift), axes, keepdims=True)
        return (np.log(added) + shift).reshape(shape)

    return evaluate("logsumexp", compute, ShapedArray(shape, a.dtype), a)


def logsumexp(
    a: object,
    axis: Axes = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: UserObject = None,
) -> UserObject:
    """Returns the logarithm of the sum of exponentials along axes, without overflow.

    Args:
        a: Array; integers become floats.
        axis: Axis or tuple of axes; all by default.
        b: Factors of the exponentials, broadcast against `a`.
        keepdims: Whether the axes stay, with extent 1.
        return_sign: Whether to return the logarithm of the absolute value of the sum, and its sign;
            without it a negative sum gives NaN.
        where: Bool array of the elements that take part, broadcast against `a`.

    Returns:
        An array without the axes, -inf where there are no elements; with `return_sign` a pair.

    Raises:
        AxisError: for an axis out of range.

    >>> import axir.numpy as jnp
    >>> from axir.scipy.special import logsumexp
    >>> logsumexp(jnp.array([1000.0, 0.0]))
    Array(1000., dtype=float32)
    """
    name = "logsumexp"
    if (
        type(a) is ConcreteArray and are_local(a)
        and b is None and where is None and not return_sign
        and a.type.dtype in _DIRECT and a.type.size
    ):  # fmt: skip
        return _evaluated_logsumexp(a, axis, keepdims)
    a, *factors = promote_inexact(name, a) if b is None else promote_inexact(name, a, b)
    if is_narrow(a):
        return _in_single(a, axis, factors, keepdims, return_sign, where)
    if factors:
        (b,) = factors
        a, b = broadcast_arguments(name, a, b)
        # Masked elements must not influence the shift.
        a = select_n(ne(b, constant(0, b.dtype)), constant(-np.inf, a.dtype), a)
    if where is not None:
        # Before the exponential: one that overflows has no derivative, even if it is not counted.
        a, counted = broadcast_arguments(name, a, as_mask(name, where))
        a = select_n(counted, constant(-np.inf, a.dtype), a)
    shift = _shift(a, axis, keepdims=True)
    exponentials = lax.exp(sub(a, spread(convert_element_type(shift, a.dtype), a.shape)))
    if b is not None:
        exponentials = mul(exponentials, b)
    added = total(exponentials, axis, keepdims=keepdims)
    shift = shift if keepdims else _shift(a, axis, keepdims=False)
    signs = sign(added)
    is_complex = dtypes.is_complex(added.dtype)
    if return_sign or not is_complex:
        added = absolute(added)
    result = add(lax.log(added), convert_element_type(shift, added.dtype))
    if return_sign:
        return result, signs
    if b is not None and not is_complex:
        is_negative = lt(signs, constant(0, signs.dtype))
        return select_n(is_negative, result, constant(np.nan, result.dtype))
    return result


def _in_single(a: Value, axis: Axes, factors: list[Value], *options: UserObject) -> object:
    wide, *rest = (convert_element_type(x, dtypes.float32) for x in (a, *factors))
    found = logsumexp(wide, axis, rest[0] if rest else None, *options)
    if isinstance(found, tuple):
        return tuple(convert_element_type(x, a.dtype) for x in found)
    return convert_element_type(found, a.dtype)


def is_narrow(x: object) -> bool:
    """Tells whether an array has floats of less than 32 bits.

    Sums of exponentials exceed their range though the logarithm does not, and so do sums of
    cotangents: such sums are computed in single precision.
    """
    dtype = getattr(x, "dtype", None)
    return dtype is not None and dtypes.is_float(dtype) and dtype.itemsize < 4


def _shift(a: Value, axis: Axes, keepdims: bool) -> Value:
    """Returns the largest (real part of the) elements; zero where that is not finite."""
    parts = stop_gradient(real(a) if dtypes.is_complex(a.dtype) else a)
    peak = largest(parts, axis, keepdims=keepdims, initial=-np.inf)
    return select_n(is_finite(peak), constant(0, peak.dtype), peak)
