"""One element of each window, chosen by comparing: `select_and_gather_add` and its transpose.

These ops are the derivatives of `reduce_window_max` and `reduce_window_min`: the tangent of a
window's extremum is the tangent of the chosen element. That is the first of the largest (smallest)
elements, and a NaN comes before all numbers. Elsewhere: choosing and scattering by functions
(`select_and_scatter_by_function.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import DTypeLike, Param, Params
from axir.dialect.core.errors import DTypeError, ParameterError, ShapeError
from axir.dialect.core.symbolic_zeros import is_undefined_primal
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.comparison import and_, ge, le, lt, ne, or_, select_n
from axir.dialect.ops.elementwise.family import FLOAT, ORDERED, full
from axir.dialect.ops.elementwise.samples import edge_rows, random_values
from axir.dialect.ops.indexing.scatter import ScatterDimensionNumbers, scatter_add
from axir.dialect.ops.reductions.folding import accumulator_dtype, check_dtype, spaced_values
from axir.dialect.ops.shape.movement import apply_to_tangent, batch_size
from axir.dialect.ops.shape.rearranging import move_batch_axis, reshape
from axir.dialect.program.function_rules import LoweringContext
from axir.dialect.program.op_table import Traceable, declare
from axir.dialect.program.operation import Sample
from axir.dialect.program.rules import (
    BatchAxes,
    Cotangent,
    MlirValues,
    Tangent,
    TransposeOperand,
    Value,
)

from .sliding_windows import (
    UNDILATED_PARAMETERS,
    WINDOW_PARAMETERS,
    Window,
    check_window,
    cut_dimensions,
    cut_numpy,
    cut_value,
    fold_windows,
    lower_windows,
    pad_numpy,
    pad_value,
    padded_positions,
    positions,
    result_shape,
)

_COMPARE: dict[str, tuple[np.ufunc, Traceable, str]] = {
    "ge": (np.greater_equal, ge, "GE"),
    "le": (np.less_equal, le, "LE"),
}
NOWHERE = -1
"""The position where a window contains no element."""


def _check_select(name: str, select_prim: str) -> None:
    if select_prim not in _COMPARE:
        raise ParameterError(f"{name}: select_prim must be 'ge' or 'le', not {select_prim!r}.")


def undilated(
    window_dimensions: tuple[int, ...],
    window_strides: tuple[int, ...],
    padding: tuple[tuple[int, int], ...],
) -> Window:
    """Returns windows without dilation; scatters support only these."""
    ones = (1,) * len(window_dimensions)
    return Window(window_dimensions, window_strides, padding, ones, ones)


# Positions of the chosen elements --------------------------------------------------------------


def chosen_positions(operand: np.ndarray, select_prim: str, window: Window) -> np.ndarray:
    """Returns the row-major number of the element chosen in each window, or `NOWHERE`."""
    counts = result_shape(operand.shape, window)
    if 0 in counts or not operand.size:
        return np.full(counts, NOWHERE, np.int64)
    compare, has_holes = _COMPARE[select_prim][0], window.has_holes
    has_nan = dtypes.is_float(operand.dtype)

    def combine(lhs: list[np.ndarray], rhs: list[np.ndarray]) -> list[np.ndarray]:
        (a, first), (b, second) = lhs, rhs
        keeps = compare(a, b)
        if has_nan:
            keeps |= a != a
        if has_holes:
            keeps |= second < 0
            keeps &= first >= 0
        return [np.where(keeps, a, b), np.where(keeps, first, second)]

    wide = operand.astype(accumulator_dtype(operand.dtype), copy=False)
    arrays = [pad_numpy(wide, 0, window), pad_numpy(positions(operand.shape), NOWHERE, window)]
    return fold_windows(combine, arrays, window, counts, cut_numpy)[1]


def _chosen_values(operand: Value, select_prim: str, window: Window) -> Value:
    """Returns the same positions as a value, by traceable functions."""
    compare = _COMPARE[select_prim][1]

    def combine(lhs: list[Value], rhs: list[Value]) -> list[Value]:
        (a, first), (b, second) = lhs, rhs
        zero = full((), 0, first.dtype)
        keeps = or_(compare(a, b), or_(ne(a, a), lt(second, zero)))
        keeps = and_(keeps, ge(first, zero))
        return [select_n(keeps, b, a), select_n(keeps, second, first)]

    counts = result_shape(operand.shape, window)
    arrays = [pad_value(operand, 0, window), padded_positions(operand.shape, window)]
    return fold_windows(combine, arrays, window, counts, cut_value)[1]


# select_and_gather_add -------------------------------------------------------------------------


def select_and_gather_add(
    tangents: Value,
    operand: Value,
    select_prim: str,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    base_dilation: Sequence[int],
    window_dilation: Sequence[int],
) -> Value:
    """Reads an array at the positions of the extrema of another array's windows.

    Args:
        tangents: The array that is read.
        operand: The array with the windows to search, of the same shape.
        select_prim: 'ge' for the first of the largest elements, 'le' of the smallest.
        window_dimensions: As in `reduce_window`, like the arguments that follow.
        window_strides: See there.
        padding: Pairs.
        base_dilation: See there.
        window_dilation: See there.

    Returns:
        One element of `tangents` for each window, 0 where the window contains no element.

    >>> import numpy as np
    >>> x, t = np.array([3, 1, 2, 5], np.float32), np.arange(4, dtype=np.float32)
    >>> select_and_gather_add(t, x, "ge", (2,), (2,), ((0, 0),), (1,), (1,))
    Array([0., 3.], dtype=float32)
    """
    return _select_and_gather_add.bind(
        tangents,
        operand,
        select_prim=select_prim,
        window_dimensions=window_dimensions,
        window_strides=window_strides,
        padding=padding,
        base_dilation=base_dilation,
        window_dilation=window_dilation,
    )


def _infer_gather(
    tangents: ShapedArray, operand: ShapedArray, *, select_prim: str, **params: Param
) -> ShapedArray:
    name, window = "select_and_gather_add", Window(**params)
    _check_select(name, select_prim)
    check_dtype(name, operand.dtype, ORDERED)
    if tangents.shape != operand.shape:
        raise ShapeError(f"{name}: {tangents} and {operand} must be equal in shape.")
    check_window(name, operand.ndim, window)
    return ShapedArray(result_shape(operand.shape, window), tangents.dtype, tangents.weak_type)


def _evaluate_gather(
    tangents: np.ndarray, operand: np.ndarray, *, select_prim: str, **params: Param
) -> np.ndarray:
    window = Window(**params)
    where = chosen_positions(operand, select_prim, window)
    if not operand.size:
        return np.zeros(where.shape, tangents.dtype)
    found = tangents.reshape(-1)[where]
    return np.where(where < 0, np.zeros((), tangents.dtype), found) if window.has_holes else found


def _transpose_gather(
    cotangent: Value,
    tangents: Sequence[Tangent],
    operand: Value,
    *,
    select_prim: str,
    **params: Param,
) -> Sequence[Cotangent | None]:
    if not is_undefined_primal(tangents):
        return [None, None]
    window = Window(**params)
    if not window.is_dilated:
        fields = (window.window_dimensions, window.window_strides, window.padding)
        return [select_and_scatter_add(cotangent, operand, select_prim, *fields), None]
    zeros = full((operand.size,), 0, cotangent.dtype)
    if not cotangent.size or not operand.size:
        return [reshape(zeros, operand.shape), None]
    where = _chosen_values(operand, select_prim, window)
    numbers = ScatterDimensionNumbers((), (0,), (0,))
    flat = scatter_add(
        zeros,
        reshape(where, (where.size, 1)),
        reshape(cotangent, (cotangent.size,)),
        numbers,
        mode="drop",
    )
    return [reshape(flat, operand.shape), None]


def _batch_gather(
    operands: Sequence[Value], axes: BatchAxes, *, select_prim: str, **params: Param
) -> tuple[Value, int]:
    size = batch_size(operands, axes)
    tangents, x = (move_batch_axis(x, a, size, 0) for x, a in zip(operands, axes, strict=True))
    return select_and_gather_add(tangents, x, select_prim, *Window(**params).batched()), 0


def _lower_gather(
    context: LoweringContext,
    tangents: Sequence[Tangent],
    operand: ir.Value,
    *,
    select_prim: str,
    **params: Param,
) -> MlirValues:
    (given, searched), (out,) = context.types_in, context.types_out
    if not out.size or not searched.size:
        return hlo.full(0, out.shape, out.dtype)
    numbers = hlo.broadcast_in_dim(hlo.constant(True), searched.shape, ())
    zeros = [hlo.full(0, (), searched.dtype), hlo.full(0, (), given.dtype), hlo.constant(False)]

    def body(*values: ir.Value) -> list[ir.Value]:
        (a, da, is_first), (b, db, is_second) = values[:3], values[3:]
        keeps = hlo.or_(build_select(select_prim)(a, b), hlo.not_(is_second))
        keeps = hlo.and_(keeps, is_first)
        pairs = ((a, b), (da, db))
        chosen = [hlo.select(keeps, lhs, rhs) for lhs, rhs in pairs]
        return [*chosen, hlo.or_(is_first, is_second)]

    return lower_windows([operand, tangents, numbers], zeros, Window(**params), body)[1]


def build_select(select_prim: str) -> Callable[[ir.Value, ir.Value], ir.Value]:
    """Returns the StableHLO comparison that keeps its first argument if it is the better one."""
    direction = _COMPARE[select_prim][2]

    def select(a: ir.Value, b: ir.Value) -> ir.Value:
        is_better = hlo.compare(a, b, direction)
        return hlo.or_(is_better, hlo.compare(a, a, "NE")) if hlo.is_float(a) else is_better

    return select


# select_and_scatter_add ------------------------------------------------------------------------


def select_and_scatter_add(
    source: Value,
    operand: Value,
    select_prim: str,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
) -> Value:
    """Adds an element for each window of an array at the position of the window's extremum.

    Args:
        source: The elements, one for each window.
        operand: The array with the windows to search.
        select_prim: 'ge' for the first of the largest elements, 'le' of the smallest.
        window_dimensions: As in `reduce_window`, like the arguments that follow.
        window_strides: See there.
        padding: Pairs.

    Returns:
        The sums, in the shape of `operand`.

    >>> import numpy as np
    >>> x, s = np.array([3, 1, 2, 5], np.float32), np.array([7, 8], np.float32)
    >>> select_and_scatter_add(s, x, "ge", (2,), (2,), ((0, 0),))
    Array([7., 0., 0., 8.], dtype=float32)
    """
    return _select_and_scatter_add.bind(
        source,
        operand,
        select_prim=select_prim,
        window_dimensions=window_dimensions,
        window_strides=window_strides,
        padding=padding,
    )


def _infer_scatter(
    source: ShapedArray, operand: ShapedArray, *, select_prim: str, **params: Param
) -> ShapedArray:
    name, window = "select_and_scatter_add", undilated(**params)
    _check_select(name, select_prim)
    check_dtype(name, operand.dtype, ORDERED)
    check_source(name, source, operand, window)
    return ShapedArray(operand.shape, source.dtype, source.weak_type)


def check_source(name: str, source: ShapedArray, operand: ShapedArray, window: Window) -> None:
    """Raises the user's error unless there is one source element for each window."""
    check_window(name, operand.ndim, window)
    expected = result_shape(operand.shape, window)
    if source.shape != expected:
        raise ShapeError(
            f"{name}: the source {source} must have the shape {expected}: one element for each "
            f"window of the operand {operand}."
        )
    if source.dtype != operand.dtype:
        raise DTypeError(
            f"{name}: the source {source} and the operand {operand} must be equal in dtype.",
            "Cast with x.astype(dtype).",
        )


