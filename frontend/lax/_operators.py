"""Operators of `axir.lax` that are made of others or take trees, and options for their accuracy."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from axir._trees import tree
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Options, Tree, UserFunction, UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import ParameterError, ShapeError
from axir.dialect.core.extended_dtypes import KeyDtype
from axir.dialect.ops.calls import barriers as barrier
from axir.dialect.ops.elementwise.arithmetic import add, rem
from axir.dialect.ops.elementwise.comparison import lt, select_n
from axir.dialect.ops.elementwise.conversion import stop_gradient as _stop_gradient
from axir.dialect.ops.elementwise.family import as_value
from axir.dialect.ops.indexing.gather import GatherDimensionNumbers, gather
from axir.dialect.ops.reductions import variadic_reduce
from axir.dialect.ops.shape.broadcasting import expand_dims
from axir.dialect.ops.shape.concatenation import concatenate
from axir.dialect.ops.shape.constants import full
from axir.dialect.ops.windows import reduce_window_by_function
from axir.dialect.program.rules import Value


class Precision(enum.Enum):
    """How precisely a contraction multiplies on hardware that knows several ways."""

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2


def dtype(x: object) -> np.dtype:
    """Returns the dtype of an array or scalar, or the dtype that a name stands for.

    Args:
        x: Array, scalar, or a dtype, its name or a scalar type of it.

    Raises:
        DTypeError: for names of other dtypes.
        NonArrayArgumentError: for an object without a dtype.

    >>> from axir import lax
    >>> lax.dtype(1.0), lax.dtype("int64")
    (dtype('float32'), dtype('int32'))
    """
    if isinstance(x, (type, str, np.dtype)) or type(x) is KeyDtype:
        return dtypes.canonicalize_dtype(x)
    return as_value(x).dtype


def optimization_barrier(operand: Tree, /) -> UserObject:
    """Returns a tree of arrays; the compiler computes all of them before the users of any of them.

    Nothing is folded or moved across it. It is differentiable and can be vectorized.

    Args:
        operand: Tree of arrays.

    >>> from axir import lax
    >>> lax.optimization_barrier((1, {"a": 2.0}))
    (Array(1, dtype=int32, weak_type=True), {'a': Array(2., dtype=float32, weak_type=True)})
    """
    leaves, structure = tree.flatten(operand)
    return tree.unflatten(structure, barrier.optimization_barrier(*leaves))


def tie_in(x: ArrayLike, y: ArrayLike) -> UserObject:
    """Returns `y`.

    Of historical use: it tied a constant to the trace of `x`, which tracing no longer needs.

    >>> from axir import lax
    >>> lax.tie_in(1, 2)
    2
    """
    return y


def index_take(src: object, idxs: Sequence[object], axes: Sequence[int]) -> Value:
    """Takes slices of an array at vectors of indices.

    Args:
        src: The array.
        idxs: For each of the axes a vector of indices, all of one length; negative ones count from
            the end.
        axes: The axes to index.

    Returns:
        An array of as many slices as there are indices, without the indexed axes.

    Raises:
        ParameterError: when there is not one vector for each axis.
        ShapeError: when the vectors are no vectors of one length.

    >>> import axir.numpy as jnp
    >>> from axir import lax
    >>> x = jnp.arange(6).reshape(2, 3)
    >>> lax.index_take(x, (jnp.array([0, 1]), jnp.array([2, -3])), (0, 1))
    Array([2, 3], dtype=int32)
    """
    source, vectors, axes = as_value(src), [as_value(i) for i in idxs], tuple(map(int, axes))
    if len(vectors) != len(axes) or not axes:
        raise ParameterError(
            f"index_take needs one vector of indices for each axis, but got {len(vectors)} for "
            f"{len(axes)} axes."
        )
    if any(v.ndim != 1 or v.shape != vectors[0].shape for v in vectors):
        raise ShapeError(
            "index_take needs vectors of indices of one length, but got "
            f"{', '.join(str(v.aval) for v in vectors)}."
        )
    axes = tuple(axis % source.ndim for axis in axes)
    columns = [
        expand_dims(_wrapped(v, source.shape[axis]), (1,))
        for v, axis in zip(vectors, axes, strict=True)
    ]
    kept = source.ndim - len(set(axes))
    numbers = GatherDimensionNumbers(
        offset_dims=tuple(range(1, kept + 1)),
        collapsed_slice_dims=tuple(sorted(axes)),
        start_index_map=axes,
    )
    sizes = tuple(1 if d in axes else n for d, n in enumerate(source.shape))
    return gather(source, concatenate(columns, 1), numbers, sizes)


def _wrapped(index: Value, extent: int) -> Value:
    """Brings indices into the range of an axis, as Python's `%` does."""
    size = full((), extent, index.dtype)
    remainder = rem(index, size)
    if dtypes.is_unsigned(index.dtype):
        return remainder
    zero = full((), 0, index.dtype)
    return select_n(lt(remainder, zero), remainder, add(remainder, size))


