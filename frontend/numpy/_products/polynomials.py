"""Polynomials as coefficient vectors, highest power first."""

from __future__ import annotations

import math
from operator import index

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import Array, ArrayLike, as_array
from axir.dialect.core.errors import ParameterError, TracerArrayConversionError
from axir.dialect.ops.elementwise.arithmetic import add, div, mul, neg, sub
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.indexing.static_slicing import index_in_dim, slice_in_dim
from axir.dialect.ops.linalg.eig import eig
from axir.dialect.ops.shape.concatenation import concatenate
from axir.dialect.ops.shape.padding import pad
from axir.dialect.ops.shape.rearranging import reshape
from axir.dialect.program.rules import Value
from axir.numpy._arguments.promotion import array_argument, promote_arguments, promote_inexact
from axir.numpy._arrays.filled import zeros
from axir.numpy._elementwise.arithmetic import add as add_any
from axir.numpy._elementwise.arithmetic import multiply

from .convolutions import convolve

__all__ = [
    "poly", "polyadd", "polyder", "polydiv", "polyint", "polymul", "polysub", "polyval", "roots",
]  # fmt: skip


def _require_vectors(name: str, *polynomials: Value) -> None:
    for polynomial in polynomials:
        if polynomial.ndim != 1:
            raise ParameterError(
                f"jnp.{name}: a polynomial is a vector of coefficients, but got an array of shape "
                f"{polynomial.shape}.",
                "Map over the other axes with vmap.",
            )


def _order(name: str, what: str, m: UserObject) -> int:
    order = index(m)
    if order < 0:
        raise ParameterError(f"jnp.{name}: the order m of the {what} must be positive, not {m}.")
    return order


def _at_front(p: Value, count: int) -> Value:
    return pad(p, 0, ((count, 0, 0),)) if count else p


# Arithmetic ------------------------------------------------------------------------------------


def polyadd(a1: ArrayLike, a2: ArrayLike) -> Value:
    """Returns the sum of two polynomials.

    >>> import axir.numpy as jnp
    >>> jnp.polyadd(jnp.array([1, 2, 3]), jnp.array([10]))
    Array([ 1,  2, 13], dtype=int32)
    """
    return add(*_aligned("polyadd", a1, a2))


def polysub(a1: ArrayLike, a2: ArrayLike) -> Value:
    """Returns the difference of two polynomials.

    >>> import axir.numpy as jnp
    >>> jnp.polysub(jnp.array([1, 2, 3]), jnp.array([10]))
    Array([ 1,  2, -7], dtype=int32)
    """
    return sub(*_aligned("polysub", a1, a2))


def _aligned(name: str, a1: ArrayLike, a2: ArrayLike) -> list[Value]:
    polynomials = promote_arguments(name, a1, a2)
    _require_vectors(name, *polynomials)
    length = max(p.size for p in polynomials)
    return [_at_front(p, length - p.size) for p in polynomials]


def polymul(a1: ArrayLike, a2: ArrayLike, *, trim_leading_zeros: bool = False) -> Value:
    """Returns the product of two polynomials.

    Args:
        a1, a2: The polynomials.
        trim_leading_zeros: Whether to drop their leading zeros first. The number of zeros must be
            known: not under `jit`.

    Raises:
        ParameterError: for anything but vectors.

    >>> import axir.numpy as jnp
    >>> jnp.polymul(jnp.array([1.0, 2.0]), jnp.array([1.0, -2.0]))
    Array([ 1.,  0., -4.], dtype=float32)
    """
    polynomials = promote_inexact("polymul", a1, a2)
    _require_vectors("polymul", *polynomials)
    if trim_leading_zeros:
        polynomials = [_trimmed(p) for p in polynomials]
    first, second = (p if p.size else zeros(1, p.dtype) for p in polynomials)
    return convolve(first, second, precision="highest")


def _trimmed(p: Value) -> Value:
    """Drops leading zeros; at least one coefficient stays."""
    nonzero = np.flatnonzero(np.asarray(p))
    start = int(nonzero[0]) if nonzero.size else max(p.size - 1, 0)
    return slice_in_dim(p, start, p.size)