def _evaluate_scatter(
    source: np.ndarray, operand: np.ndarray, *, select_prim: str, **params: Param
) -> np.ndarray:
    where = chosen_positions(operand, select_prim, undilated(**params)).reshape(-1)
    wide = accumulator_dtype(source.dtype)
    total = np.zeros((operand.size + 1,), wide)  # the last place takes elements without a position
    np.add.at(total, where, source.reshape(-1).astype(wide, copy=False))
    return total[: operand.size].reshape(operand.shape)


def _transpose_scatter(
    cotangent: Value, source: TransposeOperand, operand: Value, *, select_prim: str, **params: Param
) -> Sequence[Cotangent | None]:
    if not is_undefined_primal(source):
        return [None, None]
    return [select_and_gather_add(cotangent, operand, select_prim, *undilated(**params)), None]


def _batch_scatter(
    operands: Sequence[Value], axes: BatchAxes, *, select_prim: str, **params: Param
) -> tuple[Value, int]:
    size = batch_size(operands, axes)
    source, x = (move_batch_axis(x, a, size, 0) for x, a in zip(operands, axes, strict=True))
    dimensions, strides, padding, *_ = undilated(**params).batched()
    return select_and_scatter_add(source, x, select_prim, dimensions, strides, padding), 0


def _lower_scatter(
    context: LoweringContext,
    source: ir.Value,
    operand: ir.Value,
    *,
    select_prim: str,
    **params: Param,
) -> MlirValues:
    given, searched = context.types_in
    dtype, wide = given.dtype, accumulator_dtype(given.dtype)
    if not given.size or not searched.size:
        return hlo.full(0, searched.shape, dtype)
    if wide != dtype:
        source, operand = hlo.convert(source, wide), hlo.convert(operand, wide)
    init = hlo.full(0, (), wide)
    select = build_select(select_prim)
    result = hlo.select_and_scatter(operand, source, init, select, hlo.add, **params)
    return result if wide == dtype else hlo.convert(result, dtype)


