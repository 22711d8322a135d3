"""Functions applied along axes and piece by piece; a least-squares fit; the Bessel function i0."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index

import ml_dtypes
import numpy as np

from axir._transforms.vectorize import vmap
from axir.dialect.core.annotations import UserFunction, UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import ParameterError, ShapeError
from axir.dialect.ops.elementwise.arithmetic import mul, sign
from axir.dialect.ops.elementwise.transcendental import exp
from axir.dialect.ops.special.special_functions import bessel_i0e
from axir.dialect.program.rules import Value
from axir.numpy._arguments.checks import canonical_axis
from axir.numpy._arguments.promotion import array_argument, broadcast_value, promote_inexact
from axir.numpy._arrays.index_grids import vander
from axir.numpy._indexing.selection import where
from axir.numpy._products.linear_equations import inv, lstsq
from axir.numpy._shape.manipulation import expand_dims

__all__ = ["apply_along_axis", "apply_over_axes", "i0", "piecewise", "polyfit"]


def apply_along_axis(
    func1d: Callable[..., object], axis: int, arr: ArrayLike, *args: object, **kwargs: object
) -> Value:
    """Applies a function of a vector to all vectors along an axis.

    Args:
        func1d: From a vector to an array; its axes take the place of the axis.
        axis: Along which.
        arr: The array.
        *args: Further arguments of the function.
        **kwargs: Likewise.

    >>> import axir.numpy as jnp
    >>> jnp.apply_along_axis(jnp.sum, 0, jnp.arange(4).reshape(2, 2))
    Array([2, 4], dtype=int32)
    """
    array = array_argument("apply_along_axis", arr)
    axis = canonical_axis("apply_along_axis", axis, array.ndim)

    def apply(vector: object) -> UserObject:
        return func1d(vector, *args, **kwargs)

    # The axis itself ends up between the mapped axes before and after it.
    for _ in range(array.ndim - 1 - axis):
        apply = vmap(apply, in_axes=-1, out_axes=-1)
    for _ in range(axis):
        apply = vmap(apply)
    return apply(array)


def apply_over_axes(func: UserFunction, a: ArrayLike, axes: UserObject) -> Value:
    """Applies a function `(array, axis)` over axes in turn; reduced axes stay with extent 1.

    >>> import axir.numpy as jnp
    >>> jnp.apply_over_axes(jnp.sum, jnp.ones((2, 3)), (0, 1))
    Array([[6.]], dtype=float32)
    """
    array = array_argument("apply_over_axes", a)
    for axis in (axes,) if isinstance(axes, int) else axes:
        result = func(array, axis)
        if result.ndim == array.ndim - 1:
            result = expand_dims(result, axis)
        if result.ndim != array.ndim:
            raise ParameterError(
                "jnp.apply_over_axes: the function must keep the axis or drop it, but it made "
                f"{result.ndim} axes of {array.ndim}."
            )
        array = result
    return array


def piecewise(
    x: ArrayLike,
    condlist: object,
    funclist: Sequence[object],
    *args: object,
    **kw: object,
) -> Value:
    """Evaluates a function that is defined piece by piece.

    Args:
        x: Where.
        condlist: Bools for each piece, of the shape of `x`; of several that hold the last counts.
        funclist: For each piece a function of `x` or a number; one more is for the rest, else 0.
        *args: Further arguments of the functions.
        **kw: Likewise.

    >>> import axir.numpy as jnp
    >>> x = jnp.array([-2, 3])
    >>> jnp.piecewise(x, [x < 0, x >= 0], [lambda x: -x, lambda x: x])
    Array([2, 3], dtype=int32)
    """
    x = array_argument("piecewise", x)
    conditions = condlist if isinstance(condlist, (list, tuple)) else [condlist]
    pieces = list(funclist)
    if len(pieces) not in (len(conditions), len(conditions) + 1):
        raise ParameterError(
            f"jnp.piecewise: {len(conditions)} conditions need as many functions, or one more, but "
            f"there are {len(pieces)}."
        )
    rest = pieces.pop() if len(pieces) > len(conditions) else 0

    def value(piece: object) -> Value:
        result = piece(x, *args, **kw) if callable(piece) else piece
        return array_argument("piecewise", result).astype(x.dtype)

    result = broadcast_value(value(rest), x.shape)
    for condition, piece in zip(conditions, pieces, strict=True):
        holds = np.asarray(condition) if isinstance(condition, list) else condition
        result = where(holds, value(piece), result)
    return result


def i0(x: ArrayLike) -> Value:
    """Returns the modified Bessel function of the first kind and order 0 (DLMF 10.25).

    >>> import axir.numpy as jnp
    >>> float(jnp.i0(0.0))
    1.0
    """
    (x,) = promote_inexact("i0", x)
    # Not abs: it has a slope at zero, and the slope of this function there is 0.
    return times_exp(bessel_i0e(x), mul(x, sign(x)))


def times_exp(x: Value, exponent: Value) -> Value:
    """Returns x e^exponent, also where the power overflows and the product does not."""
    half = exp(mul(exponent, 0.5))
    return mul(half, mul(half, x))


def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: ArrayLike | None = None,
    cov: ArrayLike = False,
) -> UserObject:
    """Fits a polynomial to points by least squares.

    Args:
        x: Vector of places.
        y: Values there, a vector or the columns of a matrix.
        deg: Degree of the polynomial.
        rcond: Singular values below this share of the largest count as zero; by default the
            resolution of the dtype times the number of points.
        full: Whether to return diagnostics too.
        w: Weights of the points (of their distances, not their squares).
        cov: Whether to return the covariances of the coefficients too; 'unscaled' takes the
            weights for inverse standard deviations.

    Returns:
        The coefficients, the highest power first; with `full` a tuple of them, the sum of squared
        distances, rank, singular values and `rcond`; with `cov` a pair with the covariances.

    Raises:
        ShapeError: for operands that do not fit together.
        ParameterError: for a negative degree, or too few points for covariances.

    >>> import axir.numpy as jnp
    >>> jnp.polyfit(jnp.arange(3.0), jnp.array([1.0, 3.0, 5.0]), 1).round(3)
    Array([2., 1.], dtype=float32)
    """
    x, y = promote_inexact("polyfit", x, y)
    deg = index(deg)
    _check_points(x, y, deg)
    rcond = x.size * float(ml_dtypes.finfo(x.dtype).eps) if rcond is None else rcond
    left, right = vander(x, deg + 1), y
    if w is not None:
        (weights,) = promote_inexact("polyfit", w)
        if weights.shape != x.shape:
            raise ShapeError(f"jnp.polyfit: weights of type {weights.type} for {x.size} points.")
        left = left * weights[:, None]
        right = right * (weights if y.ndim == 1 else weights[:, None])
    # Columns of length 1 make the singular values comparable.
    scale = (left * left).sum(axis=0) ** 0.5
    solution, residuals, rank, singular = lstsq(left / scale[None, :], right, rcond)
    coefficients = solution / scale.reshape(-1, *(1,) * (solution.ndim - 1))
    if full:
        return coefficients, residuals, rank, singular, array_argument("polyfit", rcond)
    if not cov:
        return coefficients
    base = inv(left.T @ left)
    if cov == "unscaled":
        factor: UserObject = 1
    else:
        if x.size <= deg + 1:
            raise ParameterError(
                f"jnp.polyfit: {x.size} points are too few for covariances of {deg + 1} "
                "coefficients."
            )
        factor = residuals / (x.size - (deg + 1))
    return coefficients, base * factor if y.ndim == 1 else base[:, :, None] * factor


def _check_points(x: Value, y: Value, deg: int) -> None:
    if deg < 0:
        raise ParameterError(f"jnp.polyfit: the degree {deg} is negative.")
    if x.ndim != 1 or not x.size or y.ndim not in (1, 2) or y.shape[0] != x.shape[0]:
        raise ShapeError(
            f"jnp.polyfit: x {x.type} must be a vector, and y {y.type} a vector or matrix with as "
            "many rows."
        )