def polydiv(u: ArrayLike, v: ArrayLike, *, trim_leading_zeros: bool = False) -> tuple[Value, Value]:
    """Returns quotient and remainder of polynomials.

    Args:
        u: Dividend.
        v: Divisor; its first coefficient must not be 0.
        trim_leading_zeros: Whether to drop the remainder's leading zeros. The number of zeros must
            be known. Otherwise the remainder has as many coefficients as `u`.

    Raises:
        ParameterError: for anything but vectors that are not empty.

    >>> import axir.numpy as jnp
    >>> jnp.polydiv(jnp.array([1.0, 5.0, 7.0]), jnp.array([1.0, 2.0]))
    (Array([1., 3.], dtype=float32), Array([0., 0., 1.], dtype=float32))
    """
    u, v = promote_inexact("polydiv", u, v)
    _require_vectors("polydiv", u, v)
    if not u.size or not v.size:
        raise ParameterError("jnp.polydiv: a polynomial needs at least one coefficient.")
    steps = u.size - v.size + 1
    scale = div(1.0, index_in_dim(v, 0, 0, keepdims=False))
    quotient, remainder = [], u
    for step in range(steps):
        factor = mul(scale, index_in_dim(remainder, step, 0, keepdims=False))
        taken = mul(factor, v)
        remainder = sub(remainder, pad(taken, 0, ((step, steps - 1 - step, 0),)))
        quotient.append(reshape(factor, (1,)))
    result = concatenate(quotient, 0) if quotient else zeros(1, u.dtype)
    return result, _trimmed(remainder) if trim_leading_zeros else remainder


# Calculus --------------------------------------------------------------------------------------


def polyder(p: ArrayLike, m: int = 1) -> Value:
    """Returns the derivative of order m.

    Raises:
        ParameterError: for a negative order, or anything but a vector.

    >>> import axir.numpy as jnp
    >>> jnp.polyder(jnp.array([1.0, 2.0, 3.0]))
    Array([2., 2.], dtype=float32)
    """
    order = _order("polyder", "derivative", m)
    (p,) = promote_inexact("polyder", p)
    _require_vectors("polyder", p)
    if not order:
        return p
    factors = [math.perm(power, order) for power in range(p.size - 1, order - 1, -1)]
    return mul(slice_in_dim(p, 0, len(factors)), _table(factors, p.dtype))


def polyint(p: ArrayLike, m: int = 1, k: object = None) -> Value:
    """Returns the integral of order m.

    Args:
        p: Polynomial.
        m: How often to integrate.
        k: Constants of integration, one per time, the first one first; by default zeros. A single
            one is used each time.

    Raises:
        ParameterError: for a negative order, or another number of constants.

    >>> import axir.numpy as jnp
    >>> jnp.polyint(jnp.array([6.0, 2.0]), k=5)
    Array([3., 2., 5.], dtype=float32)
    """
    order = _order("polyint", "integral", m)
    p, constants = promote_inexact("polyint", p, 0 if k is None else k)
    _require_vectors("polyint", p)
    if constants.ndim > 1 or constants.size not in (1, order):
        raise ParameterError(
            f"jnp.polyint: k must be a scalar, or a vector of 1 or m={order} constants, but has "
            f"the shape {constants.shape}."
        )
    if not order:
        return p
    if constants.size != order or not constants.ndim:
        constants = mul(reshape(constants, ()), _table([1] * order, p.dtype))
    powers = range(p.size + order - 1, -1, -1)
    divisors = [math.perm(power, min(power, order)) for power in powers]
    return div(concatenate([p, constants], 0), _table(divisors, p.dtype))


def _table(numbers: list[int], dtype: np.dtype) -> Array:
    return as_array(np.array(numbers, np.float64).astype(dtype))


# Values and zeros ------------------------------------------------------------------------------


