"""Products of vectors and matrices that sum: `matmul`, `dot`, `tensordot`, and similar functions.

Elsewhere: `einsum` (`einsum.py`), products that do not sum (`outer_products.py`), diagonals
(`frontend/numpy/_shape/diagonals.py`), decompositions and solvers (`linalg`).
"""

from __future__ import annotations

import numpy as np

from axir._devices.placement import lies_where_told
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import (
    Axes,
    DTypeLike,
    PrecisionLike,
    UserObject,
)
from axir.dialect.core.array import ArrayLike, ConcreteArray
from axir.dialect.core.config import config
from axir.dialect.core.errors import ParameterError, ShapeError
from axir.dialect.ops.contraction.dot_general import dot_general
from axir.dialect.ops.elementwise.conversion import conj
from axir.dialect.ops.shape.rearranging import reshape, squeeze, transpose
from axir.dialect.program.op_table import OPS
from axir.dialect.program.rules import Value
from axir.dialect.program.tracer import Tracer
from axir.numpy._arguments.checks import canonical_axes, canonical_axis
from axir.numpy._arguments.promotion import broadcast_shape, promote_arguments

__all__ = [
    "dot", "inner", "matmul", "matvec", "tensordot", "vdot", "vecdot", "vecmat",
]  # fmt: skip

_bind_dot_general = OPS["dot_general"].bind
_NO_BATCH: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
_MATMUL_NUMBERS = {
    (lhs_ndim, rhs_ndim): (((lhs_ndim - 1,), (0,)), _NO_BATCH)
    for lhs_ndim in (1, 2)
    for rhs_ndim in (1, 2)
}

# Products over one axis ------------------------------------------------------------------------


@lies_where_told
def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike = None,
    out_sharding: object = None,
) -> Value:
    """Multiplies matrices in the last two axes; axes before them broadcast. The operator `@`.

    Args:
        a: Array of shape (..., n, k), or a vector of k elements.
        b: Array of shape (..., k, m), or a vector of k elements.
        precision: None, 'default', 'high' or 'highest', or a pair of these for the operands.
        preferred_element_type: dtype to accumulate in, and of the result.
        out_sharding: Placement of the result: a sharding, or a `PartitionSpec`.

    Returns:
        An array of shape (..., n, m), without n or m where that operand is a vector.

    Raises:
        ParameterError: for scalars.
        ShapeError: if the shapes do not fit.

    >>> import axir.numpy as jnp
    >>> jnp.matmul(jnp.array([[1.0, 2.0], [3.0, 4.0]]), jnp.array([1.0, 1.0]))
    Array([3., 7.], dtype=float32)
    """
    if precision is None and preferred_element_type is None:
        numbers = _plain_product(a, b)
        if numbers is not None:
            return _bind_dot_general(
                a, b, dimension_numbers=numbers, precision=None, preferred_element_type=None
            )
    a, b = promote_arguments("matmul", a, b)
    _check_matmul(a, b)
    return _batched_matmul("matmul", a, b, precision, preferred_element_type)


def _plain_product(a: ArrayLike, b: ArrayLike) -> object:
    """Returns the dimension numbers of a product of vectors and matrices that needs no checks."""
    if (type(a) is not ConcreteArray and type(a) is not Tracer) or (
        type(b) is not ConcreteArray and type(b) is not Tracer
    ):
        return None
    lhs, rhs = a.type, b.type
    numbers = _MATMUL_NUMBERS.get((lhs.ndim, rhs.ndim))
    if (
        numbers is None
        or lhs.dtype is not rhs.dtype
        or lhs.shape[-1] != rhs.shape[0]
        or config.jax_default_matmul_precision is not None
    ):
        return None
    return numbers


