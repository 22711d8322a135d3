"""Window functions: `bartlett`, `blackman`, `hamming`, `hanning`, `kaiser`."""

from __future__ import annotations

from operator import index

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.array import Array, ArrayLike, as_array
from axir.dialect.core.errors import ConcretizationTypeError, ShapeError
from axir.dialect.ops.elementwise.arithmetic import abs as absolute
from axir.dialect.ops.elementwise.arithmetic import div, mul, sub
from axir.dialect.ops.elementwise.transcendental import exp
from axir.dialect.ops.special.special_functions import bessel_i0e
from axir.dialect.program.rules import Value
from axir.numpy._arguments.promotion import promote_inexact

__all__ = ["bartlett", "blackman", "hamming", "hanning", "kaiser"]


def bartlett(M: int) -> Array:
    """Returns the triangle of M points that is 0 at its ends.

    >>> import axir.numpy as jnp
    >>> jnp.bartlett(5)
    Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    return _default_float(1 - np.abs(_places("bartlett", M)))


def blackman(M: int) -> Array:
    """Returns Blackman's window of M points: 0.42 + 0.5 cos(pi t) + 0.08 cos(2 pi t).

    >>> import axir.numpy as jnp
    >>> jnp.blackman(3)[1]
    Array(1., dtype=float32)
    """
    places = np.pi * _places("blackman", M)
    return _default_float(0.42 + 0.5 * np.cos(places) + 0.08 * np.cos(2 * places))


def hamming(M: int) -> Array:
    """Returns Hamming's window of M points: 0.54 + 0.46 cos(pi t).

    >>> import axir.numpy as jnp
    >>> jnp.hamming(3)
    Array([0.08, 1.  , 0.08], dtype=float32)
    """
    return _default_float(0.54 + 0.46 * np.cos(np.pi * _places("hamming", M)))


def hanning(M: int) -> Array:
    """Returns von Hann's window of M points: 0.5 + 0.5 cos(pi t).

    >>> import axir.numpy as jnp
    >>> jnp.hanning(5)
    Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    return _default_float(0.5 + 0.5 * np.cos(np.pi * _places("hanning", M)))


def kaiser(M: int, beta: ArrayLike) -> Value:
    """Returns Kaiser's window of M points: I0(beta sqrt(1 - t^2)) / I0(beta).

    Args:
        M: Number of points.
        beta: Its shape, a number; may be traced.

    >>> import axir.numpy as jnp
    >>> jnp.kaiser(3, 0.0)
    Array([1., 1., 1.], dtype=float32)
    """
    roots = _default_float(np.sqrt(1 - np.square(_places("kaiser", M))))
    roots, beta = promote_inexact("kaiser", roots, beta)
    reach, most = absolute(mul(beta, roots)), absolute(beta)
    # The scaled functions are I0(x) exp(-|x|), which do not overflow.
    ratio = div(bessel_i0e(reach), bessel_i0e(most))
    return mul(ratio, exp(sub(reach, most)))


def _places(name: str, M: int) -> np.ndarray:
    """Returns M points t from -1 to 1, or a single one in the middle."""
    try:
        count = index(M)
    except ConcretizationTypeError:
        raise
    except TypeError:
        raise ShapeError(
            f"jnp.{name}: the number of points must be an integer, not {M!r}."
        ) from None
    if count < 0:
        raise ShapeError(f"jnp.{name}: the number of points {count} is negative.")
    return np.linspace(-1, 1, count) if count != 1 else np.zeros(1)


def _default_float(values: np.ndarray) -> Array:
    return as_array(values.astype(dtypes.canonicalize_dtype(dtypes.float64)))
