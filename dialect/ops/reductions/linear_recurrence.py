"""`linear_recurrence`: h[k] = a[k] h[k-1] + b[k] along an axis, from h[-1] = 0.

Derivatives of running products and similar ops are such sequences. A scan of pairs combines
neighbours in a tree: it needs as many operations, but a program of thousands of lines. A loop is a
kernel of a few lines.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core.errors import DTypeError, ShapeError
from axir.dialect.core.symbolic_zeros import UndefinedPrimal, Zero
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.arithmetic import add, mul
from axir.dialect.ops.elementwise.family import COMPLEX, FLOAT, as_value, full, instantiate
from axir.dialect.ops.elementwise.operand_shapes import align
from axir.dialect.ops.elementwise.samples import edge_rows
from axir.dialect.ops.later_ops import later
from axir.dialect.ops.shape.padding import pad
from axir.dialect.program.dimensions import except_along
from axir.dialect.program.function_rules import LoweringContext
from axir.dialect.program.op_table import declare
from axir.dialect.program.operation import Sample
from axir.dialect.program.rules import (
    BatchAxes,
    MlirValues,
    Operand,
    ResultAxes,
    Results,
    Tangent,
    Tangents,
    TransposeOperand,
    Value,
)

from .folding import accumulator_dtype, canonical_axes, check_axes, check_dtype, spaced_values

_DOMAIN = (*FLOAT, *COMPLEX)


def _infer(a: ShapedArray, b: ShapedArray, *, axis: int, reverse: bool) -> ShapedArray:
    if a.shape != b.shape:
        raise ShapeError(
            f"linear_recurrence: the factors have shape {a.shape}, but the terms {b.shape}.",
            "Broadcast them to one shape.",
        )
    if a.dtype != b.dtype:
        raise DTypeError(
            f"linear_recurrence: the factors are {a.dtype}, but the terms {b.dtype}.",
            "Convert one of them.",
        )
    check_dtype("linear_recurrence", b.dtype, _DOMAIN)
    check_axes("linear_recurrence", (axis,), b.ndim)
    return b.strip_weak_type()


def _evaluate(a: np.ndarray, b: np.ndarray, *, axis: int, reverse: bool) -> np.ndarray:
    dtype, wide = b.dtype, accumulator_dtype(b.dtype)
    factors, terms = [np.moveaxis(x.astype(wide, copy=False), axis, 0) for x in (a, b)]
    if reverse:
        factors, terms = factors[::-1], terms[::-1]
    result = np.empty(terms.shape, wide)
    if terms.ndim == 1:  # additions of Python's numbers are faster than of arrays of one element
        pairs = zip(factors.tolist(), terms.tolist(), strict=True)
        sequence = itertools.accumulate(pairs, lambda h, ab: ab[0] * h + ab[1], initial=0.0)
        result[:] = list(itertools.islice(sequence, 1, None))
    else:
        current = np.zeros(terms.shape[1:], wide)
        for row, factor, term in zip(result, factors, terms, strict=True):
            current = np.add(np.multiply(factor, current, out=row), term, out=row)
    ordered = result[::-1] if reverse else result
    return np.ascontiguousarray(np.moveaxis(ordered, 0, axis)).astype(dtype, copy=False)


def neighbours(x: Value, axis: int, reverse: bool, first: complex) -> Value:
    """Returns for each position the element before it, in the order of the recurrence.

    Args:
        x: The array.
        axis: The axis of the recurrence.
        reverse: Whether the order runs from the end to the start.
        first: The element before the first one.
    """
    edges = (-1, 1, 0) if reverse else (1, -1, 0)
    config = tuple([edges if d == axis else (0, 0, 0) for d in range(x.ndim)])
    return pad(x, full((), first, x.dtype), config)


def _jvp(
    primals: Sequence[Value],
    tangents: Sequence[Tangent],
    out: Value,
    *,
    axis: int,
    reverse: bool,
) -> Tangents:
    (a, _), (of_a, of_b) = primals, tangents
    terms = instantiate(of_b)
    if type(of_a) is not Zero:
        terms = add(terms, mul(of_a, neighbours(out, axis, reverse, 0)))
    return linear_recurrence(a, terms, axis, reverse)


def _transpose(
    ct: Value, a: TransposeOperand, b: TransposeOperand, *, axis: int, reverse: bool
) -> list[Value | None]:
    if isinstance(a, UndefinedPrimal):
        return [None, None]
    return [None, linear_recurrence(neighbours(a, axis, not reverse, 0), ct, axis, not reverse)]


def _batch(
    operands: Sequence[Value], axes: BatchAxes, *, axis: int, reverse: bool
) -> tuple[Results, ResultAxes]:
    aligned, batch_axis = align(operands, axes)
    shifted = axis + (axis >= batch_axis)
    return _primitive.bind(*aligned, axis=shifted, reverse=reverse), batch_axis


def _lower(
    context: LoweringContext, a: ir.Value, b: ir.Value, *, axis: int, reverse: bool
) -> MlirValues:
    kind = context.types_in[1]
    dtype, wide = kind.dtype, accumulator_dtype(kind.dtype)
    if kind.size == 0:
        return b
    order = [axis, *(d for d in range(kind.ndim) if d != axis)]
    xs = [hlo.transpose(x if wide == dtype else hlo.convert(x, wide), order) for x in (a, b)]
    row = tuple(kind.shape[d] for d in order[1:])

    def advance(
        carry: Sequence[ir.Value], slices: Sequence[ir.Value]
    ) -> tuple[list[ir.Value], list[ir.Value]]:
        following = hlo.add(hlo.multiply(slices[0], carry[0]), slices[1])
        return [following], [following]

    loop = later.LoweredScan(
        advance, 1, xs, [ShapedArray(row, wide)], length=kind.shape[axis], reverse=reverse, unroll=1
    )
    stacked = loop.write([hlo.full(0, row, wide)])[1]
    result = hlo.transpose(stacked, [order.index(d) for d in range(kind.ndim)])
    return result if wide == dtype else hlo.convert(result, dtype)


def _samples() -> list[Sample]:
    generator = np.random.default_rng(0)

    def sample(shape: tuple[int, ...], dtype: np.dtype, axis: int, reverse: bool) -> Sample:
        operands = tuple([spaced_values(generator, shape, dtype) for _ in range(2)])
        return Sample(operands, {"axis": axis, "reverse": reverse})

    float32 = np.dtype(np.float32)
    shapes = [(0,), (1,), (6,), (3, 0), (0, 3), (2, 1, 1, 2, 1, 2)]

    def edges(dtype: np.dtype) -> Sample:
        x = edge_rows(dtype)
        return Sample((x, x[:, ::-1]), {"axis": 1, "reverse": False}, is_smooth=False)

    return [
        *map(edges, _DOMAIN),
        *(sample((3, 2, 4), dtype, n % 3, n % 2 == 1) for n, dtype in enumerate(_DOMAIN)),
        *(sample(shape, float32, 0, n % 2 == 0) for n, shape in enumerate(shapes)),
    ]


_primitive = declare(
    "linear_recurrence",
    parameters={"axis": int, "reverse": bool},
    infer=_infer,
    evaluate=_evaluate,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    lower=_lower,
    samples=_samples,
    dimensions=except_along,
)


def linear_recurrence(a: Operand, b: Operand, axis: int = 0, reverse: bool = False) -> Value:
    """Returns h with h[k] = a[k] h[k-1] + b[k] along an axis.

    Args:
        a: Factors, of shape S.
        b: Terms, of shape S; the first h is the first term.
        axis: The axis to run along.
        reverse: Whether to run from its end to its start, with h[k+1] in place of h[k-1].

    Raises:
        AxisError: for an axis out of range.
        DTypeError: for numbers that are not inexact, or of two dtypes.
        ShapeError: if the shapes differ.

    >>> linear_recurrence(np.array([9.0, 2.0, 3.0]), np.array([1.0, 1.0, 1.0]))
    Array([ 1.,  3., 10.], dtype=float32)
    """
    a, b = as_value(a), as_value(b)
    (axis,) = canonical_axes("linear_recurrence", (axis,), b.ndim)
    return _primitive.bind(a, b, axis=axis, reverse=bool(reverse))
