"""`tridiagonal_solve`: equations with a tridiagonal matrix."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.errors import ParameterError, ShapeError, UnsupportedRuleError
from axir.dialect.core.symbolic_zeros import Zero, is_undefined_primal
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.arithmetic import add, div, mul, neg, sub
from axir.dialect.ops.elementwise.comparison import eq, select_n
from axir.dialect.ops.elementwise.family import add_tangents, as_value
from axir.dialect.ops.indexing.static_slicing import slice_in_dim
from axir.dialect.ops.shape.concatenation import concatenate
from axir.dialect.ops.shape.rearranging import reshape
from axir.dialect.program.dimensions import stack_of
from axir.dialect.program.operation import Sample
from axir.dialect.program.primitive import Primitive
from axir.dialect.program.rules import (
    Cotangent,
    Operand,
    OperandTangents,
    Tangent,
    Tangents,
    TransposeOperand,
    Value,
)

from .blas_threads import routine
from .matrices import along_columns, positions
from .rules import DOMAIN, check_dtype, declare_decomposition
from .stacks import (
    repeat,
    rows_at,
    stacked,
    unstacked,
    where,
    with_rows,
)


def tridiagonal_solve(
    dl: Operand, d: Operand, du: Operand, b: Operand, *, perturb_singular: bool = False
) -> Value:
    """Solves a x = b for tridiagonal matrices a.

    Args:
        dl: Diagonals below the main one, of shape (..., n): dl[i] = a[i, i - 1]; dl[0] is not read.
        d: Main diagonals, of shape (..., n).
        du: Diagonals above the main one, of shape (..., n): du[i] = a[i, i + 1]; du[n - 1] is not
            read.
        b: Right-hand sides of shape (..., n, m).
        perturb_singular: Must be False: singular matrices give infinities and NaN.

    Returns:
        x, of the shape of b.

    Raises:
        ShapeError: if the shapes do not fit.
        DTypeError: for dtypes other than float32, float64, complex64 and complex128.
        ParameterError: if `perturb_singular`.

    >>> one, two = np.ones(2, np.float32), np.full(2, 2, np.float32)
    >>> tridiagonal_solve(one, two, one, np.array([[3.0], [3.0]], np.float32))
    Array([[1.],
           [1.]], dtype=float32)
    """
    if perturb_singular:
        raise ParameterError(
            "tridiagonal_solve: perturb_singular=True is for GPUs' libraries only.",
            "Add a small number to d.",
        )
    return _tridiagonal_solve.bind(*(as_value(x) for x in (dl, d, du, b)))


def _infer(dl: ShapedArray, d: ShapedArray, du: ShapedArray, b: ShapedArray) -> ShapedArray:
    check_dtype("tridiagonal_solve", dl, d, du, b)
    if not (dl.shape == d.shape == du.shape == b.shape[:-1]) or d.ndim < 1:
        raise ShapeError(
            "tridiagonal_solve takes three diagonals of shape (..., n) and b of shape (..., n, m), "
            f"but got {dl}, {d}, {du} and {b}."
        )
    return ShapedArray(b.shape, b.dtype)


def _evaluate(dl: np.ndarray, d: np.ndarray, du: np.ndarray, b: np.ndarray) -> np.ndarray:
    result = np.empty(b.shape, b.dtype)
    if not b.size:
        return result
    for place in np.ndindex(*d.shape[:-1]):
        if d.shape[-1] == 1:
            result[place] = b[place] / d[place][:, None]
            continue
        *_, x, failure = routine("gtsv", b.dtype)(dl[place][1:], d[place], du[place][:-1], b[place])
        result[place] = x if not failure else np.nan
    return result


def _substitute(dl: Value, d: Value, du: Value, b: Value) -> Value:
    """Thomas's algorithm: Golub & Van Loan (2013), 4.3.6."""
    batch, size = b.shape[:-2], b.shape[-2]
    below, main, above = (stacked(reshape(x, (*x.shape, 1))) for x in (dl, d, du))
    right = stacked(b)

    def forward(i: Value, above: Value, right: Value) -> list[Value]:
        before = select_n(eq(i, 0), sub(i, 1), i)
        lower = where(eq(i, 0), 0, rows_at(below, i, 1))
        pivot = sub(rows_at(main, i, 1), mul(lower, rows_at(above, before, 1)))
        row = sub(rows_at(right, i, 1), mul(lower, rows_at(right, before, 1)))
        above = with_rows(above, div(rows_at(above, i, 1), pivot), i)
        return [above, with_rows(right, div(row, pivot), i)]

    above, right = repeat(size, forward, above, right)

    def backward(index: Value, x: Value) -> list[Value]:
        i = sub(np.int32(size - 2), index)
        row, after = rows_at(x, i, 1), rows_at(x, add(i, 1), 1)
        return [with_rows(x, sub(row, mul(rows_at(above, i, 1), after)), i)]

    if size > 1:
        (right,) = repeat(size - 1, backward, right)
    return unstacked(right, batch)