def _check_matmul(a: Value, b: Value) -> None:
    if not a.ndim or not b.ndim:
        raise ParameterError(
            f"jnp.matmul: operands must have at least one axis, but they are {a.aval} and "
            f"{b.aval}.",
            "Multiply by a scalar with *.",
        )
    inner_axis = 0 if b.ndim == 1 else b.ndim - 2
    if a.shape[-1] != b.shape[inner_axis]:
        raise ShapeError(
            f"jnp.matmul: contracting extents differ: the last axis of {a.aval} has "
            f"{a.shape[-1]} and axis {inner_axis} of {b.aval} has {b.shape[inner_axis]}.",
            "Transpose or reshape one operand so that they match.",
        )


def _batched_matmul(
    name: str, a: Value, b: Value, precision: PrecisionLike, preferred_element_type: DTypeLike
) -> Value:
    """Multiplies matrices; batch axes that one operand lacks become free axes of the other."""
    a_batch, b_batch = a.shape[:-2], b.shape[:-2]
    batch = broadcast_shape(name, [a_batch, b_batch])
    rank = len(batch)
    a_full = (1,) * (rank - len(a_batch)) + a_batch
    b_full = (1,) * (rank - len(b_batch)) + b_batch
    shared = [d for d in range(rank) if a_full[d] == b_full[d] == batch[d]]
    a_only = [d for d in range(rank) if d not in shared and a_full[d] == batch[d]]
    b_only = [d for d in range(rank) if d not in shared and d not in a_only]
    # Extents of 1 that stretch are dropped: each operand keeps the axes that it brings.
    a_axes = [d for d in range(rank) if d in shared or d in a_only]
    b_axes = [d for d in range(rank) if d in shared or d in b_only]
    a = reshape(a, (*[batch[d] for d in a_axes], *a.shape[-2:]))
    b = reshape(b, (*[batch[d] for d in b_axes], *b.shape[-2:]))
    a_rows, b_columns = a.ndim > len(a_axes) + 1, b.ndim > len(b_axes) + 1
    contract = ((a.ndim - 1,), (len(b_axes),))
    batch_axes = (
        tuple([a_axes.index(d) for d in shared]),
        tuple([b_axes.index(d) for d in shared]),
    )
    result = dot_general(a, b, (contract, batch_axes), precision, preferred_element_type)
    # Axes of the result: shared axes, a's batch axes, a's rows, b's batch axes, b's columns.
    places = [*shared, *a_only, *([rank] * a_rows), *b_only, *([rank + 1] * b_columns)]
    order = tuple(sorted(range(len(places)), key=places.__getitem__))
    return result if order == tuple(range(len(places))) else transpose(result, order)


@lies_where_told
def dot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike = None,
    out_sharding: object = None,
) -> Value:
    """Sums products over the last axis of `a` and the last but one (or only) axis of `b`.

    For vectors and matrices this is `matmul`, for scalars the product; unlike `matmul` it does not
    broadcast axes before the last two, but combines each with each.

    Args:
        a, b: Arrays.
        precision, preferred_element_type, out_sharding: As in `matmul`.

    Raises:
        ShapeError: if the contracting extents differ.

    >>> import axir.numpy as jnp
    >>> jnp.dot(jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0]))
    Array(11., dtype=float32)
    """
    if precision is None and preferred_element_type is None:
        numbers = _plain_product(a, b)
        if numbers is not None:
            return _bind_dot_general(
                a, b, dimension_numbers=numbers, precision=None, preferred_element_type=None
            )
    a, b = promote_arguments("dot", a, b)
    contract: UserObject = ((), ())
    if a.ndim and b.ndim:
        contract = ((a.ndim - 1,), (max(b.ndim - 2, 0),))
    _check_contraction("dot", a, b, contract)
    return dot_general(a, b, (contract, _NO_BATCH), precision, preferred_element_type)


def _check_contraction(name: str, a: Value, b: Value, contract: UserObject) -> None:
    sizes = [[x.shape[d] for d in axes] for x, axes in zip((a, b), contract, strict=True)]
    if sizes[0] != sizes[1]:
        raise ShapeError(
            f"jnp.{name}: contracting extents differ: axes {contract[0]} of {a.aval} have "
            f"{sizes[0]} and axes {contract[1]} of {b.aval} have {sizes[1]}.",
            "Transpose or reshape one operand so that they match.",
        )


