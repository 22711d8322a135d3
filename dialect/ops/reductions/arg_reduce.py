"""Positions of extrema: `argmax` and `argmin`.

The first of equal elements counts; a NaN counts as more extreme than all numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import DTypeLike, Param, Scalar
from axir.dialect.core.errors import DTypeError, ParameterError, ShapeError
from axir.dialect.core.symbolic_dims import check_decided, symbolic_dim_bounds
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.family import FLOAT, ORDERED, as_value, zero_tangent
from axir.dialect.ops.elementwise.samples import edge_rows, random_values
from axir.dialect.program.dimensions import Dimensions, reduced_along
from axir.dialect.program.function_rules import LoweringContext, LowerRule
from axir.dialect.program.op_table import Traceable, declare, traceable
from axir.dialect.program.operation import Sample
from axir.dialect.program.parameters import Ints
from axir.dialect.program.rules import HostArrays, MlirValues, Operand, ResultAxes, Results, Value

from .folding import batch_axes, canonical_axes, check_axes, check_dtype, greatest, least, without


def _infer(
    name: str, x: ShapedArray, *, axes: tuple[int, ...], index_dtype: np.dtype
) -> ShapedArray:
    check_dtype(name, x.dtype, ORDERED)
    check_axes(name, axes, x.ndim)
    if len(axes) != 1:
        raise ParameterError(
            f"{name}: axes={axes} must name one axis.", "Reshape with x.reshape(-1) to search all."
        )
    if not dtypes.is_integer(index_dtype):
        raise DTypeError(
            f"{name}: index_dtype must be an integer type, not {index_dtype}.", "Pass numpy.int32."
        )
    check_decided((x.shape[axes[0]],), 0)
    if x.shape[axes[0]] == 0:
        raise ShapeError(f"{name}: axis {axes[0]} of the operand {x} is empty: it has no extremum.")
    return ShapedArray(without(x.shape, axes), index_dtype)


def _evaluator(search: Callable[..., object]) -> Callable[..., object]:
    def evaluate(x: np.ndarray, *, axes: tuple[int, ...], index_dtype: np.dtype) -> HostArrays:
        if x.dtype == dtypes.bfloat16:  # NumPy's search does not order its NaN
            x = x.astype(np.float32)
        return np.asarray(search(x, axis=axes[0])).astype(index_dtype)

    return evaluate


def _lowering(direction: str, identity: Callable[[np.dtype], Scalar | np.ndarray]) -> LowerRule:
    def lower(
        context: LoweringContext, x: ir.Value, *, axes: tuple[int, ...], index_dtype: np.dtype
    ) -> MlirValues:
        (operand,) = context.types_in
        # Positions are compared, so they must not wrap before the comparison.
        most = symbolic_dim_bounds(operand.shape[axes[0]])[1]
        fits = most - 1 <= np.iinfo(index_dtype).max
        dtype = index_dtype if fits else dtypes.int64
        positions = hlo.iota(operand.shape, axes[0], dtype)
        inits = [hlo.full(identity(operand.dtype), (), operand.dtype), hlo.full(0, (), dtype)]
        body = _prefer(direction, dtypes.is_float(operand.dtype))
        result = hlo.reduce([x, positions], inits, axes, body)[1]
        return result if fits else hlo.convert(result, index_dtype)

    return lower


def _prefer(direction: str, has_nan: bool) -> Callable[..., list[ir.Value]]:
    """Returns the computation that keeps the preferred of two (value, position) pairs."""

    def body(
        lhs: ir.Value, lhs_position: object, rhs: ir.Value, rhs_position: object
    ) -> list[ir.Value]:
        wins = hlo.compare(lhs, rhs, direction)
        ties = hlo.compare(lhs, rhs, "EQ")
        if has_nan:
            lhs_is_nan, rhs_is_nan = (hlo.compare(v, v, "NE") for v in (lhs, rhs))
            wins = hlo.or_(wins, hlo.and_(lhs_is_nan, hlo.not_(rhs_is_nan)))
            ties = hlo.or_(ties, hlo.and_(lhs_is_nan, rhs_is_nan))
        is_first = hlo.and_(ties, hlo.compare(lhs_position, rhs_position, "LT"))
        is_lhs = hlo.or_(wins, is_first)
        return [hlo.select(is_lhs, lhs, rhs), hlo.select(is_lhs, lhs_position, rhs_position)]

    return body


def _samples() -> list[Sample]:
    generator = np.random.default_rng(7)
    variants = [((0,), dtypes.int32), ((1,), dtypes.int32), ((2,), dtypes.uint8)]
    samples = []
    for index, dtype in enumerate(ORDERED):
        x = random_values(generator, (3, 2, 4), dtype, -2, 2)
        axes, index_dtype = variants[index % len(variants)]
        params = {"axes": axes, "index_dtype": index_dtype}
        samples.append(Sample((x,), params, is_smooth=False))
    last = {"axes": (1,), "index_dtype": dtypes.int32}
    for dtype in (*FLOAT, dtypes.int32):
        samples.append(Sample((edge_rows(dtype),), last, is_smooth=False))
    samples.append(Sample((np.zeros((1, 2, 1, 1, 3, 1), np.float32),), {**last, "axes": (4,)}))
    long = np.zeros((1, 300), np.float32)
    long[0, 260] = 1  # a position that int8 does not hold
    samples.append(Sample((long,), {"axes": (1,), "index_dtype": dtypes.int8}, is_smooth=False))
    empty = np.zeros((0, 3), np.float32)
    samples.append(Sample((empty,), last, is_smooth=False))
    return samples


def _dimensions(
    operands: Sequence[ShapedArray],
    results: Sequence[ShapedArray],
    *,
    axes: tuple[int, ...],
    index_dtype: np.dtype,
) -> Dimensions:
    return reduced_along(operands, results, axes, None)


def _declare(
    name: str,
    search: Callable[..., object],
    direction: str,
    identity: Callable[[np.dtype], Scalar | np.ndarray],
    what: str,
) -> Traceable:
    def infer(x: ShapedArray, **params: Param) -> ShapedArray:
        return _infer(name, x, **params)

    def batch(
        operands: Sequence[Value], operand_axes: Any, *, axes: tuple[int, ...], **params: object
    ) -> tuple[Results, ResultAxes]:
        shifted, axis = batch_axes(operand_axes[0], axes)
        return primitive.bind(operands[0], axes=shifted, **params), axis

    primitive = declare(
        name,
        parameters={"axes": Ints, "index_dtype": np.dtype},
        infer=infer,
        evaluate=_evaluator(search),
        jvp=zero_tangent,
        batch=batch,
        lower=_lowering(direction, identity),
        samples=_samples,
        dimensions=_dimensions,
        unsupported={"transpose": "positions do not depend linearly on the elements."},
    )

    def find(
        operand: Operand, axis: int | Sequence[int], index_dtype: DTypeLike = np.int32
    ) -> Value:
        operand = as_value(operand)
        axes = canonical_axes(name, (axis,), operand.ndim)
        dtype = dtypes.canonicalize_dtype(index_dtype)
        return primitive.bind(operand, axes=axes, index_dtype=dtype)

    documentation = f"""Returns the position of the {what} element along an axis.

    The first of equal elements counts, and the first NaN before all numbers.

    Args:
        operand: Array of real numbers or bools.
        axis: The axis to search, which must not be empty.
        index_dtype: Integer dtype of the result.

    Raises:
        ShapeError: if the axis is empty.
        AxisError: if it is out of range.
        DTypeError: for complex operands and for an index dtype that is not an integer type.
    """
    return traceable(find, primitive, documentation)


argmax = _declare("argmax", np.argmax, "GT", least, "largest")
argmin = _declare("argmin", np.argmin, "LT", greatest, "smallest")