def _product(dl: Tangent, d: Tangent, du: Tangent, x: Value) -> Value | None:
    """Multiplies a tridiagonal matrix by x; its diagonals may be symbolic zeros."""
    rows = positions(x, x.shape, x.ndim - 2)
    size = x.shape[-2]
    total: Value | None = None
    if type(d) is not Zero:
        total = add_tangents(total, mul(along_columns(d, x.shape), x))
    if type(dl) is not Zero:
        lower = select_n(eq(rows, 0), along_columns(dl, x.shape), 0)
        total = add_tangents(total, mul(lower, _shifted(x, -1)))
    if type(du) is not Zero:
        upper = select_n(eq(rows, size - 1), along_columns(du, x.shape), 0)
        total = add_tangents(total, mul(upper, _shifted(x, 1)))
    return total


def _shifted(x: Value, step: int, axis: int = -2) -> Value:
    """Returns x[..., i + step, :], with wrap-around at the ends."""
    axis += x.ndim
    size = x.shape[axis]
    cut = step % max(size, 1)
    parts = [slice_in_dim(x, cut, size, axis=axis), slice_in_dim(x, 0, cut, axis=axis)]
    return concatenate(parts, axis)


def _jvp(primals: Sequence[Value], tangents: OperandTangents, x: Value) -> Tangents:
    dl, d, du, change = tangents
    product = _product(dl, d, du, x)
    if product is not None:
        change = add_tangents(change, neg(product))
    if type(change) is Zero:
        return Zero(x.aval.to_tangent_aval())
    return _tridiagonal_solve.bind(*primals[:3], change)


def _transpose(
    ct: Value, dl: Value, d: Value, du: Value, b: TransposeOperand
) -> Sequence[Cotangent | None]:
    if any(is_undefined_primal(x) for x in (dl, d, du)):
        raise UnsupportedRuleError("tridiagonal_solve is linear in b only.")
    below, above = _shifted(du, -1, -1), _shifted(dl, 1, -1)
    return [None, None, None, _tridiagonal_solve.bind(below, d, above, ct)]


def _samples() -> list[Sample]:
    generator = np.random.default_rng(32)
    samples = []
    for index, shape in enumerate([(4, 2), (2, 3, 2), (5, 1), (1, 2), (0, 2), (3, 0)]):
        dtype = DOMAIN[index % 4]

        def draw(shape: tuple[int, ...], dtype: np.dtype = dtype) -> np.ndarray:
            x = generator.uniform(-1, 1, shape)
            if dtypes.is_complex(dtype):
                x = x + 1j * generator.uniform(-1, 1, shape)
            return x.astype(dtype)

        diagonals = [draw(shape[:-1]) for _ in range(3)]
        diagonals[1] = diagonals[1] + dtype.type(4)
        samples.append(Sample((*diagonals, draw(shape)), tolerance=128.0))
    return samples


_tridiagonal_solve: Primitive = declare_decomposition(
    "tridiagonal_solve",
    dimensions=stack_of(1),
    infer=_infer,
    evaluate=_evaluate,
    jvp=_jvp,
    transpose=_transpose,
    portable=_substitute,
    samples=_samples,
)