# Samples and declarations ----------------------------------------------------------------------

# Shape, windows, strides, padding.
_UNDILATED: tuple[tuple, ...] = (
    ((6,), (2,), (2,), ((0, 0),)),
    ((7,), (3,), (1,), ((1, 1),)),
    ((4, 5), (2, 3), (1, 2), ((0, 1), (2, 1))),
    ((2, 6, 3), (1, 4, 2), (1, 3, 1), ((0, 0), (-1, 2), (0, 0))),
    ((), (), (), ()),
    ((0, 3), (1, 2), (1, 1), ((0, 0), (0, 0))),
    ((2,), (3,), (1,), ((0, 0),)),
    ((3,), (2,), (2,), ((5, 4),)),
    ((1, 3, 1, 1, 2, 1), (1, 2, 1, 1, 1, 1), (1,) * 6, ((0, 0),) * 6),
)
_DILATED: tuple[tuple, ...] = (
    ((5,), (3,), (1,), ((2, 0),), (2,), (1,)),
    ((4, 5), (2, 2), (1, 2), ((1, 0), (0, 1)), (1, 2), (3, 2)),
)
_TIES = (2, 2, 1, -np.inf, -np.inf, -np.inf, np.nan, 3, 3, np.nan, 1, -0.0, 0.0)


