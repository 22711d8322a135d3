"""Hypergeometric functions of `axir.scipy.special`."""

from __future__ import annotations

from axir.dialect.core.array import ArrayLike
from axir.dialect.ops.elementwise.family import match_scalars
from axir.dialect.ops.special import hypergeometric as lax
from axir.dialect.program.rules import Value

from ._common import evaluated_by, real_arguments


def hyp1f1(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Value:
    """Returns Kummer's confluent hypergeometric function 1F1(a; b; x).

    Derivatives in a and b differentiate its series, which is limited to |x| of some thousands.

    Args:
        a: First parameter.
        b: Second parameter; infinite at 0, -1, -2 ... unless a is a greater one of them.
        x: Where.

    >>> from axir.scipy.special import hyp1f1
    >>> hyp1f1(1.0, 2.0, 0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    return _hyp1f1(*real_arguments("hyp1f1", a, b, x))


@evaluated_by("hyp1f1")
def _hyp1f1(a: Value, b: Value, x: Value) -> Value:
    return lax.hyp1f1.bind(*match_scalars(a, b, x))


def hyp2f1(a: ArrayLike, b: ArrayLike, c: ArrayLike, x: ArrayLike) -> Value:
    """Returns Gauss' hypergeometric function 2F1(a, b; c; x) of a real x.

    Derivatives in a, b and c differentiate its series, for x from -5000 to 0.9998.

    Args:
        a: First parameter.
        b: Second parameter.
        c: Third parameter; infinite at 0, -1, -2 ... unless a or b is a greater one of them.
        x: Where; infinite above 1 unless a or b is 0, -1, -2 ...

    >>> from axir.scipy.special import hyp2f1
    >>> hyp2f1(1.0, 1.0, 1.0, 0.5)
    Array(2., dtype=float32, weak_type=True)
    """
    return _hyp2f1(*real_arguments("hyp2f1", a, b, c, x))


@evaluated_by("hyp2f1")
def _hyp2f1(a: Value, b: Value, c: Value, x: Value) -> Value:
    return lax.hyp2f1.bind(*match_scalars(a, b, c, x))
