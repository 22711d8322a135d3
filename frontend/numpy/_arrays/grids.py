"""Ranges and grids: `arange`, `linspace`, `logspace`, `geomspace`, `meshgrid`, `indices`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import (
    DTypeLike,
    ShapeLike,
    UserObject,
)
from axir.dialect.core.array import Array, ArrayLike, from_numpy
from axir.dialect.core.errors import ConcretizationTypeError, ParameterError
from axir.dialect.core.symbolic_dims import (
    SymbolicDim,
    as_extent,
    is_extent,
    is_same,
    is_symbolic_dim,
    operation,
)
from axir.dialect.ops.elementwise import arithmetic as lax
from axir.dialect.ops.elementwise.comparison import eq, select_n
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.indexing.static_slicing import slice_in_dim
from axir.dialect.ops.shape.broadcasting import broadcast_in_dim
from axir.dialect.ops.shape.concatenation import concatenate
from axir.dialect.ops.shape.constants import broadcasted_iota
from axir.dialect.ops.shape.rearranging import moveaxis, reshape
from axir.dialect.program.described_arrays import note_computed
from axir.dialect.program.rules import Value
from axir.dialect.program.tracer import Tracer
from axir.numpy._arguments.checks import canonical_axis
from axir.numpy._arguments.promotion import (
    SCALARS,
    array_argument,
    broadcast_shape,
    broadcast_value,
    constant,
    dtype_and_weakness,
    dtype_argument,
    promote_inexact,
)
from axir.numpy._elementwise.arithmetic import power
from axir.numpy._elementwise.exponential import log10
from axir.numpy._elementwise.rounding import floor

from .creation import asarray, canonical_shape, to_device

__all__ = [
    "arange", "fromfunction", "geomspace", "indices", "linspace", "logspace", "meshgrid",
]  # fmt: skip


def arange(
    start: ArrayLike,
    stop: ArrayLike | None = None,
    step: object = None,
    dtype: DTypeLike = None,
    *,
    device: object = None,
    out_sharding: object = None,
) -> Array:
    """Returns evenly spaced numbers from `start` up to, but without, `stop`.

    Args:
        start: First number; with one argument, the end, and the first number is 0.
        stop: The end.
        step: Distance of neighbours, 1 by default.
        dtype: dtype of the result; by default the one that the arguments promote to.
        device: Where to put it.
        out_sharding: How it is cut along `Explicit` axes of a mesh.

    Raises:
        ConcretizationTypeError: for tracers, since the length must be known.
        ParameterError: for a step of zero, or complex numbers.

    >>> import axir.numpy as jnp
    >>> jnp.arange(1, 2, 0.25)
    Array([1.  , 1.25, 1.5 , 1.75], dtype=float32)
    """
    given = [x for x in (start, stop, step) if x is not None]
    if SymbolicDim in map(type, given):
        return to_device(_counted(given, dtype), device, "arange", out_sharding)
    values = [x if type(x) in SCALARS else array_argument("arange", x) for x in given]
    default, _ = dtypes.promote([dtype_and_weakness(x) for x in values])
    new_dtype = default if dtype is None else dtype_argument("arange", dtype)
    if new_dtype == dtypes.bool_ or dtypes.is_complex(default):
        raise ParameterError(f"jnp.arange does not count in {default if dtype is None else dtype}.")
    first, end, distance = (
        None if x is None else _known(position, x) for position, x in enumerate((start, stop, step))
    )
    if distance == 0:
        raise ParameterError("jnp.arange: the step must not be zero.")
    if end is None:
        first, end = 0, first
    bounds: UserObject = (first, end, 1 if distance is None else distance)
    host = np.arange(*bounds, dtype=new_dtype)
    return to_device(note_computed(from_numpy(host)), device, "arange", out_sharding)


def _counted(given: Sequence[UserObject], dtype: DTypeLike) -> Value:
    """Returns integers up to an end that is a symbolic dimension."""
    if not all(map(is_extent, given)):
        raise ParameterError(
            f"jnp.arange({', '.join(map(str, given))}): beside a symbolic dimension all arguments "
            "are integers.",
            "Multiply the numbers afterwards: jnp.arange(n) * 0.5.",
        )
    first, end, step = (0, given[0], 1) if len(given) == 1 else (*given, 1)[:3]
    if is_same(step, 0):
        raise ParameterError("jnp.arange: the step must not be zero.")
    kind = dtypes.canonicalize_dtype(np.dtype(np.int64))
    if dtype is not None:
        kind = dtype_argument("arange", dtype)
    count = operation("max", (end - first + step + (-1 if step > 0 else 1)) // step, 0)
    numbers: Value = broadcasted_iota(kind, (count,), 0)
    if not is_same(step, 1):
        numbers = lax.mul(numbers, constant(step, kind))
    return numbers if is_same(first, 0) else lax.add(numbers, constant(first, kind))


def _known(position: int, x: UserObject) -> object:
    """Returns a scalar argument as a Python number."""
    if type(x) in SCALARS:
        return x
    x = array_argument("arange", x, position)
    if x.shape:
        raise ParameterError(f"jnp.arange: argument {position} must be a scalar, not {x.type}.")
    while type(x) is Tracer:
        x = x.known(ConcretizationTypeError, "by jnp.arange, whose result has that length")
    return x.host()[()]


def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike = None,
    axis: int = 0,
    *,
    device: object = None,
) -> UserObject:
    """Returns a number of evenly spaced values between two.

    Args:
        start: First value, scalar or array.
        stop: Last value; the shapes broadcast.
        num: The number of values.
        endpoint: Whether `stop` is among them.
        retstep: Whether to return a pair with the distance of neighbours.
        dtype: dtype of the result, by default a float; integers are rounded down.
        axis: The axis of the result along which values are adjacent.
        device: Where to put it.

    Raises:
        ParameterError: for a negative number.

    >>> import axir.numpy as jnp
    >>> jnp.linspace(0, 1, 5)
    Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    num = as_extent(num)
    if num < 0:
        raise ParameterError(f"jnp.linspace: {num} values are fewer than none.")
    start, stop = promote_inexact("linspace", start, stop)
    computed = start.dtype
    result_dtype = computed if dtype is None else dtype_argument("linspace", dtype)
    shape = broadcast_shape("linspace", [start.shape, stop.shape])
    bounds = [convert_element_type(broadcast_value(x, shape), computed) for x in (start, stop)]
    intervals = num - 1 if endpoint else num
    values = _spread(bounds[0], bounds[1], num, intervals, endpoint)
    if dtypes.is_integer(result_dtype) and not dtypes.is_integer(computed):
        values = floor(values)
    values = moveaxis(values, 0, canonical_axis("linspace", axis, values.ndim))
    values = to_device(convert_element_type(values, result_dtype), device)
    if not retstep:
        return values
    if intervals < 1:
        return values, constant(np.nan, computed)
    step = lax.div(lax.sub(bounds[1], bounds[0]), constant(intervals, computed))
    return values, step


