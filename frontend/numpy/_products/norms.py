"""Norms, condition numbers and ranks (found in `axir.numpy.linalg`)."""

from __future__ import annotations

import math

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Options, UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import MatrixShapeError, ParameterError
from axir.dialect.core.symbolic_dims import larger
from axir.dialect.ops.elementwise.arithmetic import abs as absolute
from axir.dialect.ops.elementwise.arithmetic import div, mul
from axir.dialect.ops.elementwise.comparison import gt, ne
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.elementwise.transcendental import pow as power
from axir.dialect.ops.elementwise.transcendental import sqrt
from axir.dialect.ops.linalg.eigh import eigh
from axir.dialect.ops.linalg.rules import check_matrix
from axir.dialect.ops.linalg.stacks import squared
from axir.dialect.ops.linalg.svd import svd
from axir.dialect.ops.reductions.reduce import reduce_max, reduce_sum
from axir.dialect.ops.shape.rearranging import reshape, transpose
from axir.dialect.program.rules import Value
from axir.numpy._arguments.checks import canonical_axes
from axir.numpy._arguments.promotion import array_argument, broadcast_value, cast, promote_inexact
from axir.numpy._reductions.reductions import max as largest
from axir.numpy._reductions.reductions import min as least
from axir.numpy._reductions.reductions import sum as total

from .linear_equations import inv

__all__ = ["cond", "matrix_norm", "matrix_rank", "norm", "vector_norm"]

Axes = tuple[int, ...]


def norm(x: object, ord: object = None, axis: object = None, keepdims: bool = False) -> Value:
    """Returns norms of vectors or matrices.

    Args:
        x: Array.
        ord: Of vectors a number, among them inf, -inf and 0 (how many elements are not zero); of
            matrices 'fro', 'nuc', 1, -1, 2, -2, inf or -inf. By default the root of the sum of
            squares.
        axis: The axis of vectors, or the two axes of matrices; by default all axes.
        keepdims: Whether reduced axes stay, with extent 1.

    Raises:
        ParameterError: for an unknown `ord`, or one that does not fit the number of axes.
        AxisError: for axes that x does not have.

    >>> import axir.numpy as jnp
    >>> jnp.linalg.norm(jnp.array([3.0, -4.0]))
    Array(5., dtype=float32)
    """
    (x,) = promote_inexact("linalg.norm", x)
    if axis is None and ord is None:
        return sqrt(total(squared(x), axis=None, keepdims=keepdims))
    axes = canonical_axes("linalg.norm", axis, x.ndim)
    if len(axes) == 1:
        return _vector_norm(x, 2 if ord is None else ord, axes, keepdims)
    if len(axes) == 2:
        return _matrix_norm(x, "fro" if ord is None else ord, axes, keepdims)
    raise ParameterError(
        f"jnp.linalg.norm: axis={axis} of {x.aval} names {len(axes)} axes; a norm with ord={ord!r} "
        "is of vectors (1) or matrices (2).",
        "Use jnp.linalg.vector_norm for norms over more axes.",
    )


def vector_norm(
    x: object, /, *, axis: object = None, keepdims: bool = False, ord: object = 2
) -> Value:
    """Returns norms of vectors that lie along one or several axes.

    Args:
        x: Array.
        axis: The axes; by default all.
        keepdims: Whether reduced axes stay, with extent 1.
        ord: As in `norm`.

    Raises:
        ParameterError: for an unknown `ord`.
        AxisError: for axes that x does not have.

    >>> import axir.numpy as jnp
    >>> jnp.linalg.vector_norm(jnp.array([[1.0, -2.0], [3.0, -4.0]]), ord=1)
    Array(10., dtype=float32)
    """
    (x,) = promote_inexact("linalg.vector_norm", x)
    axes = canonical_axes("linalg.vector_norm", axis, x.ndim)
    return _vector_norm(x, ord, axes, keepdims)


def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: object = "fro") -> Value:
    """Returns norms of matrices in the last two axes; `ord` as in `norm`.

    Raises:
        ParameterError: for an unknown `ord`.
        MatrixShapeError: for fewer than two axes.

    >>> import axir.numpy as jnp
    >>> jnp.linalg.matrix_norm(jnp.array([[1.0, -2.0], [3.0, -4.0]]), ord=1)
    Array(6., dtype=float32)
    """
    (x,) = promote_inexact("linalg.matrix_norm", x)
    if x.ndim < 2:
        raise MatrixShapeError(f"jnp.linalg.matrix_norm requires a matrix, but got {x.aval}.")
    return _matrix_norm(x, ord, (x.ndim - 2, x.ndim - 1), keepdims)