def vdot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike = None,
) -> Value:
    """Returns the inner product of the flattened conjugate of `a` with the flattened `b`.

    Raises:
        ShapeError: if the numbers of elements differ.

    >>> import axir.numpy as jnp
    >>> jnp.vdot(jnp.array([1j, 2.0]), jnp.array([1.0, 1.0]))
    Array(2.-1.j, dtype=complex64)
    """
    a, b = promote_arguments("vdot", a, b)
    a = conj(a) if dtypes.is_complex(a.dtype) else a
    a, b = _flat(a), _flat(b)
    return dot(a, b, precision=precision, preferred_element_type=preferred_element_type)


def _flat(x: Value) -> Value:
    return x if x.ndim == 1 else reshape(x, (x.size,))


def vecdot(
    x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1, precision: PrecisionLike = None,
    preferred_element_type: DTypeLike = None,
) -> Value:  # fmt: skip
    """Returns inner products of the conjugate of `x1` with `x2` along an axis; others broadcast.

    Args:
        x1, x2: Arrays of at least one axis.
        axis: The axis, counted from the end in both.
        precision, preferred_element_type: As in `matmul`.

    Raises:
        ParameterError: for scalars.
        ShapeError: if the shapes do not fit.

    >>> import axir.numpy as jnp
    >>> jnp.vecdot(jnp.ones((2, 3)), jnp.arange(3.0))
    Array([3., 3.], dtype=float32)
    """
    x1, x2 = promote_arguments("vecdot", x1, x2)
    if not x1.ndim or not x2.ndim:
        raise needs_axes("vecdot", x1, x2)
    x1, x2 = (to_last(x, canonical_axis("vecdot", axis, x.ndim)) for x in (x1, x2))
    if x1.shape[-1] != x2.shape[-1]:
        raise ShapeError(
            f"jnp.vecdot: axis {axis} has extent {x1.shape[-1]} in the first operand and "
            f"{x2.shape[-1]} in the second.",
            "Slice or transpose one operand so that they match.",
        )
    x1 = conj(x1) if dtypes.is_complex(x1.dtype) else x1
    rows = reshape(x1, (*x1.shape[:-1], 1, x1.shape[-1]))
    columns = reshape(x2, (*x2.shape, 1))
    result = _batched_matmul("vecdot", rows, columns, precision, preferred_element_type)
    return squeeze(result, (-2, -1))


def to_last(x: Value, axis: int) -> Value:
    """Moves an axis behind the others."""
    if axis == x.ndim - 1:
        return x
    return transpose(x, (*range(axis), *range(axis + 1, x.ndim), axis))


def needs_axes(name: str, x1: Value, x2: Value) -> ParameterError:
    """Returns the error for scalars where vectors are needed."""
    return ParameterError(
        f"jnp.{name}: operands must have at least one axis, but they are {x1.aval} and {x2.aval}.",
        "Multiply by a scalar with *.",
    )


