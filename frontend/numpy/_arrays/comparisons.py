"""Whether arrays are equal or close as a whole."""

from __future__ import annotations

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import ArrayLike, ConcreteArray
from axir.dialect.core.errors import DTypeError
from axir.dialect.core.symbolic_dims import are_equal
from axir.dialect.ops.elementwise import comparison
from axir.dialect.ops.elementwise.family import full
from axir.dialect.ops.reductions.reduce import reduce_and
from axir.dialect.program.rules import Value
from axir.dialect.program.tracer import Tracer
from axir.numpy._arguments.promotion import BroadcastError, NonArrayArgumentError
from axir.numpy._elementwise.logic import equal, isclose, isnan

from .creation import asarray

__all__ = ["allclose", "array_equal", "array_equiv"]


def allclose(
    a: ArrayLike,
    b: ArrayLike,
    rtol: ArrayLike = 1e-05,
    atol: ArrayLike = 1e-08,
    equal_nan: bool = False,
) -> Value:
    """Tells whether all elements are close; arguments as of `isclose`.

    >>> import axir.numpy as jnp
    >>> jnp.allclose(jnp.array([1.0, 1.1]), 1.0)
    Array(False, dtype=bool)
    """
    return _all(isclose(a, b, rtol, atol, equal_nan))


def _all(x: Value) -> Value:
    return reduce_and(x, tuple(range(x.ndim))) if x.ndim else x


def _listed(x: ArrayLike) -> UserObject:
    return x if type(x) is ConcreteArray or type(x) is Tracer else asarray(x)


def array_equal(a1: UserObject, a2: UserObject, equal_nan: bool = False) -> Value:
    """Tells whether two arrays (or lists) have the same shape and equal elements.

    >>> import axir.numpy as jnp
    >>> jnp.array_equal(jnp.arange(3), [0, 1, 2])
    Array(True, dtype=bool)
    """
    try:
        a1, a2 = _listed(a1), _listed(a2)
    except (NonArrayArgumentError, DTypeError):
        return full((), False, dtypes.bool_)
    if not are_equal(a1.shape, a2.shape):
        return full((), False, dtypes.bool_)
    return _all(_equal(a1, a2, equal_nan))


def _equal(a1: Value, a2: Value, equal_nan: bool) -> Value:
    result = equal(a1, a2)
    if equal_nan:
        result = comparison.or_(result, comparison.and_(isnan(a1), isnan(a2)))
    return result


def array_equiv(a1: ArrayLike, a2: ArrayLike) -> Value:
    """Tells whether two arrays (or lists) are equal after broadcasting.

    >>> import axir.numpy as jnp
    >>> jnp.array_equiv(jnp.ones((2, 3)), 1.0)
    Array(True, dtype=bool)
    """
    try:
        first, second = _listed(a1), _listed(a2)
        return _all(equal(first, second))
    except (NonArrayArgumentError, DTypeError):
        return full((), False, dtypes.bool_)
    except BroadcastError:
        # Sizes may decide whether they fit.
        rank = min(first.ndim, second.ndim)
        are_equal(*(x.shape[-rank:] for x in (first, second)))
        return full((), False, dtypes.bool_)
