"""Functions of matrices: `expm`, `sqrtm`, `funm` ... (found in `axir.scipy.linalg`)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np

from axir._transforms.autodiff import jvp
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import ParameterError
from axir.dialect.ops.control_flow.flat_loops import fori_values
from axir.dialect.ops.elementwise.arithmetic import abs as absolute
from axir.dialect.ops.elementwise.arithmetic import add, ceil, div, max, min, mul, sub
from axir.dialect.ops.elementwise.comparison import and_, eq, gt, select_n
from axir.dialect.ops.elementwise.conversion import convert_element_type, stop_gradient
from axir.dialect.ops.elementwise.transcendental import exp2, log, sqrt
from axir.dialect.ops.indexing.dynamic_slicing import dynamic_update_slice
from axir.dialect.ops.linalg.lu_solve import solve as solve_square
from axir.dialect.ops.linalg.matrices import (
    adjoint,
    diagonal,
    diagonal_mask,
    filled,
    identity,
    matmul,
    part,
    positions,
    to_dtype,
)
from axir.dialect.ops.linalg.rules import check_matrix
from axir.dialect.ops.linalg.schur import schur
from axir.dialect.ops.linalg.stacks import columns_at, rows_at, spread, with_columns
from axir.dialect.ops.linalg.triangular_solve import triangular_solve
from axir.dialect.ops.reductions.reduce import reduce_max, reduce_sum
from axir.dialect.ops.shape.rearranging import reshape
from axir.dialect.program.rules import Value
from axir.lax.control_flow import fori_loop
from axir.numpy._arguments.promotion import promote_inexact

__all__ = ["expm", "expm_frechet", "funm", "sqrtm"]


# Al-Mohy & Higham (2009), SIAM J. Matrix Anal. Appl. 31; Higham (2005), SIAM J. Matrix Anal. Appl.
# 26, table 2.3: up to which 1-norm the Pade approximant of a degree is exact to the resolution.
_LIMITS = {
    np.dtype(np.float32): ((3, 0.4258730016922831), (5, 1.880152677804762), (7, 3.925724783138660)),
    np.dtype(np.float64): (
        (3, 0.01495585217958292),
        (5, 0.2539398330063230),
        (7, 0.9504178996162932),
        (9, 2.097847961257068),
        (13, 5.371920351148152),
    ),
}


def _coefficients(degree: int) -> list[float]:
    """Returns the coefficients of the numerator of the diagonal Pade approximant of exp."""
    result = [1.0]
    for k in range(1, degree + 1):
        result.append(result[-1] * (degree - k + 1) / (k * (2 * degree - k + 1)))
    return result


def _polynomial(weights: Sequence[float], powers: Sequence[Value]) -> Value:
    """Returns the sum of weights times even powers; the powers 0, 2, 4 and 6 are given."""
    total = _combination(weights[:4], powers)
    if len(weights) > 4:
        total = add(total, matmul(powers[3], _combination(weights[4:], powers[1:])))
    return total


def _combination(weights: Sequence[float], powers: Sequence[Value]) -> Value:
    terms = [mul(w, x) for w, x in zip(weights, powers, strict=False)]
    return functools.reduce(add, terms)


def expm(A: ArrayLike, *, upper_triangular: bool = False, max_squarings: int = 16) -> Value:
    """Returns exponentials of matrices, by scaling, Pade approximation and squaring.

    Al-Mohy & Higham (2009), SIAM J. Matrix Anal. Appl. 31, 970-989.

    Args:
        A: Square matrices of shape (..., n, n).
        upper_triangular: Whether they are upper triangles, so that the equations are solved by
            substitution.
        max_squarings: NaN results where more are needed.

    Returns:
        Matrices of the shape of A.

    Raises:
        ShapeError: unless the matrices are square.

    >>> import axir.numpy as jnp
    >>> from axir.scipy.linalg import expm
    >>> expm(jnp.zeros((2, 2)))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    (a,) = promote_inexact("scipy.linalg.expm", A)
    check_matrix("scipy.linalg.expm", a.type, is_square=True)
    if not a.size:
        return a
    limits = _LIMITS[dtypes.real_dtype(a.dtype)]
    norm = reduce_max(reduce_sum(absolute(a), (a.ndim - 2,)), (a.ndim - 2,))
    count = _squarings(norm, limits[-1][1])
    is_possible = gt(max_squarings + 0.5, count)
    scale = exp2(mul(-1.0, count))
    a = mul(a, to_dtype(_everywhere(scale, a), a.dtype))
    odd, even = _approximant(a, mul(norm, scale), limits)
    numerator, denominator = add(even, odd), sub(even, odd)
    if upper_triangular:
        result = triangular_solve(denominator, numerator, left_side=True)
    else:
        result = solve_square(denominator, numerator)
    result = _squared_repeatedly(result, count, max_squarings)
    nan = filled(result, result.shape, np.nan)
    return select_n(_everywhere(is_possible, result), nan, result)


