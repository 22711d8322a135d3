"""Products that do not sum: `outer`, `kron` and `cross`."""

from __future__ import annotations

import numpy as np

from axir.dialect.core.array import ArrayLike, ConcreteArray
from axir.dialect.core.dtypes import is_inexact
from axir.dialect.core.errors import ParameterError
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.arithmetic import mul, sub, zeros_like
from axir.dialect.ops.indexing.static_slicing import index_in_dim
from axir.dialect.ops.shape.broadcasting import broadcast_in_dim, expand_dims
from axir.dialect.ops.shape.concatenation import concatenate
from axir.dialect.ops.shape.rearranging import reshape, transpose
from axir.dialect.program.rules import Value
from axir.numpy._arguments.checks import canonical_axis, reject_out
from axir.numpy._arguments.promotion import array_argument, broadcast_arguments, promote_arguments
from axir.numpy._elementwise.arithmetic import multiply
from axir.numpy._elementwise.elementwise import are_local, evaluate

from .products import needs_axes, to_last

__all__ = ["cross", "kron", "outer"]


def outer(a: ArrayLike, b: ArrayLike, out: None = None) -> Value:
    """Returns the products of each element of `a` with each of `b`, as a matrix.

    >>> import axir.numpy as jnp
    >>> jnp.outer(jnp.array([1, 2]), jnp.array([3, 4]))
    Array([[3, 4],
           [6, 8]], dtype=int32)
    """
    reject_out("outer", out)
    a, b = array_argument("outer", a), array_argument("outer", b, 1)
    if (
        type(a) is ConcreteArray
        and type(b) is ConcreteArray
        and are_local(a, b)
        and a.type is b.type
        and is_inexact(a.dtype)
    ):
        result = ShapedArray((a.size, b.size), a.dtype, a.type.weak_type)
        return evaluate("outer", _outer_of, result, a, b)
    return multiply(reshape(a, (a.size, 1)), reshape(b, (1, b.size)))


def _outer_of(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.multiply.outer(a.reshape(-1), b.reshape(-1))


def kron(a: ArrayLike, b: ArrayLike) -> Value:
    """Returns the Kronecker product: blocks of `b`, scaled by the elements of `a`.

    >>> import axir.numpy as jnp
    >>> jnp.kron(jnp.array([1, 10]), jnp.array([1, 2]))
    Array([ 1,  2, 10, 20], dtype=int32)
    """
    a, b = promote_arguments("kron", a, b)
    rank = max(a.ndim, b.ndim)
    a, b = (reshape(x, (1,) * (rank - x.ndim) + x.shape) for x in (a, b))
    pairs = tuple(extent for pair in zip(a.shape, b.shape, strict=True) for extent in pair)
    product = mul(
        broadcast_in_dim(a, pairs, tuple(range(0, 2 * rank, 2))),
        broadcast_in_dim(b, pairs, tuple(range(1, 2 * rank, 2))),
    )
    return reshape(product, tuple(x * y for x, y in zip(a.shape, b.shape, strict=True)))


def cross(
    a: ArrayLike,
    b: ArrayLike,
    axisa: int = -1,
    axisb: int = -1,
    axisc: int = -1,
    axis: int | None = None,
) -> Value:
    """Returns the cross product of vectors of three elements, or of two (then it is a number).

    Args:
        a, b: Arrays with vectors along `axisa` and `axisb`; other axes broadcast.
        axisa, axisb: Those axes; they must have 2 or 3 elements.
        axisc: Axis of the result's vectors.
        axis: All three axes.

    Raises:
        ParameterError: for vectors of another size.

    >>> import axir.numpy as jnp
    >>> jnp.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
    Array([0, 0, 1], dtype=int32)
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = promote_arguments("cross", a, b)
    if not a.ndim or not b.ndim:
        raise needs_axes("cross", a, b)
    a = to_last(a, canonical_axis("cross", axisa, a.ndim))
    b = to_last(b, canonical_axis("cross", axisb, b.ndim))
    sizes = (a.shape[-1], b.shape[-1])
    if sizes[0] not in (2, 3) or sizes[1] not in (2, 3):
        raise ParameterError(
            f"jnp.cross: vectors must have 2 or 3 elements, but they have {sizes[0]} and "
            f"{sizes[1]}.",
            "Choose the vectors' axes with axisa and axisb.",
        )
    a0, a1, *a_rest = _components(a)
    b0, b1, *b_rest = _components(b)
    z = _minor(a0, b1, a1, b0)
    if sizes == (2, 2):
        return z
    # A vector of two elements lies in the plane: its third is zero.
    (a2,) = a_rest or [zeros_like(a0)]
    (b2,) = b_rest or [zeros_like(b0)]
    x, y = _minor(a1, b2, a2, b1), _minor(a2, b0, a0, b2)
    vectors = concatenate([expand_dims(v, (v.ndim,)) for v in (x, y, z)], z.ndim)
    target = canonical_axis("cross", axisc, vectors.ndim)
    return _from_last(vectors, target)


def _components(x: Value) -> list[Value]:
    last = x.ndim - 1
    return [index_in_dim(x, i, last, keepdims=False) for i in range(x.shape[-1])]


def _minor(a: Value, b: Value, c: Value, d: Value) -> Value:
    """Returns a b - c d, broadcasting."""
    a, b, c, d = broadcast_arguments("cross", a, b, c, d)
    return sub(mul(a, b), mul(c, d))


def _from_last(x: Value, axis: int) -> Value:
    last = x.ndim - 1
    if axis == last:
        return x
    return transpose(x, (*range(axis), last, *range(axis, last)))