def _vector_norm(x: Value, ord: object, axes: Axes, keepdims: bool) -> Value:
    if isinstance(ord, str):
        raise ParameterError(
            f"jnp.linalg.norm: ord={ord!r} is a norm of matrices, but the axes {axes} of {x.aval} "
            "hold vectors.",
            "Name two axes.",
        )
    options: dict[str, Options] = {"axis": axes, "keepdims": keepdims}
    if ord is None or ord == 2:
        return sqrt(total(squared(x), **options))
    sizes = absolute(x)
    if ord == math.inf:
        return largest(sizes, initial=0, **options)
    if ord == -math.inf:
        return least(sizes, **options)
    if ord == 0:
        return total(convert_element_type(ne(x, 0), sizes.dtype), **options)
    if ord == 1:
        return total(sizes, **options)
    is_number = isinstance(ord, (int, float))
    exponent = cast(ord if is_number else array_argument("linalg.norm", ord), sizes.dtype)
    summed = total(power(sizes, exponent), **options)
    return power(summed, div(1, exponent))


def _matrix_norm(x: Value, ord: UserObject, axes: Axes, keepdims: bool) -> Value:
    rows, columns = axes
    options: dict[str, Options] = {"axis": axes, "keepdims": keepdims}
    if ord in ("fro", "f"):
        return sqrt(total(squared(x), **options))
    choose = {1: largest, -1: least, 2: largest, -2: least, math.inf: largest, -math.inf: least}
    if ord == "nuc" or ord in (2, -2):
        front = [d for d in range(x.ndim) if d not in axes]
        values = svd(transpose(x, (*front, rows, columns)), compute_uv=False)
        pick = total if ord == "nuc" else choose[ord]
        result = pick(values, axis=-1)
    elif ord in (1, -1, math.inf, -math.inf):
        summed_over, chosen = (rows, columns) if ord in (1, -1) else (columns, rows)
        sums = total(absolute(x), axis=summed_over, keepdims=True)
        result = choose[ord](sums, axis=(summed_over, chosen))
    else:
        raise ParameterError(
            f"jnp.linalg.norm: ord={ord!r} is not a norm of matrices.",
            "There are 'fro', 'nuc', 1, -1, 2, -2, inf and -inf.",
        )
    if not keepdims:
        return result
    return reshape(result, tuple(1 if d in axes else e for d, e in enumerate(x.shape)))


def cond(x: ArrayLike, p: ArrayLike | None = None) -> Value:
    """Returns condition numbers: the norm of a matrix times the norm of its inverse.

    Args:
        x: Matrices of shape (..., m, n), square unless p is None, 2 or -2.
        p: Which norm, as in `norm`; by default 2.

    Raises:
        MatrixShapeError: for an array without matrices.
        ParameterError: for an unknown norm.

    >>> import axir.numpy as jnp
    >>> jnp.linalg.cond(jnp.diag(jnp.array([4.0, 2.0])))
    Array(2., dtype=float32)
    """
    (x,) = promote_inexact("linalg.cond", x)
    check_matrix("jnp.linalg.cond", x.type)
    if not min(x.shape[-2:]):
        raise MatrixShapeError(
            f"jnp.linalg.cond is not defined for empty matrices, but got {x.aval}."
        )
    if p in (None, 2, -2):
        values = svd(x, compute_uv=False)
        first, last = largest(values, axis=-1), least(values, axis=-1)
        return div(last, first) if p == -2 else div(first, last)
    return mul(matrix_norm(x, ord=p), matrix_norm(inv(x), ord=p))


def matrix_rank(
    M: ArrayLike, rtol: ArrayLike | None = None, *, hermitian: bool = False, tol: object = None
) -> Value:
    """Returns ranks: how many singular values count as not zero.

    Args:
        M: Matrices of shape (..., m, n).
        rtol: Singular values up to this multiple of the largest count as zero; by default max(m, n)
            times the resolution of the dtype.
        hermitian: Whether the matrices are Hermitian: their eigenvalues are used.
        tol: Singular values up to this count as zero, in place of rtol.

    Raises:
        MatrixShapeError: for an array without matrices.

    >>> import axir.numpy as jnp
    >>> int(jnp.linalg.matrix_rank(jnp.ones((3, 3))))
    1
    """
    (M,) = promote_inexact("linalg.matrix_rank", M)
    if M.ndim < 2:
        return convert_element_type(
            gt(reduce_max(absolute(reshape(M, (M.size,))), (0,)), 0), _default_integer()
        )
    values = absolute(eigh(M)[1]) if hermitian else svd(M, compute_uv=False)
    if not values.size:
        return total(convert_element_type(values, _default_integer()), axis=-1)
    if tol is not None:
        limit = cast(array_argument("linalg.matrix_rank", tol), values.dtype)
    else:
        factor = larger(*M.shape[-2:]) * float(np.finfo(values.dtype).eps) if rtol is None else rtol
        factor = cast(array_argument("linalg.matrix_rank", factor), values.dtype)
        factor = reshape(factor, (*factor.shape, 1)) if factor.ndim else factor
        limit = mul(factor, largest(values, axis=-1, keepdims=True))
    limit = reshape(limit, (*limit.shape, 1)) if tol is not None and limit.ndim else limit
    is_large = gt(values, broadcast_value(limit, values.shape))
    counted = convert_element_type(is_large, _default_integer())
    return reduce_sum(counted, (counted.ndim - 1,))


def _default_integer() -> np.dtype:
    """Returns the default integer dtype."""
    return dtypes.canonicalize_dtype(np.dtype(np.int64))