def _squarings(norm: Value, limit: float) -> Value:
    ratio = max(div(stop_gradient(norm), limit), 1e-30)
    return max(ceil(div(log(ratio), float(np.log(2.0)))), 0.0)


def _approximant(a: Value, norm: Value, limits: UserObject) -> tuple[Value, Value]:
    """Returns odd and even part of the numerator of an approximant that is exact enough.

    For each matrix of a stack that is the one of the least degree.
    """
    square = matmul(a, a)
    fourth = matmul(square, square)
    powers = [identity(a, a.shape), square, fourth, matmul(fourth, square)]
    odd, even = (_polynomial(_coefficients(limits[-1][0])[i::2], powers) for i in (1, 0))
    for degree, limit in reversed(limits[:-1]):
        weights = _coefficients(degree)
        needs_more = _everywhere(gt(norm, limit), a)
        odd = select_n(needs_more, _polynomial(weights[1::2], powers), odd)
        even = select_n(needs_more, _polynomial(weights[::2], powers), even)
    return matmul(a, odd), even


def _everywhere(x: Value, like: Value) -> Value:
    return spread(reshape(x, (*x.shape, 1, 1)), like.shape)


def _squared_repeatedly(x: Value, count: Value, most: int) -> Value:
    def step(i: Value, x: Value) -> Value:
        goes_on = gt(count, convert_element_type(i, count.dtype))
        return select_n(_everywhere(goes_on, x), x, matmul(x, x))

    return fori_loop(0, most, step, x)


def expm_frechet(
    A: ArrayLike, E: object, *, method: str | None = None, compute_expm: bool = True
) -> UserObject:
    """Returns derivatives of the exponential of matrices A in directions E.

    Args:
        A, E: Square matrices of equal shape (..., n, n).
        method: None, 'SPS' or 'blockEnlarge', which give the same.
        compute_expm: Whether the exponential is returned as well.

    Returns:
        expm(A) and the derivative, or only the derivative.

    Raises:
        ShapeError: unless the matrices are square and of equal shape.
        ParameterError: for another method.

    >>> import axir.numpy as jnp
    >>> from axir.scipy.linalg import expm_frechet
    >>> expm_frechet(jnp.zeros((1, 1)), jnp.ones((1, 1)), compute_expm=False)
    Array([[1.]], dtype=float32)
    """
    if method not in (None, "SPS", "blockEnlarge"):
        raise ParameterError(
            f"scipy.linalg.expm_frechet: method={method!r} must be None, 'SPS' or 'blockEnlarge'."
        )
    a, e = promote_inexact("scipy.linalg.expm_frechet", A, E)
    value, derivative = jvp(expm, (a,), (e,))
    return (value, derivative) if compute_expm else derivative


# By the Schur form -----------------------------------------------------------------------------


def _complex_schur(a: Value) -> tuple[Value, Value]:
    dtype = dtypes.complex64 if a.dtype == dtypes.float32 else dtypes.complex128
    a = a if dtypes.is_complex(a.dtype) else to_dtype(a, dtype)
    triangle, vectors = schur(a)
    return triangle, vectors


def sqrtm(A: ArrayLike, blocksize: int = 1) -> Value:
    """Returns square roots of matrices, on the CPU only.

    Bjorck & Hammarling (1983), Linear Algebra Appl. 52-53: column by column from the Schur form.

    Args:
        A: A square matrix, or a stack of them.
        blocksize: Ignored.

    Returns:
        Complex matrices of the shape of A.

    Raises:
        ShapeError: unless the matrices are square.

    >>> import axir.numpy as jnp
    >>> from axir.scipy.linalg import sqrtm
    >>> sqrtm(jnp.diag(jnp.array([4.0, 9.0]))).real
    Array([[2., 0.],
           [0., 3.]], dtype=float32)
    """
    (a,) = promote_inexact("scipy.linalg.sqrtm", A)
    check_matrix("scipy.linalg.sqrtm", a.type, is_square=True)
    triangle, vectors = _complex_schur(a)
    batch, size = triangle.shape[:-2], triangle.shape[-1]
    t = reshape(triangle, (int(np.prod(batch)), size, size))
    roots = sqrt(diagonal(t))
    by_row = spread(reshape(roots, (*roots.shape, 1)), t.shape)
    start = select_n(diagonal_mask(t, t.shape), mul(t, 0), by_row)

    def column(j: Value, r: Value) -> list[Value]:
        return [_root_column(t, r, roots, j)]

    root = fori_values(0, size, column, [start])[0] if size else start
    root = reshape(root, triangle.shape)
    return matmul(matmul(vectors, root), adjoint(vectors))


