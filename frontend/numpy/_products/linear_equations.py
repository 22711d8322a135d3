"""Linear equations, inverses and powers (found in `axir.numpy.linalg`)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from operator import index

import numpy as np

from axir.custom_derivatives import custom_jvp
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import PrecisionLike, PyTree, UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import AxisError, MatrixShapeError, ParameterError
from axir.dialect.core.symbolic_dims import is_open, larger
from axir.dialect.ops.elementwise.arithmetic import add, div, mul, sub
from axir.dialect.ops.elementwise.comparison import gt, select_n
from axir.dialect.ops.linalg.lu_solve import solve as solve_square
from axir.dialect.ops.linalg.matrices import (
    adjoint,
    along_columns,
    along_rows,
    identity,
    matmul,
    to_dtype,
    transposed,
)
from axir.dialect.ops.linalg.rules import check_matrix
from axir.dialect.ops.linalg.stacks import squared
from axir.dialect.ops.linalg.svd import svd
from axir.dialect.ops.reductions.reduce import reduce_max, reduce_sum
from axir.dialect.ops.shape.rearranging import reshape, transpose
from axir.dialect.program.rules import Value
from axir.numpy._arguments.promotion import (
    array_argument,
    broadcast_shape,
    broadcast_value,
    cast,
    promote_arguments,
    promote_inexact,
)

from .products import matmul as broadcasting_matmul

__all__ = [
    "inv", "lstsq", "matrix_power", "multi_dot", "pinv", "solve", "tensorinv", "tensorsolve",
]  # fmt: skip


def solve(a: ArrayLike, b: ArrayLike) -> Value:
    """Solves a x = b for x.

    Args:
        a: Square matrices of shape (..., n, n).
        b: A vector of n elements, or right-hand sides of shape (..., n, m).

    Returns:
        x, of the shape of b with the batch axes of both. Singular matrices give infinities and NaN.

    Raises:
        MatrixShapeError: unless the matrices are square and fit b.

    >>> import axir.numpy as jnp
    >>> jnp.linalg.solve(jnp.array([[2.0, 0.0], [0.0, 4.0]]), jnp.array([2.0, 2.0]))
    Array([1. , 0.5], dtype=float32)
    """
    a, b = promote_inexact("linalg.solve", a, b)
    check_matrix("jnp.linalg.solve", a.type, is_square=True)
    if b.ndim == 0:
        raise MatrixShapeError("jnp.linalg.solve: b must have at least one axis, but is a scalar.")
    is_vector = b.ndim == 1
    columns = reshape(b, (*b.shape, 1)) if is_vector else b
    if columns.shape[-2] != a.shape[-1]:
        raise MatrixShapeError(
            f"jnp.linalg.solve: b of shape {b.shape} does not fit matrices of shape {a.shape}.",
            "b has the shape (n,) or (..., n, m).",
        )
    if a.ndim == 2 and columns.ndim > 2:
        x = _solve_stack(a, columns)
    else:
        batch = broadcast_shape("linalg.solve", [a.shape[:-2], columns.shape[:-2]])
        x = solve_square(
            broadcast_value(a, (*batch, *a.shape[-2:])),
            broadcast_value(columns, (*batch, *columns.shape[-2:])),
        )
    return reshape(x, x.shape[:-1]) if is_vector else x


def _solve_stack(a: Value, b: Value) -> Value:
    """Solves for a stack of right-hand sides as for one with many columns."""
    size, width, rank = b.shape[-2], b.shape[-1], b.ndim
    front = transpose(b, (rank - 2, *range(rank - 2), rank - 1))
    count = math.prod(b.shape[:-2]) * width
    x = reshape(solve_square(a, reshape(front, (size, count))), front.shape)
    return transpose(x, (*range(1, rank - 1), 0, rank - 1))


def inv(a: ArrayLike) -> Value:
    """Returns inverses.

    Args:
        a: Square matrices of shape (..., n, n).

    Returns:
        Matrices of the same shape; of singular ones infinities and NaN.

    Raises:
        MatrixShapeError: unless the matrices are square.

    >>> import axir.numpy as jnp
    >>> jnp.linalg.inv(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
    (a,) = promote_inexact("linalg.inv", a)
    check_matrix("jnp.linalg.inv", a.type, is_square=True)
    return solve_square(a, identity(a, a.shape))


def matrix_power(a: ArrayLike, n: int) -> Value:
    """Returns powers of square matrices; a negative exponent takes powers of the inverses.

    Args:
        a: Square matrices of shape (..., m, m).
        n: The exponent.

    Raises:
        MatrixShapeError: unless the matrices are square.
        TypeError: unless the exponent is an integer.

    >>> import axir.numpy as jnp
    >>> jnp.linalg.matrix_power(jnp.array([[1, 1], [0, 1]]), 3)
    Array([[1, 3],
           [0, 1]], dtype=int32)
    """
    a = array_argument("linalg.matrix_power", a)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise MatrixShapeError(
            f"jnp.linalg.matrix_power requires square matrices, but got {a.aval}."
        )
    exponent = index(n)
    if exponent < 0:
        a, exponent = inv(a), -exponent
    result: UserObject = None
    while exponent:
        if exponent & 1:
            result = a if result is None else matmul(result, a)
        exponent >>= 1
        if exponent:
            a = matmul(a, a)
    return identity(a, a.shape) if result is None else result


# Least squares ---------------------------------------------------------------------------------


def pinv(
    a: ArrayLike,
    rtol: ArrayLike | None = None,
    hermitian: bool = False,
    *,
    rcond: UserObject = None,
) -> Value:
    """Returns pseudo-inverses (Moore-Penrose).

    Args:
        a: Matrices of shape (..., m, n).
        rtol: Singular values below this multiple of the largest count as zero; by default
            10 max(m, n) times the resolution of the dtype.
        hermitian: Whether the matrices are Hermitian, which makes no difference.
        rcond: The same as rtol, under its old name.

    Returns:
        Matrices of shape (..., n, m).

    Raises:
        MatrixShapeError: for fewer than two axes.
        ParameterError: for both rtol and rcond.

    >>> import axir.numpy as jnp
    >>> jnp.linalg.pinv(jnp.array([[2.0], [0.0]]))
    Array([[0.5, 0. ]], dtype=float32)
    """
    (a,) = promote_inexact("linalg.pinv", a)
    check_matrix("jnp.linalg.pinv", a.type)
    if rtol is not None and rcond is not None:
        raise ParameterError("jnp.linalg.pinv takes rtol or rcond, not both.", "Pass rtol.")
    rtol = rcond if rtol is None else rtol
    if 0 in a.shape[-2:]:
        return transposed(a)
    real = dtypes.real_dtype(a.dtype)
    if rtol is None:
        rtol = 10.0 * larger(*a.shape[-2:]) * float(np.finfo(real).eps)
    rtol = cast(rtol if type(rtol) in (int, float) else array_argument("linalg.pinv", rtol), real)
    return _pinv(a, rtol)


@custom_jvp
def _pinv(a: Value, rtol: Value) -> Value:
    left, values, right = svd(a, full_matrices=False)
    limit = mul(broadcast_value(rtol, values.shape[:-1]), reduce_max(values, (values.ndim - 1,)))
    is_kept = gt(values, along_columns(limit, values.shape))
    inverses = select_n(is_kept, 0, div(1, select_n(is_kept, 1, values)))
    scaled = mul(adjoint(right), to_dtype(along_rows(inverses, adjoint(right).shape), a.dtype))
    return matmul(scaled, adjoint(left))


@_pinv.defjvp
def _pinv_jvp(primals: PyTree, tangents: PyTree) -> tuple[Value, Value]:
    """Golub & Pereyra (1973), SIAM J. Numer. Anal. 10, theorem 4.3."""
    (a, rtol), (tangent, _) = primals, tangents
    p = _pinv(a, rtol)
    turned = adjoint(tangent)
    first = matmul(matmul(p, tangent), p)
    projected = matmul(matmul(p, adjoint(p)), turned)
    second = sub(projected, matmul(matmul(projected, a), p))
    pulled = matmul(turned, matmul(adjoint(p), p))
    third = sub(pulled, matmul(p, matmul(a, pulled)))
    return p, add(sub(second, first), third)


def lstsq(
    a: ArrayLike, b: ArrayLike, rcond: float | None = None, *, numpy_resid: bool = False
) -> tuple[Value, Value, Value, Value]:
    """Finds x for which |a x - b| is least, and of all of these the shortest.

    Args:
        a: A matrix of shape (m, n).
        b: A vector (m,), or right-hand sides of shape (m, k).
        rcond: Singular values below this multiple of the largest count as zero; by default
            max(m, n) times the resolution of the dtype.
        numpy_resid: Whether the residuals are empty where NumPy's are: unless m > n and the rank is
            n. This needs the rank, so it does not work while tracing.

    Returns:
        x, the sums of squared residuals, the rank and the singular values of a.

    Raises:
        MatrixShapeError: if the shapes do not fit.

    >>> import axir.numpy as jnp
    >>> a = jnp.array([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
    >>> jnp.linalg.lstsq(a, jnp.array([1.0, 4.0, 2.0]))[0].round(5)
    Array([1., 2.], dtype=float32)
    """
    a, b = promote_inexact("linalg.lstsq", a, b)
    if a.ndim != 2 or b.ndim not in (1, 2) or b.shape[0] != a.shape[0]:
        raise MatrixShapeError(
            f"jnp.linalg.lstsq takes a of shape (m, n) and b of shape (m,) or (m, k), but got "
            f"{a.shape} and {b.shape}."
        )
    is_vector = b.ndim == 1
    right = reshape(b, (*b.shape, 1)) if is_vector else b
    real = dtypes.real_dtype(a.dtype)
    if rcond is None:
        rcond = float(np.finfo(real).eps) * larger(*a.shape)
    left, values, right_vectors = svd(a, full_matrices=False)
    largest = reduce_max(values, (0,)) if values.size else cast(0, real)
    is_kept = gt(values, mul(cast(rcond, real), largest))
    rank = reduce_sum(cast(is_kept, dtypes.canonicalize_dtype(np.dtype(np.int64))), (0,))
    inverses = select_n(is_kept, 0, div(1, select_n(is_kept, 1, values)))
    pulled = matmul(adjoint(left), right)
    scaled = mul(to_dtype(along_columns(inverses, pulled.shape), a.dtype), pulled)
    x = matmul(adjoint(right_vectors), scaled)
    residuals = _residuals(a, x, right)
    if numpy_resid and (int(rank) < a.shape[1] or a.shape[0] <= a.shape[1]):
        residuals = reshape(residuals, (residuals.size,))[:0]
    return (reshape(x, x.shape[:1]) if is_vector else x), residuals, rank, values


def _residuals(a: Value, x: Value, b: Value) -> Value:
    rest = sub(b, matmul(a, x))
    return reduce_sum(squared(rest), (0,))


# Tensors and chains ----------------------------------------------------------------------------


def tensorinv(a: ArrayLike, ind: int = 2) -> Value:
    """Returns the inverse of an array as a map between arrays.

    Args:
        a: Array. Its first `ind` axes have as many elements as the other axes.
        ind: How many axes the results of the map have.

    Returns:
        An array; its first axes are the last axes of `a`.

    Raises:
        ParameterError: unless ind is positive.
        MatrixShapeError: if the numbers of elements differ.

    >>> import axir.numpy as jnp
    >>> jnp.linalg.tensorinv(jnp.eye(4).reshape(2, 2, 4)).shape
    (4, 2, 2)
    """
    (a,) = promote_inexact("linalg.tensorinv", a)
    ind = index(ind)
    if ind <= 0:
        raise ParameterError(f"jnp.linalg.tensorinv: ind={ind} must be positive.")
    rows, columns = math.prod(a.shape[:ind]), math.prod(a.shape[ind:])
    if rows != columns:
        raise MatrixShapeError(
            f"jnp.linalg.tensorinv: the first {ind} axes of {a.aval} have {rows} elements and the "
            f"others {columns}.",
            "They must be equal.",
        )
    return reshape(inv(reshape(a, (rows, columns))), (*a.shape[ind:], *a.shape[:ind]))


def tensorsolve(a: ArrayLike, b: ArrayLike, axes: Sequence[int] | None = None) -> Value:
    """Solves tensordot(a, x, x.ndim) = b for x.

    Args:
        a: Array of shape (*b.shape, *x.shape).
        b: Array.
        axes: Axes of `a` to move to its end first.

    Raises:
        MatrixShapeError: if the shapes do not fit.
        AxisError: for axes that `a` does not have.

    >>> import axir.numpy as jnp
    >>> jnp.linalg.tensorsolve(jnp.eye(4).reshape(2, 2, 4), jnp.ones((2, 2)))
    Array([1., 1., 1., 1.], dtype=float32)
    """
    a, b = promote_inexact("linalg.tensorsolve", a, b)
    if axes is not None:
        if any(not 0 <= axis < a.ndim for axis in axes):
            raise AxisError(f"jnp.linalg.tensorsolve: axes={axes} are not axes of {a.aval}.")
        a = transpose(a, (*(d for d in range(a.ndim) if d not in axes), *axes))
    shape = a.shape[b.ndim :]
    if math.prod(shape) != b.size or math.prod(a.shape[: b.ndim]) != b.size:
        raise MatrixShapeError(
            f"jnp.linalg.tensorsolve: a of shape {a.shape} does not fit b of shape {b.shape}.",
            "a has the shape (*b.shape, *x.shape), with as many elements in x as in b.",
        )
    matrix = reshape(a, (b.size, b.size))
    return reshape(solve(matrix, reshape(b, (b.size,))), shape)


def multi_dot(arrays: Sequence[object], *, precision: PrecisionLike = None) -> Value:
    """Multiplies matrices in the order that takes the fewest operations.

    Args:
        arrays: Matrices; the first and the last one may be vectors.
        precision: As in `jnp.matmul`.

    Raises:
        ParameterError: for no arrays.
        MatrixShapeError: if the shapes do not fit.

    >>> import axir.numpy as jnp
    >>> jnp.linalg.multi_dot([jnp.ones((2, 3)), jnp.ones((3, 4)), jnp.ones(4)])
    Array([12., 12.], dtype=float32)
    """
    if not len(arrays):
        raise ParameterError("jnp.linalg.multi_dot requires at least one array.")
    values = promote_arguments("linalg.multi_dot", *arrays)
    _check_chain(values)
    if len(values) == 1:
        return values[0]
    rows = [1 if values[0].ndim == 1 else values[0].shape[0], *(x.shape[0] for x in values[1:])]
    split = _best_splits([*rows, 1 if values[-1].ndim == 1 else values[-1].shape[1]])

    def product(first: int, last: int) -> Value:
        if first == last:
            return values[first]
        middle = split[first, last]
        left, right = product(first, middle), product(middle + 1, last)
        return broadcasting_matmul(left, right, precision=precision)

    return product(0, len(values) - 1)


def _check_chain(values: Sequence[Value]) -> None:
    inner = [x.ndim for x in values[1:-1]]
    ends = [values[0].ndim, values[-1].ndim]
    fits = all(n == 2 for n in inner) and all(n in (1, 2) for n in ends)
    if not fits or any(x.shape[-1] != y.shape[0] for x, y in itertools.pairwise(values)):
        raise MatrixShapeError(
            "jnp.linalg.multi_dot: the shapes "
            f"{', '.join(str(tuple(x.shape)) for x in values)} do not make a chain of products."
        )


def _best_splits(extents: Sequence[int]) -> dict[tuple[int, int], int]:
    """Returns where to cut each range of a chain: Cormen et al., Introduction to Algorithms, 14.2.

    Args:
        extents: Matrix i has extents[i] rows and extents[i + 1] columns.
    """
    count = len(extents) - 1
    if is_open(extents):  # from left to right: no order is the best one for all sizes
        return {(i, j): j - 1 for j in range(count) for i in range(j)}
    cost = {(i, i): 0 for i in range(count)}
    split: dict[tuple[int, int], int] = {}
    for length in range(1, count):
        for first in range(count - length):
            last = first + length
            choices = [
                (
                    cost[first, middle]
                    + cost[middle + 1, last]
                    + extents[first] * extents[middle + 1] * extents[last + 1],
                    middle,
                )
                for middle in range(first, last)
            ]
            cost[first, last], split[first, last] = min(choices)
    return split