def _spread(start: Value, stop: Value, num: int, intervals: int, endpoint: bool) -> Value:
    """Returns values along a new first axis."""
    shape = (num, *start.shape)
    dimensions = tuple(range(1, len(shape)))
    real = dtypes.real_dtype(start.dtype)
    if is_symbolic_dim(num):
        least = constant(operation("max", intervals, 1), real)
        weight = convert_element_type(
            lax.div(broadcasted_iota(real, (num,), 0), least), start.dtype
        )
    elif num < 2:
        return broadcast_in_dim(start, shape, dimensions)
    else:
        exact = np.arange(num) / intervals
        weight = convert_element_type(from_numpy(exact.astype(real)), start.dtype)
    weight = broadcast_in_dim(weight, shape, (0,))
    remaining = lax.sub(constant(1, start.dtype), weight)
    first, last = (broadcast_in_dim(x, shape, dimensions) for x in (start, stop))
    values = lax.add(lax.mul(first, remaining), lax.mul(last, weight))
    if not endpoint:
        return values
    if is_symbolic_dim(num):  # a single number is the first
        places = broadcasted_iota(np.int32, shape, 0)
        last_place = constant(operation("max", num - 1, 1), np.dtype(np.int32))
        return select_n(eq(places, last_place), values, last)
    end = broadcast_in_dim(stop, (1, *stop.shape), dimensions)
    return concatenate([slice_in_dim(values, 0, num - 1), end], 0)


def logspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    base: object = 10.0,
    dtype: DTypeLike = None,
    axis: int = 0,
) -> Value:
    """Returns powers of a base with evenly spaced exponents.

    Args:
        start: First exponent.
        stop: Last exponent.
        num: The number of values.
        endpoint: Whether the last exponent is among them.
        base: The base.
        dtype: dtype of the result, by default a float.
        axis: The axis of the result along which values are adjacent.

    >>> import axir.numpy as jnp
    >>> jnp.logspace(0, 2, 3)
    Array([  1.,  10., 100.], dtype=float32)
    """
    exponents = linspace(start, stop, num, endpoint, False, None, axis)
    (base,) = promote_inexact("logspace", base)
    values = power(base, exponents)
    if dtype is None:
        return convert_element_type(values, values.dtype)
    return convert_element_type(values, dtype_argument("logspace", dtype))


def geomspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike = None,
    axis: int = 0,
) -> Value:
    """Returns values with a constant ratio of neighbours, from `start` to `stop`.

    Args:
        start: First value, not zero.
        stop: Last value, of the same sign.
        num: The number of values.
        endpoint: Whether `stop` is among them.
        dtype: dtype of the result, by default a float.
        axis: The axis of the result along which values are adjacent.

    >>> import axir.numpy as jnp
    >>> jnp.geomspace(1, 100, 3)
    Array([  1.,  10., 100.], dtype=float32)
    """
    start, stop = promote_inexact("geomspace", start, stop)
    shape = broadcast_shape("geomspace", [start.shape, stop.shape])
    start, stop = (convert_element_type(broadcast_value(x, shape), x.dtype) for x in (start, stop))
    # Both ends turn to positive numbers, because their logarithms are real.
    direction = lax.sign(start)
    first, last = lax.div(start, direction), lax.div(stop, direction)
    values = logspace(log10(first), log10(last), num, endpoint)
    if num > 1:
        inner = slice_in_dim(values, 1, num - 1 if endpoint else num)
        front = broadcast_in_dim(first, (1, *shape), tuple(range(1, len(shape) + 1)))
        back = broadcast_in_dim(last, (1, *shape), tuple(range(1, len(shape) + 1)))
        values = concatenate([front, inner, back] if endpoint else [front, inner], 0)
    values = lax.mul(
        values, broadcast_in_dim(direction, values.shape, tuple(range(1, values.ndim)))
    )
    values = moveaxis(values, 0, canonical_axis("geomspace", axis, values.ndim))
    return convert_element_type(
        values, values.dtype if dtype is None else dtype_argument("geomspace", dtype)
    )


def meshgrid(
    *xi: object, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> list[Value]:
    """Returns coordinate arrays of the grid that vectors of coordinates span.

    Args:
        *xi: Arrays of rank 1.
        copy: Must be true: arrays are never views that could be written to.
        sparse: Whether to leave the arrays at extent 1 where they do not change.
        indexing: 'xy' exchanges the first two axes, as plots have them; 'ij' does not.

    Raises:
        ParameterError: for arrays of another rank, or an unknown `indexing`.

    >>> import axir.numpy as jnp
    >>> jnp.meshgrid(jnp.arange(2), jnp.arange(3))[0]
    Array([[0, 1],
           [0, 1],
           [0, 1]], dtype=int32)
    """
    values = [array_argument("meshgrid", x, position) for position, x in enumerate(xi)]
    if indexing not in ("xy", "ij"):
        raise ParameterError(f"jnp.meshgrid: indexing {indexing!r} is neither 'xy' nor 'ij'.")
    if not copy:
        raise ParameterError("jnp.meshgrid: copy=False would need arrays that share memory.")
    if any(x.ndim != 1 for x in values):
        raise ParameterError(
            "jnp.meshgrid takes arrays of rank 1, not of shapes "
            f"{', '.join(str(x.shape) for x in values)}.",
            "Flatten them with x.ravel().",
        )
    axes = list(range(len(values)))
    if indexing == "xy" and len(values) > 1:
        axes[:2] = [1, 0]
    shape = [0] * len(values)
    for x, axis in zip(values, axes, strict=True):
        shape[axis] = x.shape[0]
    if sparse:
        sparse_shapes = [
            tuple(x.shape[0] if a == axis else 1 for a in range(len(values)))
            for x, axis in zip(values, axes, strict=True)
        ]
        return [reshape(x, s) for x, s in zip(values, sparse_shapes, strict=True)]
    return [broadcast_in_dim(x, shape, (axis,)) for x, axis in zip(values, axes, strict=True)]


def indices(dimensions: Sequence[int], dtype: DTypeLike = None, sparse: bool = False) -> UserObject:
    """Returns the indices of all elements of a shape.

    Args:
        dimensions: The shape.
        dtype: dtype of the indices, by default the default integer dtype.
        sparse: Whether to return a tuple of arrays that are 1 where they do not change.

    Returns:
        An array of shape (rank, *dimensions). Its entry i holds the indices along axis i.

    >>> import axir.numpy as jnp
    >>> jnp.indices((2, 2))[0]
    Array([[0, 0],
           [1, 1]], dtype=int32)
    """
    shape = canonical_shape("indices", tuple(dimensions))
    new_dtype = dtype_argument("indices", int if dtype is None else dtype)
    rank = len(shape)
    if sparse:
        shapes = [
            tuple(shape[axis] if a == axis else 1 for a in range(rank)) for axis in range(rank)
        ]
        return tuple(broadcasted_iota(new_dtype, s, axis) for axis, s in enumerate(shapes))
    if not rank:
        return asarray(np.zeros((0,)), new_dtype)
    return concatenate([broadcasted_iota(new_dtype, (1, *shape), a + 1) for a in range(rank)], 0)


def fromfunction(
    function: Callable[..., object], shape: ShapeLike, *, dtype: DTypeLike = float, **kwargs: object
) -> UserObject:
    """Returns a function's values at all indices of a shape.

    Args:
        function: Called once with one array of indices for each axis.
        shape: The shape.
        dtype: dtype of the indices.
        **kwargs: Passed on to the function.

    >>> import axir.numpy as jnp
    >>> jnp.fromfunction(lambda i, j: i + j, (2, 2))
    Array([[0., 1.],
           [1., 2.]], dtype=float32)
    """
    return function(*indices(canonical_shape("fromfunction", shape), dtype), **kwargs)