def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int = 16) -> Value:
    """Returns the values of a polynomial, by Horner's rule.

    Args:
        p: Coefficients along the first axis; further axes broadcast against `x`.
        x: Where to take the values.
        unroll: Accepted for compatibility; the steps are always written out.

    Raises:
        ParameterError: for a scalar `p`.

    >>> import axir.numpy as jnp
    >>> jnp.polyval(jnp.array([1, 2, 3]), 2)
    Array(11, dtype=int32)
    """
    p, x = promote_arguments("polyval", p, x)
    if not p.ndim:
        raise ParameterError(
            "jnp.polyval: the polynomial is a scalar.", "Pass a vector of coefficients."
        )
    value = multiply(x, 0) if not p.shape[0] else None
    for position in range(p.shape[0]):
        coefficient = index_in_dim(p, position, 0, keepdims=False)
        previous = multiply(x, 0) if value is None else multiply(value, x)
        value = add_any(previous, coefficient)
    assert value is not None
    return value


def poly(seq_of_zeros: object) -> Value:
    """Returns the polynomial with given zeros, or the characteristic one of a square matrix.

    Args:
        seq_of_zeros: Vector of zeros, or a square matrix; its eigenvalues are then the zeros.

    Raises:
        ParameterError: for an array of another shape.

    >>> import axir.numpy as jnp
    >>> jnp.poly(jnp.array([1.0, 2.0]))
    Array([ 1., -3.,  2.], dtype=float32)
    """
    (points,) = promote_inexact("poly", seq_of_zeros)
    if points.ndim == 2 and points.shape[0] == points.shape[1] and points.size:
        points = _eigenvalues(points)
    if points.ndim > 1:
        raise ParameterError(
            f"jnp.poly takes a vector of zeros, or a square matrix, but got an array of shape "
            f"{points.shape}."
        )
    points = reshape(points, (points.size,))
    result: Value = as_array(np.ones((), points.dtype))
    for position in range(points.size):
        previous = reshape(result, (position + 1,))
        shifted = mul(index_in_dim(points, position, 0, keepdims=False), previous)
        result = sub(pad(previous, 0, ((0, 1, 0),)), _at_front(shifted, 1))
    return result


def _eigenvalues(matrix: Value) -> Value:
    return eig(matrix, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0]


def roots(p: ArrayLike, *, strip_zeros: bool = True) -> Value:
    """Returns the zeros of a polynomial: the eigenvalues of its companion matrix.

    Args:
        p: Vector of coefficients.
        strip_zeros: Whether to drop zeros at both ends first. The number of zeros must be known:
            not under `jit`. Otherwise leading zeros make the result nan.

    Returns:
        Complex numbers, one fewer than coefficients (without leading zeros).

    Raises:
        ParameterError: for anything but a vector.
        TracerArrayConversionError: for a traced `p` unless `strip_zeros` is False.

    >>> import axir.numpy as jnp
    >>> jnp.sort(jnp.roots(jnp.array([1.0, -3.0, 2.0])).real)
    Array([1., 2.], dtype=float32)
    """
    (p,) = promote_inexact("roots", array_argument("roots", p))
    _require_vectors("roots", p)
    at_zero = 0
    if strip_zeros:
        nonzero = _places_of_nonzeros(p)
        start, end = (int(nonzero[0]), int(nonzero[-1]) + 1) if nonzero.size else (0, 0)
        at_zero = p.size - end if nonzero.size else 0
        p = slice_in_dim(p, start, end)
    result_dtype = dtypes.complex_dtype(p.dtype)
    rest = zeros(at_zero, result_dtype)
    if p.size < 2:
        return rest
    first = index_in_dim(p, 0, 0, keepdims=False)
    row = reshape(neg(div(slice_in_dim(p, 1, p.size), first)), (1, p.size - 1))
    below = as_array(np.eye(p.size - 2, p.size - 1).astype(p.dtype))
    found = convert_element_type(_eigenvalues(concatenate([row, below], 0)), result_dtype)
    return concatenate([found, rest], 0)


def _places_of_nonzeros(p: Value) -> np.ndarray:
    try:
        return np.flatnonzero(np.asarray(p))
    except TracerArrayConversionError as error:
        raise TracerArrayConversionError(
            f"jnp.roots drops zeros at both ends of p, but the values of {p.aval} are not known "
            "while it is traced.",
            "Pass strip_zeros=False.",
        ) from error