def stop_gradient(x: ArrayLike) -> UserObject:
    """Returns the arrays of a tree unchanged; their derivatives count as zero.

    >>> import axir
    >>> float(axir.grad(lambda x: x * stop_gradient({"factor": x})["factor"])(3.0))
    3.0
    """
    return tree.map(_stop_gradient, x)


# Accuracy -----------------------------------------------------------------------------------------


class AccuracyMode(enum.Enum):
    """The required accuracy of a function. There is one way to compute each: the exact one."""

    HIGHEST = 1
    DEFAULT = 2


@dataclass(frozen=True)
class Tolerance:
    """By how much results of a function may differ from the exact ones.

    Attributes:
        atol: Absolute tolerance.
        rtol: Relative tolerance.
        ulps: Tolerance in units of the last place.

    Raises:
        ParameterError: for negative tolerances, or relative ones beside units of the last place.
    """

    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0

    def __post_init__(self) -> None:
        if min(self.atol, self.rtol, self.ulps) < 0:
            raise ParameterError(f"{self}: tolerances are not negative.")
        if self.rtol and self.ulps:
            raise ParameterError(f"{self}: rtol and ulps both say how exact relative errors are.")


# Reductions of trees ------------------------------------------------------------------------------


def _by_leaves(
    reduction: UserFunction,
    operands: UserObject,
    init_values: object,
    computation: Callable[[object, object], object],
    *args: Options,
) -> object:
    """Applies a reduction of arrays, or of lists of them, to a tree."""
    leaves, structure = tree.flatten(operands)
    is_list = type(operands) in (list, tuple) and len(leaves) == len(operands)
    if structure.is_leaf() or is_list:
        return reduction(operands, init_values, computation, *args)

    @functools.wraps(computation)
    def flat(accumulators: list[object], elements: list[object]) -> list[UserObject]:
        result = computation(structure.unflatten(accumulators), structure.unflatten(elements))
        return tree.flatten_like(structure, result, "Result of the computation of a reduction")

    inits = tree.flatten_like(structure, init_values, "Initial values of a reduction")
    return structure.unflatten(reduction(leaves, inits, flat, *args))


@functools.wraps(variadic_reduce.reduce)
def reduce(
    operands: object,
    init_values: object,
    computation: Callable[[UserObject, UserObject], UserObject],
    dimensions: Sequence[int],
    out_sharding: None = None,
) -> UserObject:
    """Reduces a tree of arrays along axes by a function of two trees of scalars."""
    reduction = variadic_reduce.reduce
    return _by_leaves(reduction, operands, init_values, computation, dimensions, out_sharding)


@functools.wraps(reduce_window_by_function.reduce_window)
def reduce_window(
    operand: ArrayLike,
    init_value: object,
    computation: Callable[[UserObject, UserObject], UserObject],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> UserObject:
    """Reduces sliding windows of a tree of arrays by a function of two trees of scalars."""
    window = (window_dimensions, window_strides, padding, base_dilation, window_dilation)
    reduction = reduce_window_by_function.reduce_window
    return _by_leaves(reduction, operand, init_value, computation, *window)