def _samples(*, scatters: bool) -> list[Sample]:
    generator = np.random.default_rng(17)
    samples = []

    def add(dtype: DTypeLike, fields: tuple, select: str, values: np.ndarray | None = None) -> None:
        shape, *window_fields = fields
        ones = (1,) * len(shape)
        window = Window(*window_fields, *([ones] * (5 - len(window_fields))))
        dtype = np.dtype(dtype)
        operand = spaced_values(generator, shape, dtype) if values is None else values
        given_shape = result_shape(shape, window) if scatters else shape
        given = random_values(generator, given_shape, dtype, -2, 2)
        params: Params = dict(window._asdict())
        if scatters:
            del params["base_dilation"], params["window_dilation"]
        params["select_prim"] = select
        # Both are locally constant in the operand, and so are finite differences.
        samples.append(Sample((given, operand), params, is_smooth=values is None))

    variants = _UNDILATED if scatters else (*_UNDILATED, *_DILATED)
    for index, fields in enumerate(variants):
        add(np.float32, fields, ("ge", "le")[index % 2])
    for index, dtype in enumerate((*FLOAT, dtypes.int32)):
        add(dtype, variants[1 + index % 3], ("le", "ge")[index % 2])
    for index, dtype in enumerate((dtypes.float16, dtypes.float64, dtypes.int32)):
        fields = ((13,), (3,), (1,), ((1, 1),))
        add(dtype, fields, ("le", "ge")[index % 2], edge_rows(dtype).ravel()[-13:])
    ties = np.array(_TIES, np.float32)
    for select in ("ge", "le"):
        add(np.float32, ((13,), (3,), (1,), ((1, 1),)), select, ties)
    add(np.float32, ((4, 5), (2, 3), (1, 1), ((1, 0), (0, 1))), "ge", np.ones((4, 5), np.float32))
    return samples


_select_and_gather_add = declare(
    "select_and_gather_add",
    parameters={"select_prim": str, **WINDOW_PARAMETERS},
    infer=_infer_gather,
    evaluate=_evaluate_gather,
    transpose=_transpose_gather,
    dimensions=cut_dimensions,
    batch=_batch_gather,
    lower=_lower_gather,
    samples=lambda: _samples(scatters=False),
)
_select_and_gather_add.jvp = apply_to_tangent(_select_and_gather_add.bind)
_select_and_scatter_add = declare(
    "select_and_scatter_add",
    parameters={"select_prim": str, **UNDILATED_PARAMETERS},
    infer=_infer_scatter,
    evaluate=_evaluate_scatter,
    transpose=_transpose_scatter,
    dimensions=cut_dimensions,
    batch=_batch_scatter,
    lower=_lower_scatter,
    samples=lambda: _samples(scatters=True),
)
_select_and_scatter_add.jvp = apply_to_tangent(_select_and_scatter_add.bind)
