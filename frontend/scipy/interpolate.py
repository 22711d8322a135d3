"""`axir.scipy.interpolate`: interpolation between points of a grid."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

import axir.numpy as jnp
from axir._trees.registration import register_pytree_node
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import ArrayLike, ConcreteArray
from axir.dialect.core.errors import DTypeError, OutOfBoundsError, ParameterError, ShapeError
from axir.dialect.program.rules import Value
from axir.numpy._arguments.promotion import promote_inexact

__all__ = ["RegularGridInterpolator"]


def __dir__() -> list[str]:
    return __all__


_METHODS = ("linear", "nearest")


class RegularGridInterpolator:
    """An interpolation between values on a rectangular grid: a function, and a tree of arrays.

    Args:
        points: The n axes of the grid: arrays of shapes (m1,), ..., (mn,), each in strictly
            ascending or, unless they are traced, descending order, with two points or more.
        values: The values on the grid, of shape (m1, ..., mn, ...); integers become floats.
        method: 'linear' or 'nearest'.
        bounds_error: Whether a point outside the grid is an error, for points that are not traced.
        fill_value: The value at points outside otherwise; None to extrapolate.

    Raises:
        ParameterError: for another method, or axes that do not ascend or descend.
        ShapeError: if the axes do not fit the values.
        DTypeError: if `fill_value` is complex and the values are real.

    >>> import axir.numpy as jnp
    >>> values = jnp.array([[0.0, 1.0], [10.0, 11.0]])
    >>> at = RegularGridInterpolator((jnp.array([0.0, 1.0]), jnp.array([0.0, 2.0])), values)
    >>> at(jnp.array([[0.5, 1.0], [0.25, 2.0]]))
    Array([5.5, 3.5], dtype=float32)
    """

    def __init__(
        self,
        points: Sequence[ArrayLike],
        values: ArrayLike,
        method: str = "linear",
        bounds_error: bool = False,
        fill_value: ArrayLike | None = math.nan,
    ):
        self.method = _checked_method(method)
        self.bounds_error = bounds_error
        (self.values,) = promote_inexact("RegularGridInterpolator", values)
        if len(points) > self.values.ndim:
            raise ShapeError(
                f"RegularGridInterpolator: there are {len(points)} axes in points, but values has "
                f"shape {self.values.shape}.",
                "values has a dimension for each axis, and maybe more behind.",
            )
        grid = []
        for number, axis in enumerate(points):
            (axis,) = promote_inexact("RegularGridInterpolator", axis)
            extent = self.values.shape[number]
            if axis.shape != (extent,) or extent < 2:
                raise ShapeError(
                    f"RegularGridInterpolator: axis {number} of points has shape {axis.shape}, but "
                    f"values has {extent} elements there.",
                    "Axes have two points or more, as many as values has.",
                )
            if _descends(axis, number):
                axis, self.values = axis[::-1], jnp.flip(self.values, number)
            grid.append(axis)
        self.grid = tuple(grid)
        self.fill_value = None
        if fill_value is not None:
            self.fill_value = jnp.asarray(fill_value)
            if dtypes.is_complex(self.fill_value.dtype) > dtypes.is_complex(self.values.dtype):
                raise DTypeError(
                    f"RegularGridInterpolator: fill_value is of dtype {self.fill_value.dtype}, but "
                    f"the values are of dtype {self.values.dtype}.",
                    "Pass a real number, or None to extrapolate.",
                )

    def __call__(self, xi: ArrayLike | Sequence[ArrayLike], method: str | None = None) -> Value:
        """Returns the values at points.

        Args:
            xi: Points, of shape (..., n), or n arrays of coordinates that broadcast.
            method: 'linear' or 'nearest'; by default the interpolator's.

        Returns:
            Values of the shape of the points, without the last dimension, and the further
            dimensions of the values.

        Raises:
            ShapeError: for points of another number of coordinates.
            OutOfBoundsError: for points outside, with `bounds_error`.
        """
        method = self.method if method is None else _checked_method(method)
        dimensions = len(self.grid)
        points = _points(xi, dimensions)
        coordinates = points.reshape(-1, dimensions).T
        cells, shares, is_outside = [], [], jnp.zeros(coordinates.shape[1], bool)
        for x, axis in zip(coordinates, self.grid, strict=True):
            cell = jnp.clip(jnp.searchsorted(axis, x) - 1, 0, axis.size - 2)
            cells.append(cell)
            shares.append((x - axis[cell]) / (axis[cell + 1] - axis[cell]))
            is_outside |= (x < axis[0]) | (x > axis[-1])
        if self.bounds_error:
            _check_inside(is_outside)
        if method == "nearest":
            nearest = [c + (share > 0.5) for c, share in zip(cells, shares, strict=True)]
            result = self.values[tuple(nearest)]
        else:
            result = self._between(cells, shares)
        if self.fill_value is not None and not self.bounds_error:
            mask = is_outside.reshape(-1, *(1,) * (result.ndim - 1))
            result = jnp.where(mask, self.fill_value.astype(result.dtype), result)
        return result.reshape(*points.shape[:-1], *self.values.shape[dimensions:])

    def _between(self, cells: list[Value], shares: list[Value]) -> Value:
        """Sums the values at the corners of the cells, each with its weight."""
        total: UserObject = 0
        further = (1,) * (self.values.ndim - len(cells))
        for corner in itertools.product((0, 1), repeat=len(cells)):
            weight = jnp.ones_like(shares[0]) if shares else jnp.ones(())
            for upper, share in zip(corner, shares, strict=True):
                weight = weight * (share if upper else 1 - share)
            places = tuple(cell + upper for cell, upper in zip(cells, corner, strict=True))
            total = total + self.values[places] * weight.reshape(-1, *further)
        return total


def _checked_method(method: str) -> str:
    if method not in _METHODS:
        raise ParameterError(
            f"RegularGridInterpolator: method is {method!r}.", "It is 'linear' or 'nearest'."
        )
    return method


def _descends(axis: Value, number: int) -> bool:
    """Tells whether an axis descends; one that is traced is taken to ascend."""
    if type(axis) is not ConcreteArray:
        return False
    steps = np.diff(np.asarray(axis))
    if not (np.all(steps > 0) or np.all(steps < 0)):
        raise ParameterError(
            f"RegularGridInterpolator: axis {number} of points neither ascends nor descends.",
            "Sort it, and values with it; each point stands there once.",
        )
    return bool(steps[0] < 0)


def _points(xi: UserObject, dimensions: int) -> Value:
    """Returns points as an array of shape (..., dimensions)."""
    if isinstance(xi, tuple):
        points = jnp.stack(jnp.broadcast_arrays(*map(jnp.asarray, xi)), axis=-1)
    else:
        points = jnp.asarray(xi)
        if points.ndim == 1:
            points = points[:, None] if dimensions == 1 else points[None]
    if points.ndim == 0 or points.shape[-1] != dimensions:
        raise ShapeError(
            f"RegularGridInterpolator: points of shape {points.shape} do not have {dimensions} "
            "coordinates.",
            f"Pass an array of shape (..., {dimensions}), or a tuple of {dimensions} arrays.",
        )
    return promote_inexact("RegularGridInterpolator", points)[0]


def _check_inside(is_outside: Value) -> None:
    if type(is_outside) is not ConcreteArray:
        raise ParameterError(
            "RegularGridInterpolator: with bounds_error points must be known, but they are traced.",
            "Pass bounds_error=False: points outside then have the fill_value.",
        )
    if np.any(is_outside):
        raise OutOfBoundsError(
            f"RegularGridInterpolator: {int(np.sum(is_outside))} of the points lie outside the "
            "grid.",
            "Pass bounds_error=False to have the fill_value there.",
        )


def _flatten(grid: RegularGridInterpolator) -> tuple[tuple[object, ...], tuple[str, bool]]:
    return (grid.grid, grid.values, grid.fill_value), (grid.method, grid.bounds_error)


def _unflatten(
    options: tuple[str, bool], children: Sequence[UserObject]
) -> RegularGridInterpolator:
    result = object.__new__(RegularGridInterpolator)
    result.grid, result.values, result.fill_value = children
    result.method, result.bounds_error = options
    return result


register_pytree_node(RegularGridInterpolator, _flatten, _unflatten)