def _root_column(t: Value, r: Value, roots: Value, j: Value) -> Value:
    """Fills column j above the diagonal from below upwards: (r_ii + r_jj) r_ij = t_ij - sum."""
    size = t.shape[1]
    target = columns_at(t, j, 1)
    main = columns_at(reshape(roots, (roots.shape[0], 1, size)), j, 1)

    def row(k: Value, filled_so_far: Value) -> list[Value]:
        i = sub(sub(j, 1), k)
        is_above = gt(add(i, 1), 0)
        place = max(i, 0)
        entries = rows_at(r, place, 1)
        columns = positions(r, entries.shape, 2)
        inner = select_n(gt(columns, place), 0, entries)
        total = matmul(inner, select_n(_is_before(filled_so_far, j), 0, filled_so_far))
        own = columns_at(entries, place, 1)
        value = div(sub(rows_at(target, place, 1), total), add(own, main))
        rows = positions(r, filled_so_far.shape, 1)
        is_here = and_(eq(rows, place), spread(reshape(is_above, (1, 1, 1)), rows.shape))
        return [select_n(is_here, filled_so_far, spread(value, filled_so_far.shape))]

    filled_column = fori_values(0, size, row, [columns_at(r, j, 1)])[0]
    return with_columns(r, filled_column, j)


def _is_before(x: Value, j: Value) -> Value:
    return gt(j, positions(x, x.shape, 1))


def funm(A: ArrayLike, func: Callable[[UserObject], UserObject], disp: bool = True) -> UserObject:
    """Returns functions of matrices, on the CPU only.

    Parlett's recurrence on the Schur form: Golub & Van Loan (2013), Matrix Computations, 9.1.4.
    Eigenvalues that are equal or nearly so make it inaccurate.

    Args:
        A: A square matrix.
        func: Function of complex arrays, elementwise.
        disp: Whether only the result is returned, else an estimate of its error as well.

    Returns:
        A complex matrix.

    Raises:
        ShapeError: unless the matrix is square.

    >>> import axir.numpy as jnp
    >>> from axir.scipy.linalg import funm
    >>> funm(jnp.diag(jnp.array([1.0, 2.0])), lambda x: x * x).real
    Array([[1., 0.],
           [0., 4.]], dtype=float32)
    """
    (a,) = promote_inexact("scipy.linalg.funm", A)
    check_matrix("scipy.linalg.funm", a.type, is_square=True)
    t, vectors = _complex_schur(a)
    size = t.shape[-1]
    values = func(diagonal(t))
    f = mul(identity(t, t.shape), spread(reshape(values, (size, 1)), t.shape))
    least: UserObject = None
    for offset in range(1, size):
        for i in range(size - offset):
            f, gap = _parlett_entry(t, f, i, i + offset)
            least = gap if least is None else min(least, gap)
    result = matmul(matmul(vectors, f), adjoint(vectors))
    if disp:
        return result
    error = div(float(np.finfo(dtypes.real_dtype(t.dtype)).eps) * size, least) if size > 1 else 0.0
    return result, error


def _parlett_entry(t: Value, f: Value, i: int, j: int) -> tuple[Value, Value]:
    def entry(x: Value, row: int, column: int) -> Value:
        return part(x, (row, row + 1), (column, column + 1))

    total = mul(entry(t, i, j), sub(entry(f, j, j), entry(f, i, i)))
    if j - i > 1:
        inner = (i + 1, j)
        total = add(total, matmul(part(t, (i, i + 1), inner), part(f, inner, (j, j + 1))))
        total = sub(total, matmul(part(f, (i, i + 1), inner), part(t, inner, (j, j + 1))))
    gap = sub(entry(t, j, j), entry(t, i, i))
    value = div(total, gap)
    return _with_entry(f, value, i, j), reduce_max(absolute(gap), (0, 1))


def _with_entry(f: Value, value: Value, i: int, j: int) -> Value:
    """Returns a matrix in which one entry is replaced."""
    return dynamic_update_slice(f, value, (i, j))
