"""Reductions of sliding windows by one operation: `reduce_window_sum`, `_max` and `_min`.

Elsewhere: reductions of windows by a function (`reduce_window_by_function.py`), and the windows
themselves (`sliding_windows.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Param, UserObject
from axir.dialect.core.symbolic_zeros import Zero
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.family import NUMBER, ORDERED, as_value, full
from axir.dialect.ops.elementwise.samples import edge_rows
from axir.dialect.ops.reductions.folding import (
    accumulator_dtype,
    check_dtype,
    greatest,
    least,
    spaced_values,
)
from axir.dialect.ops.shape.movement import SMOOTH
from axir.dialect.ops.shape.padding import pad
from axir.dialect.ops.shape.rearranging import moveaxis
from axir.dialect.program.function_rules import LoweringContext, LowerRule
from axir.dialect.program.op_table import Traceable, declare, traceable
from axir.dialect.program.operation import Sample
from axir.dialect.program.primitive import Primitive
from axir.dialect.program.rules import (
    BatchAxes,
    MlirValues,
    Operand,
    Rule,
    Tangent,
    Tangents,
    TransposeOperand,
    Value,
)

from .select_and_scatter import select_and_gather_add
from .sliding_windows import (
    WINDOW_PARAMETERS,
    Window,
    check_window,
    cut_dimensions,
    cut_numpy,
    fold_windows,
    lower_windows,
    pad_numpy,
    result_shape,
    window_of,
)

Identity = Callable[[np.dtype], Any]


def _evaluator(ufunc: np.ufunc, identity: Identity) -> Callable[..., np.ndarray]:
    def combine(lhs: list[np.ndarray], rhs: list[np.ndarray]) -> list[np.ndarray]:
        return [ufunc(lhs[0], rhs[0])]

    def evaluate(x: np.ndarray, **params: Param) -> np.ndarray:
        window = Window(**params)
        counts = result_shape(x.shape, window)
        if 0 in counts or not x.size:
            return np.full(counts, identity(x.dtype)).astype(x.dtype)
        wide = accumulator_dtype(x.dtype)
        padded = pad_numpy(x if wide is x.dtype else x.astype(wide), identity(wide), window)
        folded = fold_windows(combine, [padded], window, counts, cut_numpy)[0]
        # Sums begin at zero, so none is -0.0.
        return folded + identity(wide) if ufunc is np.add else folded

    return evaluate


def _lowering(build: Callable[..., object], identity: Identity) -> LowerRule:
    def lower(context: LoweringContext, x: ir.Value, **params: Param) -> MlirValues:
        (operand,), (out,) = context.types_in, context.types_out
        dtype, wide = operand.dtype, accumulator_dtype(operand.dtype)
        if not out.size or not operand.size:
            return hlo.full(identity(dtype), out.shape, dtype)
        value = x if wide == dtype else hlo.convert(x, wide)
        init = hlo.full(identity(wide), (), wide)
        (result,) = lower_windows([value], [init], Window(**params), build)
        return result if wide == dtype else hlo.convert(result, dtype)

    return lower


# Differentiation -------------------------------------------------------------------------------


def _sum_jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], out: Value, **params: object
) -> Tangents:
    if type(tangents[0]) is Zero:
        return Zero(out.aval.to_tangent_aval())
    return reduce_window_sum.primitive.bind(tangents[0], **params)


def _sum_transpose(cotangent: Value, x: TransposeOperand, **params: Param) -> list[Value]:
    """Sums for each element the cotangents of the windows that contain it.

    These cotangents form a window, too. With s - 1 holes between the cotangents for a stride of s,
    the windows that contain an element are the window's dilation apart.
    """
    window = Window(**params)
    if not cotangent.size or not x.aval.size:
        return [full(x.shape, 0, cotangent.dtype)]
    config = []
    for extent, count, size, stride, (low, _), base, dilation in zip(
        x.shape, cotangent.shape, *window, strict=True
    ):
        span = (size - 1) * dilation
        before = span - low
        after = (extent - 1) * base + 1 + span - before - ((count - 1) * stride + 1)
        config.append((before, after, stride - 1))
    padded = pad(cotangent, full((), 0, cotangent.dtype), config)
    return [
        reduce_window_sum(
            padded,
            window.window_dimensions,
            window.base_dilation,
            ((0, 0),) * x.aval.ndim,
            None,
            window.window_dilation,
        )
    ]


def _extremum_jvp(select: str) -> Callable[..., object]:
    def jvp(
        primals: Sequence[Value], tangents: Sequence[Tangent], out: Value, **params: Param
    ) -> Tangents:
        if type(tangents[0]) is Zero:
            return Zero(out.aval.to_tangent_aval())
        return select_and_gather_add(tangents[0], primals[0], select, *Window(**params))

    return jvp


# Samples ---------------------------------------------------------------------------------------

# Shape of the operand, then the fields of its windows.
VARIANTS: tuple[tuple, ...] = (
    ((6,), (3,), (1,), ((0, 0),), (1,), (1,)),
    ((3, 5), (2, 3), (1, 2), ((1, 0), (2, 1)), (1, 1), (1, 1)),
    ((5, 4), (2, 2), (2, 1), ((0, 1), (1, 2)), (2, 1), (1, 2)),
    ((7,), (2,), (3,), ((-1, 2),), (3,), (4,)),
    ((2, 9), (1, 7), (1, 1), ((0, 0), (3, -1)), (1, 1), (1, 1)),
)
_EDGES: tuple[tuple, ...] = (
    ((), (), (), (), (), ()),
    ((0, 3), (1, 2), (1, 1), ((1, 1), (0, 0)), (1, 1), (1, 1)),
    ((2,), (3,), (1,), ((0, 0),), (1,), (1,)),
    ((3,), (1,), (1,), ((0, 0),), (1,), (1,)),
    ((4,), (2,), (1,), ((-3, -2),), (1,), (1,)),
    ((3,), (2,), (2,), ((5, 4),), (1,), (1,)),
    ((1, 2, 1, 1, 3, 1), (1, 2, 1, 1, 2, 1), *[(1,) * 6, ((0, 0),) * 6, (1,) * 6, (1,) * 6]),
    ((2, 4, 3), (2, 2, 1), (1, 2, 1), ((0, 0), (1, 1), (0, -1)), (1, 1, 1), (1, 1, 1)),
)


def _samples(domain: Sequence[np.dtype]) -> list[Sample]:
    generator = np.random.default_rng(len(domain))
    leader = dtypes.float32
    cases = [(leader, variant) for variant in (*VARIANTS, *_EDGES)]
    others = [dtype for dtype in domain if dtype != leader]
    plain = [dtype for dtype in others if dtype in SMOOTH or dtype == dtypes.int8]
    cases += [(d, VARIANTS[i % len(VARIANTS)]) for i, d in enumerate(plain)]
    samples = [
        Sample((spaced_values(generator, shape, dtype),), Window(*fields)._asdict())
        for dtype, (shape, *fields) in cases
    ]
    fields = [((3,), (1,), ((1, 2),), (1,), (1,)), ((2,), (2,), ((0, 0),), (2,), (3,))]
    for index, dtype in enumerate(others):
        params = Window(*fields[index % 2])._asdict()
        samples.append(Sample((edge_rows(dtype).ravel(),), params, is_smooth=False))
    return samples


# Declarations ----------------------------------------------------------------------------------


def _declare(
    name: str,
    ufunc: np.ufunc,
    build: Callable[..., object],
    identity: Identity,
    domain: Sequence[np.dtype],
    what: str,
    **rules: Rule,
) -> Traceable:
    """Declares a reduction of windows and returns its traceable function."""

    def infer(x: ShapedArray, **params: Param) -> ShapedArray:
        window = Window(**params)
        check_dtype(name, x.dtype, domain)
        check_window(name, x.ndim, window)
        return ShapedArray(result_shape(x.shape, window), x.dtype, x.weak_type)

    def batch(operands: Sequence[Value], axes: BatchAxes, **params: Param) -> tuple[Value, int]:
        window = Window(**params).batched()
        return primitive.bind(moveaxis(operands[0], axes[0], 0), **window._asdict()), 0

    primitive: Primitive = declare(
        name,
        parameters=WINDOW_PARAMETERS,
        infer=infer,
        evaluate=_evaluator(ufunc, identity),
        batch=batch,
        lower=_lowering(build, identity),
        samples=lambda: _samples(domain),
        dimensions=cut_dimensions,
        **rules,
    )

    def apply(
        operand: Operand,
        window_dimensions: Sequence[int],
        window_strides: Sequence[int] | None = None,
        padding: UserObject = "VALID",
        base_dilation: Sequence[int] | None = None,
        window_dilation: Sequence[int] | None = None,
    ) -> Value:
        operand = as_value(operand)
        window = window_of(
            name, operand.shape, window_dimensions, window_strides, padding, base_dilation,
            window_dilation,
        )  # fmt: skip
        return primitive.bind(operand, **window._asdict())

    documentation = f"""Returns {what} of the elements of each window.

    Places that hold no element, in the padding and between dilated elements, take no part. Sums of
    half precision accumulate in float32; those of integers wrap. Arguments as of `reduce_window`.

    Raises:
        ShapeError: for windows of another rank than the operand, and entries that are not positive.
        DTypeError: for a dtype without the operation.
    """
    return traceable(apply, primitive, documentation)


_NOT_LINEAR = {"transpose": "it is not linear in its operand; differentiate it with jvp first."}

reduce_window_sum = _declare(
    "reduce_window_sum",
    np.add,
    hlo.add,
    lambda dtype: 0,
    NUMBER,
    "the sum",
    jvp=_sum_jvp,
    transpose=_sum_transpose,
)
reduce_window_max = _declare(
    "reduce_window_max",
    np.maximum,
    hlo.maximum,
    least,
    ORDERED,
    "the largest (NaN if there is one)",
    jvp=_extremum_jvp("ge"),
    unsupported=_NOT_LINEAR,
)
reduce_window_min = _declare(
    "reduce_window_min",
    np.minimum,
    hlo.minimum,
    greatest,
    ORDERED,
    "the smallest (NaN if there is one)",
    jvp=_extremum_jvp("le"),
    unsupported=_NOT_LINEAR,
)
