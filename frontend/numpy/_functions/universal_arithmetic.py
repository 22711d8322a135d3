"""The elementwise functions that `axir.numpy` offers as `ufunc` objects.

Elsewhere: the functions themselves, which other modules call without the detour
(`frontend/numpy/_elementwise/`).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import (
    Axes,
    DTypeLike,
    UserObject,
)
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.dtypes import canonicalize_dtype
from axir.dialect.core.errors import DTypeError
from axir.dialect.ops.reductions.cumulative import cumlogsumexp, cummax, cummin
from axir.dialect.ops.reductions.reduce import reduce_and, reduce_or, reduce_xor
from axir.dialect.program.rules import Value
from axir.numpy._arguments.checks import canonical_axes, canonical_axis
from axir.numpy._arguments.promotion import (
    array_argument,
    constant,
    promote_inexact,
)
from axir.numpy._elementwise import arithmetic, exponential, logic
from axir.numpy._elementwise.logic import as_bool
from axir.numpy._indexing.index_update import update
from axir.numpy._indexing.selection import where as select
from axir.numpy._reductions import reductions
from axir.numpy._reductions.cumulative import cumprod, cumsum
from axir.numpy._reductions.logsumexp import logsumexp
from axir.numpy._reductions.reductions import as_mask, converted, keep_axes

from .universal_functions import ufunc

__all__ = [
    "add", "bitwise_and", "bitwise_or", "bitwise_xor", "frompyfunc", "logaddexp", "logaddexp2",
    "logical_and", "logical_or", "logical_xor", "maximum", "minimum", "multiply", "negative",
    "subtract",
]  # fmt: skip


def _updating(kind: str) -> Callable[..., Value]:
    def at(a: Value, indices: object, b: ArrayLike) -> Value:
        return update(a, indices, kind, b)

    return at


def _extremum(reduction: Callable[..., Value]) -> Callable[..., Value]:
    """Returns `max` or `min`, of elements that are converted to a dtype before."""

    def reduce(a: ArrayLike, axis: Axes = 0, dtype: DTypeLike = None, **options: object) -> Value:
        if dtype is not None:
            a = _converted(reduction.__name__, a, dtype)
        return reduction(a, axis=axis, **options)

    return reduce


def _converted(name: str, a: ArrayLike, dtype: DTypeLike) -> Value:
    array = array_argument(name, a)
    return array if dtype is None else converted(array, canonicalize_dtype(dtype))


def _bitwise(
    name: str, combine: Callable[..., Value], bind: Callable[..., Value], identity: int
) -> Callable[..., Value]:
    """Returns a reduction of bits; with a name that begins with `logical`, of truth."""

    def reduce(
        a: ArrayLike,
        axis: Axes = 0,
        dtype: DTypeLike = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Value:
        x = as_bool(name, a) if name.startswith("logical") else _converted(name, a, dtype)
        if dtypes.kind(x.dtype) not in "biu":
            raise DTypeError(f"jnp.{name}.reduce takes integers and bools, not {x.dtype}.")
        axes = canonical_axes(f"{name}.reduce", axis, x.ndim)
        neutral = (
            constant(identity, x.dtype)
            if x.dtype.kind != "b"
            else constant(bool(identity), x.dtype)
        )
        if where is not None:
            neutral = np.array(identity).astype(x.dtype).item()
            x = select(as_mask(name, where), x, constant(neutral, x.dtype))
        result = bind(x, axes)
        if initial is not None:
            start = array_argument(name, initial)
            result = combine(result, as_bool(name, start) if x.dtype.kind == "b" else start)
        return keep_axes(result, x.shape, axes) if keepdims else result

    return reduce


def _log_of_sum(
    a: ArrayLike,
    axis: Axes = 0,
    dtype: DTypeLike = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Value:
    result = logsumexp(_converted("logaddexp", a, dtype), axis, keepdims=keepdims, where=where)
    return result if initial is None else exponential.logaddexp(result, initial)


def _log2_of_sum(a: ArrayLike, *, dtype: DTypeLike = None, **options: UserObject) -> Value:
    scale = math.log(2.0)
    initial = options.pop("initial", None)
    x = arithmetic.multiply(_converted("logaddexp2", a, dtype), scale)
    result = arithmetic.divide(_log_of_sum(x, **options), scale)
    return result if initial is None else exponential.logaddexp2(result, initial)


def _running_log_of_sum(a: ArrayLike, axis: int = 0, dtype: DTypeLike = None) -> Value:
    (x,) = promote_inexact("logaddexp", _converted("logaddexp", a, dtype))
    return cumlogsumexp(x, canonical_axis("logaddexp.accumulate", axis, x.ndim))


def _running_log2_of_sum(a: ArrayLike, axis: int = 0, dtype: DTypeLike = None) -> Value:
    scale = math.log(2.0)
    x = arithmetic.multiply(_converted("logaddexp2", a, dtype), scale)
    return arithmetic.divide(_running_log_of_sum(x, axis), scale)


def _running(name: str, operation: Callable[..., Value]) -> Callable[..., Value]:
    def accumulate(a: ArrayLike, axis: int = 0, dtype: DTypeLike = None) -> Value:
        x = _converted(name, a, dtype)
        axis = canonical_axis(f"{name}.accumulate", axis, x.ndim)
        if x.dtype == dtypes.bool_:
            return converted(operation(converted(x, dtypes.uint8), axis), dtypes.bool_)
        return operation(x, axis)

    return accumulate


def _negated(a: Value, indices: object) -> Value:
    return update(a, indices, "multiply", -1)


def _lowered(a: Value, indices: object, b: ArrayLike) -> Value:
    return update(a, indices, "add", arithmetic.negative(b))


def _made(
    function: Callable[..., Value], count: int = 2, identity: object = None, **own: UserObject
) -> ufunc:
    made = ufunc(function, count, 1, identity=identity, call=function, **own)
    made._evaluator = getattr(np, function.__name__)
    return made


def _made_of_bits(
    function: Callable[..., Value], bind: Callable[..., Value], identity: int
) -> ufunc:
    name = function.__name__
    neutral = bool(identity) if name.startswith("logical") else identity
    return _made(function, identity=neutral, reduce=_bitwise(name, function, bind, identity))


add = _made(
    arithmetic.add, identity=0, reduce=reductions.sum, accumulate=cumsum, at=_updating("add")
)
subtract = _made(arithmetic.subtract, at=_lowered)
multiply = _made(
    arithmetic.multiply, identity=1, reduce=reductions.prod, accumulate=cumprod,
    at=_updating("multiply"),
)  # fmt: skip
negative = _made(arithmetic.negative, count=1, at=_negated)
maximum = _made(
    arithmetic.maximum, reduce=_extremum(reductions.max), accumulate=_running("maximum", cummax),
    at=_updating("max"),
)  # fmt: skip
minimum = _made(
    arithmetic.minimum, reduce=_extremum(reductions.min), accumulate=_running("minimum", cummin),
    at=_updating("min"),
)  # fmt: skip
bitwise_and = _made_of_bits(logic.bitwise_and, reduce_and, -1)
bitwise_or = _made_of_bits(logic.bitwise_or, reduce_or, 0)
bitwise_xor = _made_of_bits(logic.bitwise_xor, reduce_xor, 0)
logical_and = _made_of_bits(logic.logical_and, reduce_and, 1)
logical_or = _made_of_bits(logic.logical_or, reduce_or, 0)
logical_xor = _made_of_bits(logic.logical_xor, reduce_xor, 0)
logaddexp = _made(
    exponential.logaddexp, identity=-math.inf, reduce=_log_of_sum, accumulate=_running_log_of_sum
)
logaddexp2 = _made(
    exponential.logaddexp2, identity=-math.inf, reduce=_log2_of_sum,
    accumulate=_running_log2_of_sum,
)  # fmt: skip


def frompyfunc(
    func: Callable[..., object], /, nin: int, nout: int, *, identity: object = None
) -> ufunc:
    """Makes an elementwise function of arrays from a function of scalars.

    Args:
        func: Function of scalars, written with functions of axir.
        nin: Number of its arguments.
        nout: Number of its results; more than one are a tuple.
        identity: The identity element, with which reductions begin.

    Returns:
        Object to call with arrays that broadcast, and with the methods of NumPy's functions of this
        kind. Reductions go from the first to the last element, so the function need not be
        associative.

    >>> import axir.numpy as jnp
    >>> affine = jnp.frompyfunc(lambda x, y: 2 * x + y, 2, 1)
    >>> affine(jnp.arange(3), 1), affine.reduce(jnp.array([1, 0, 1]))
    (Array([1, 3, 5], dtype=int32), Array(5, dtype=int32))
    """
    return ufunc(func, nin, nout, identity=identity)