def matvec(x1: ArrayLike, x2: ArrayLike, /) -> Value:
    """Multiplies matrices (..., n, k) by vectors (..., k); axes before broadcast.

    Raises:
        ShapeError: if the operands have too few axes, or their shapes do not fit.

    >>> import axir.numpy as jnp
    >>> jnp.matvec(jnp.eye(2), jnp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    x1, x2 = promote_arguments("matvec", x1, x2)
    if x1.ndim < 2 or x2.ndim < 1 or x1.shape[-1] != x2.shape[-1]:
        raise ShapeError(
            f"jnp.matvec: takes operands of shapes (..., n, k) and (..., k), not {x1.shape} and "
            f"{x2.shape}.",
            "Transpose or reshape them.",
        )
    columns = reshape(x2, (*x2.shape, 1))
    return squeeze(_batched_matmul("matvec", x1, columns, None, None), (-1,))


def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> Value:
    """Multiplies conjugated vectors (..., n) by matrices (..., n, k); axes before broadcast.

    Raises:
        ShapeError: if the operands have too few axes, or their shapes do not fit.

    >>> import axir.numpy as jnp
    >>> jnp.vecmat(jnp.array([1.0, 2.0]), jnp.eye(2))
    Array([1., 2.], dtype=float32)
    """
    x1, x2 = promote_arguments("vecmat", x1, x2)
    if x1.ndim < 1 or x2.ndim < 2 or x1.shape[-1] != x2.shape[-2]:
        raise ShapeError(
            f"jnp.vecmat: takes operands of shapes (..., n) and (..., n, k), not {x1.shape} and "
            f"{x2.shape}.",
            "Transpose or reshape them.",
        )
    x1 = conj(x1) if dtypes.is_complex(x1.dtype) else x1
    rows = reshape(x1, (*x1.shape[:-1], 1, x1.shape[-1]))
    return squeeze(_batched_matmul("vecmat", rows, x2, None, None), (-2,))


# Products over several axes, or none -----------------------------------------------------------


@lies_where_told
def tensordot(
    a: ArrayLike,
    b: ArrayLike,
    axes: Axes = 2,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike = None,
    out_sharding: object = None,
) -> Value:
    """Sums products over several axes.

    Args:
        a, b: Arrays.
        axes: A number n: the last n axes of `a` and the first n of `b`; or a pair of axes or of
            sequences of axes, for `a` and for `b`.
        precision, preferred_element_type, out_sharding: As in `matmul`.

    Returns:
        An array of the remaining axes of `a`, then of `b`.

    Raises:
        ShapeError: if the extents differ.
        AxisError: for axes out of range.
        ParameterError: if `axes` is something else.

    >>> import axir.numpy as jnp
    >>> jnp.tensordot(jnp.ones((2, 3, 4)), jnp.ones((4, 3)), axes=((1, 2), (1, 0)))
    Array([12., 12.], dtype=float32)
    """
    a, b = promote_arguments("tensordot", a, b)
    contract = _contracting_axes(a, b, axes)
    _check_contraction("tensordot", a, b, contract)
    return dot_general(a, b, (contract, _NO_BATCH), precision, preferred_element_type)


def _contracting_axes(a: Value, b: Value, axes: Axes) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if isinstance(axes, (int, np.integer)):
        if axes < 0 or axes > min(a.ndim, b.ndim):
            raise ShapeError(
                f"jnp.tensordot: axes={axes} exceeds the number of axes of {a.aval} or {b.aval}.",
                f"It lies between 0 and {min(a.ndim, b.ndim)}.",
            )
        return tuple(range(a.ndim - axes, a.ndim)), tuple(range(axes))
    if not isinstance(axes, (tuple, list)) or len(axes) != 2:
        raise ParameterError(
            f"jnp.tensordot: axes={axes!r} is neither a number nor a pair.",
            "Pass axes=n, or axes=((axes of a), (axes of b)).",
        )
    sides = [
        canonical_axes("tensordot", axis, x.ndim) for x, axis in zip((a, b), axes, strict=True)
    ]
    if len(sides[0]) != len(sides[1]):
        raise ShapeError(
            f"jnp.tensordot: axes={axes!r} names {len(sides[0])} axes of a and {len(sides[1])} "
            "of b.",
            "Name as many of each.",
        )
    return sides[0], sides[1]


def inner(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike = None,
) -> Value:
    """Sums products over the last axes of both arrays; for scalars the product.

    Raises:
        ShapeError: if the last extents differ.

    >>> import axir.numpy as jnp
    >>> jnp.inner(jnp.array([1.0, 2.0]), jnp.array([[3.0, 4.0], [5.0, 6.0]]))
    Array([11., 17.], dtype=float32)
    """
    a, b = promote_arguments("inner", a, b)
    contract = ((a.ndim - 1,), (b.ndim - 1,)) if a.ndim and b.ndim else ((), ())
    _check_contraction("inner", a, b, contract)
    return dot_general(a, b, (contract, _NO_BATCH), precision, preferred_element_type)
