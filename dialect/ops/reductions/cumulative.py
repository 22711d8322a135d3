"""Running reductions: `cumsum`, `cumprod`, `cummax`, `cummin`, `cumlogsumexp`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Returning, Scalar
from axir.dialect.core.symbolic_dims import is_symbolic_dim
from axir.dialect.core.symbolic_zeros import Zero
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.arithmetic import (
    add,
    build_maximum,
    build_minimum,
    is_finite,
    mul,
    sub,
)
from axir.dialect.ops.elementwise.arithmetic import max as maximum
from axir.dialect.ops.elementwise.arithmetic import min as minimum
from axir.dialect.ops.elementwise.comparison import and_, eq, gt, lt, ne, or_, select_n
from axir.dialect.ops.elementwise.conversion import complex_, convert_element_type, imag, real
from axir.dialect.ops.elementwise.family import COMPLEX, FLOAT, NUMBER, as_value, full
from axir.dialect.ops.elementwise.samples import edge_rows
from axir.dialect.ops.elementwise.transcendental import exp, log
from axir.dialect.ops.shape.movement import SMOOTH
from axir.dialect.ops.shape.rearranging import rev
from axir.dialect.program.dimensions import except_along
from axir.dialect.program.function_rules import LoweringContext, LowerRule
from axir.dialect.program.function_tracing import trace_function
from axir.dialect.program.op_table import Traceable, declare, traceable
from axir.dialect.program.operation import Sample
from axir.dialect.program.rules import (
    BatchAxes,
    MlirValues,
    Operand,
    ResultAxes,
    Results,
    Rule,
    Tangent,
    Tangents,
    TransposeOperand,
    Value,
)

from .blocks import accumulate_in_blocks
from .folding import (
    accumulator_dtype,
    canonical_axes,
    check_axes,
    check_dtype,
    greatest,
    least,
    scan,
    spaced_values,
)
from .linear_recurrence import linear_recurrence, neighbours

Pair = tuple[Value, Value]
INEXACT = (*FLOAT, *COMPLEX)
# The extent from which on a running sum of exponentials is not a small tree of operations.
_LONG = 64


# Evaluation ------------------------------------------------------------------------------------


def _evaluator(accumulate: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    def evaluate(x: np.ndarray, *, axis: int, reverse: bool) -> np.ndarray:
        x = x.astype(accumulator_dtype(x.dtype), copy=False)
        if not reverse:
            return accumulate(x, axis)
        return np.flip(accumulate(np.flip(x, axis), axis), axis)

    return evaluate


def _accumulate(ufunc: np.ufunc) -> Callable[..., np.ndarray]:
    return lambda x, axis: accumulate_in_blocks(ufunc, x, axis)


def _accumulate_logsumexp(x: np.ndarray, axis: int) -> np.ndarray:
    if x.dtype.kind != "c":
        return accumulate_in_blocks(np.logaddexp, x, axis)
    result = np.moveaxis(x.copy(), axis, 0)
    for index in range(1, len(result)):
        a, b = result[index - 1], result[index]
        largest = np.maximum(a.real, b.real)
        shift = np.where(np.isfinite(largest), largest, 0)
        result[index] = np.log(np.exp(a - shift) + np.exp(b - shift)) + shift
    return np.moveaxis(result, 0, axis)


# Derivatives: scans of (value, tangent) pairs --------------------------------------------------


def _pair_jvp(combine: Callable[[Pair, Pair], Pair]) -> Callable[..., object]:
    """Returns the jvp rule that scans values and tangents together."""

    def jvp(
        primals: Sequence[Value],
        tangents: Sequence[Tangent],
        out: Value,
        *,
        axis: int,
        reverse: bool,
    ) -> Tangents:
        (x,), (tangent,) = primals, tangents
        if type(tangent) is Zero:
            return Zero(out.aval.to_tangent_aval())
        return _directed_scan(
            lambda lhs, rhs: list(combine((lhs[0], lhs[1]), (rhs[0], rhs[1]))),
            [x, tangent],
            axis,
            reverse,
        )[1]

    return jvp


def _directed_scan(
    combine: Callable[..., list[Value]], values: list[Value], axis: int, reverse: bool
) -> list[Value]:
    if not reverse:
        return scan(combine, values, axis)
    scanned = scan(combine, [rev(x, (axis,)) for x in values], axis)
    return [rev(x, (axis,)) for x in scanned]


def _extremum_of_pairs(
    choose: Returning[Value], is_better: Returning[Value]
) -> Callable[[Pair, Pair], Pair]:
    def combine(lhs: Pair, rhs: Pair) -> Pair:
        (a, da), (b, db) = lhs, rhs
        if dtypes.is_complex(a.dtype):
            return _complex_extremum(lhs, rhs, is_better)
        tangent = select_n(is_better(a, b), db, da)
        half = full((), 0.5, a.dtype)
        shared = add(mul(half, da), mul(half, db))
        return choose(a, b), select_n(eq(a, b), tangent, shared)

    return combine


def _complex_extremum(lhs: Pair, rhs: Pair, is_better: Callable[..., Value]) -> Pair:
    """Complex numbers compare by their real, then by their imaginary parts."""
    (a, da), (b, db) = lhs, rhs
    breaks_tie = and_(eq(real(a), real(b)), is_better(imag(a), imag(b)))
    is_lhs = or_(or_(is_better(real(a), real(b)), breaks_tie), ne(a, a))
    half = full((), 0.5, a.dtype)
    shared = add(mul(half, da), mul(half, db))
    return select_n(is_lhs, b, a), select_n(eq(a, b), select_n(is_lhs, db, da), shared)


def _log_add_exp(a: Value, b: Value) -> Value:
    """log(exp(a) + exp(b)), shifted by the larger (real part) so that nothing overflows."""
    parts = real if dtypes.is_complex(a.dtype) else (lambda x: x)
    largest = maximum(parts(a), parts(b))
    shift = select_n(is_finite(largest), full((), 0, largest.dtype), largest)
    if dtypes.is_complex(a.dtype):
        shift = complex_(shift, full((), 0, shift.dtype))
    result = add(log(add(exp(sub(a, shift)), exp(sub(b, shift)))), shift)
    if dtypes.is_complex(a.dtype):
        return result
    # Infinite or NaN: the larger one is the result, but its logarithm may be wrong.
    return select_n(is_finite(largest), largest, result)


# Derivatives: each tangent is a factor times the one before it, plus a term ----------------------


def _recurrent_jvp(
    weights: Callable[[Value, Value, Value], Pair], before: float
) -> Callable[..., object]:
    """Returns the jvp rule of running operations with a linear recurrence as derivative.

    Args:
        weights: From the previous result, the element and the result to the derivatives of the
            result by the first two.
        before: The value before the first result.
    """

    def jvp(
        primals: Sequence[Value],
        tangents: Sequence[Tangent],
        out: Value,
        *,
        axis: int,
        reverse: bool,
    ) -> Tangents:
        (x,), (tangent,) = primals, tangents
        if type(tangent) is Zero:
            return Zero(out.aval.to_tangent_aval())
        factors, shares = weights(neighbours(out, axis, reverse, before), x, out)
        return linear_recurrence(factors, mul(shares, tangent), axis, reverse)

    return jvp


def _product_weights(previous: Value, x: Value, out: Value) -> Pair:
    return x, previous


def _log_add_exp_weights(previous: Value, x: Value, out: Value) -> Pair:
    def share(part: Value) -> Value:
        # Equal infinities have no difference, but subtraction gives nan.
        return exp(select_n(eq(part, out), sub(part, out), full((), 0, out.dtype)))

    return share(previous), share(x)


# Lowering --------------------------------------------------------------------------------------


def _window_lowering(
    build: Callable[..., object], identity: Callable[[np.dtype], Scalar | np.ndarray]
) -> LowerRule:
    """Lowers to one `reduce_window`; its windows end (or begin) at each element."""

    def lower(context: LoweringContext, x: ir.Value, *, axis: int, reverse: bool) -> MlirValues:
        (operand,) = context.types_in
        extent = operand.shape[axis]
        if operand.size == 0:
            return x
        dtype, wide = operand.dtype, accumulator_dtype(operand.dtype)
        value = x if wide == dtype else hlo.convert(x, wide)
        window = [extent if d == axis else 1 for d in range(operand.ndim)]
        edge = [0, extent - 1] if reverse else [extent - 1, 0]
        padding = [edge if d == axis else [0, 0] for d in range(operand.ndim)]
        init = hlo.full(identity(wide), (), wide)
        shape = operand.shape
        (result,) = hlo.reduce_window([value], [init], window, build, padding=padding, shape=shape)
        return result if wide == dtype else hlo.convert(result, dtype)

    return lower


def _build_log_add_exp(a: ir.Value, b: ir.Value) -> ir.Value:
    largest = build_maximum(a, b)
    part = hlo.exponential(hlo.negate(hlo.abs(hlo.subtract(a, b))))
    # log(1 + part), also for parts that are lost in 1 + part (Kahan). Operations such as log1p
    # would be written out as separate loops before loops become kernels.
    one = hlo.full_like(part, 1)
    whole = hlo.add(one, part)
    kept = hlo.subtract(whole, one)
    logarithm = hlo.divide(hlo.multiply(hlo.log(whole), part), kept)
    is_forgotten = hlo.compare(whole, one, "EQ")
    summed = hlo.add(largest, hlo.select(is_forgotten, part, logarithm))
    # Infinite or NaN: the difference of equal infinities is nan.
    return hlo.select(hlo.is_finite(largest), summed, largest)


def _lower_cumlogsumexp(
    context: LoweringContext, x: ir.Value, *, axis: int, reverse: bool
) -> MlirValues:
    """Lowers to one window on a long axis; the tree of a scan would have hundreds of slices."""
    (operand,) = context.types_in
    extent = operand.shape[axis]
    if not is_symbolic_dim(extent) and extent > _LONG and not dtypes.is_complex(operand.dtype):
        return _log_add_exp_windows(context, x, axis=axis, reverse=reverse)

    def body(value: Value) -> list[Value]:
        is_half = operand.dtype in (dtypes.float16, dtypes.bfloat16)
        wide = convert_element_type(value, dtypes.float32) if is_half else value
        scanned = _directed_scan(
            lambda lhs, rhs: [_log_add_exp(lhs[0], rhs[0])], [wide], axis, reverse
        )
        return [convert_element_type(scanned[0], operand.dtype) if is_half else scanned[0]]

    function = trace_function(body, [operand.strip_weak_type()], name="cumlogsumexp")
    return context.inline(function, x)[0]


_log_add_exp_windows = _window_lowering(_build_log_add_exp, lambda dtype: -np.inf)


# Declarations ----------------------------------------------------------------------------------


def _samples(domain: Sequence[np.dtype]) -> list[Sample]:
    generator = np.random.default_rng(len(domain))
    variants = [(0, False), (1, True), (2, False), (0, True)]
    samples = []
    for index, dtype in enumerate(domain):
        axis, reverse = variants[index % len(variants)]
        if dtype in SMOOTH or index < 3:
            x = spaced_values(generator, (3, 2, 5), dtype)
            samples.append(Sample((x,), {"axis": axis, "reverse": reverse}))
        if dtype not in SMOOTH:
            x, axis = edge_rows(dtype), 1
            samples.append(Sample((x,), {"axis": axis, "reverse": reverse}, is_smooth=False))
    params = {"axis": 0, "reverse": False}
    for extent in (0, 1, 2, 7, 8, *([_LONG + 6] if domain == INEXACT else [])):
        x = spaced_values(generator, (extent,), dtypes.float32)
        samples.append(Sample((x,), {"axis": 0, "reverse": extent == 7}))
    for shape in [(3, 0), (2, 1, 1, 2, 1, 2)]:
        samples.append(Sample((spaced_values(generator, shape, dtypes.float32),), params))
    edges = np.array([[1, 1, 2], [2, np.nan, 0], [2, 3, -np.inf], [1, 4, -np.inf]], np.float32)
    for reverse in (False, True):
        samples.append(Sample((edges,), {"axis": 0, "reverse": reverse}, is_smooth=False))
    return samples


def _declare(
    name: str,
    accumulate: Callable[..., np.ndarray],
    lower: Callable[..., object],
    domain: Sequence[np.dtype],
    what: str,
    **rules: Rule,
) -> Traceable:
    """Declares a running reduction and returns its traceable function."""

    def infer(x: ShapedArray, *, axis: int, reverse: bool) -> ShapedArray:
        check_dtype(name, x.dtype, domain)
        check_axes(name, (axis,), x.ndim)
        return x

    def batch(
        operands: Sequence[Value], axes: BatchAxes, *, axis: int, reverse: bool
    ) -> tuple[Results, ResultAxes]:
        shifted = axis + (axis >= axes[0])
        return primitive.bind(operands[0], axis=shifted, reverse=reverse), axes[0]

    primitive = declare(
        name,
        parameters={"axis": int, "reverse": bool},
        infer=infer,
        evaluate=_evaluator(accumulate),
        batch=batch,
        lower=lower,
        samples=lambda: _samples(domain),
        dimensions=except_along,
        **rules,
    )

    def apply(operand: Operand, axis: int = 0, reverse: bool = False) -> Value:
        operand = as_value(operand)
        (axis,) = canonical_axes(name, (axis,), operand.ndim)
        return primitive.bind(operand, axis=axis, reverse=bool(reverse))

    documentation = f"""Returns {what} of the elements up to each, along an axis.

    Args:
        operand: Array of at least one axis.
        axis: The axis to run along.
        reverse: Whether to run from its end to its start.

    Raises:
        AxisError: for an axis out of range.
        DTypeError: for a dtype without the operation.
    """
    return traceable(apply, primitive, documentation)


def _cumsum_jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], out: Value, **params: object
) -> Tangents:
    return tangents[0] if type(tangents[0]) is Zero else cumsum(tangents[0], **params)


def _cumsum_transpose(ct: Value, x: TransposeOperand, *, axis: int, reverse: bool) -> list[Value]:
    return [cumsum(ct, axis, not reverse)]


_NOT_LINEAR = {"transpose": "it is not linear in its operand; differentiate it with jvp first."}

cumsum = _declare(
    "cumsum",
    _accumulate(np.add),
    _window_lowering(hlo.add, lambda dtype: 0),
    NUMBER,
    "the sum",
    jvp=_cumsum_jvp,
    transpose=_cumsum_transpose,
)
cumprod = _declare(
    "cumprod",
    _accumulate(np.multiply),
    _window_lowering(hlo.multiply, lambda dtype: 1),
    NUMBER,
    "the product",
    jvp=_recurrent_jvp(_product_weights, 1),
    unsupported=_NOT_LINEAR,
)
cummax = _declare(
    "cummax",
    _accumulate(np.maximum),
    _window_lowering(build_maximum, least),
    NUMBER,
    "the maximum",
    jvp=_pair_jvp(_extremum_of_pairs(maximum, gt)),
    unsupported=_NOT_LINEAR,
)
cummin = _declare(
    "cummin",
    _accumulate(np.minimum),
    _window_lowering(build_minimum, greatest),
    NUMBER,
    "the minimum",
    jvp=_pair_jvp(_extremum_of_pairs(minimum, lt)),
    unsupported=_NOT_LINEAR,
)
cumlogsumexp = _declare(
    "cumlogsumexp",
    _accumulate_logsumexp,
    _lower_cumlogsumexp,
    INEXACT,
    "the logarithm of the sum of the exponentials",
    jvp=_recurrent_jvp(_log_add_exp_weights, -np.inf),
    unsupported=_NOT_LINEAR,
)
