"""Elementwise ops: comparisons, bits, and selection.

The rules have the same forms as in `arithmetic.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Returning
from axir.dialect.core.errors import DTypeError, ParameterError
from axir.dialect.core.symbolic_zeros import Zero, is_undefined_primal
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.later_ops import later
from axir.dialect.program.dimensions import position_wise
from axir.dialect.program.function_rules import LoweringContext
from axir.dialect.program.op_table import Traceable, declare
from axir.dialect.program.operation import Sample
from axir.dialect.program.rules import (
    BatchAxes,
    Cotangent,
    EvaluateRule,
    HostArrays,
    MlirValues,
    Operand,
    Tangent,
    Tangents,
    TransposeOperand,
    Value,
)

from . import integer_evaluation as bits
from .family import (
    ANY,
    BITS,
    INTEGER,
    ORDERED,
    add_tangents,
    as_value,
    binary,
    full,
    match_scalars,
    unary,
    zero_tangent,
)
from .operand_shapes import align, broadcast_shape, broadcast_to, unbroadcast
from .samples import EDGES, Sampling, edge_values, random_values


def to_bool(dtype: np.dtype) -> np.dtype:
    """Returns the dtype of predicates on elements."""
    return dtypes.bool_


# Comparisons -----------------------------------------------------------------------------------


def _comparison(
    name: str, evaluate: EvaluateRule, direction: str, domain: Sequence[np.dtype]
) -> Traceable:
    def build(lhs: ir.Value, rhs: ir.Value) -> ir.Value:
        return hlo.compare(lhs, rhs, direction)

    return binary(
        name,
        evaluate,
        build,
        domain,
        result=to_bool,
        is_commutative=direction in ("EQ", "NE"),
        takes_keys=direction in ("EQ", "NE"),
    )


def _equality(name: str, compare: np.ufunc, direction: str) -> Traceable:
    """Declares a comparison that random keys also have: of all their words."""

    def evaluate(x: np.ndarray, y: np.ndarray) -> HostArrays:
        if x.dtype.names is None:
            return compare(x, y)
        return x == y if direction == "EQ" else x != y

    def lower(context: LoweringContext, *values: ir.Value) -> MlirValues:
        words = context.types_in[0].words
        if words is context.types_in[0]:
            return lower_numbers(context, *values)
        shape = (*context.types_out[0].shape, words.shape[-1])
        lhs, rhs = hlo.broadcast_operands(values, shape, trailing=1)
        same, true, words_axis = hlo.compare(lhs, rhs, "EQ"), hlo.constant(np.True_), len(shape) - 1
        every = hlo.reduce([same], [true], [words_axis], lambda a, x: [hlo.and_(a, x)])
        return every[0] if direction == "EQ" else hlo.not_(every[0])

    function = _comparison(name, evaluate, direction, ANY)
    lower_numbers: Returning[ir.Value] = function.primitive.lower  # type: ignore[assignment]
    function.primitive.lower = lower
    return function


eq = _equality("eq", np.equal, "EQ")
ne = _equality("ne", np.not_equal, "NE")
lt = _comparison("lt", np.less, "LT", ORDERED)
le = _comparison("le", np.less_equal, "LE", ORDERED)
gt = _comparison("gt", np.greater, "GT", ORDERED)
ge = _comparison("ge", np.greater_equal, "GE", ORDERED)

# Logic and bits --------------------------------------------------------------------------------

not_ = unary("not", np.invert, hlo.not_, BITS)
and_ = binary("and", np.bitwise_and, hlo.and_, BITS, is_commutative=True)
or_ = binary("or", np.bitwise_or, hlo.or_, BITS, is_commutative=True)
xor = binary("xor", np.bitwise_xor, hlo.xor, BITS, is_commutative=True)
population_count = unary(
    "population_count",
    bits.population_count,
    hlo.popcnt,
    INTEGER,
    samples=Sampling(edges=(0, 1, -1)),
)
clz = unary(
    "clz",
    bits.count_leading_zeros,
    hlo.count_leading_zeros,
    INTEGER,
    samples=Sampling(edges=(0, 1, -1)),
)
_SHIFTS = (0, 1, 7, 8, 31, 32, 64, -1)
shift_left = binary(
    "shift_left", bits.shift_left, hlo.shift_left, INTEGER, samples=Sampling(edges=_SHIFTS)
)
shift_right_arithmetic = binary(
    "shift_right_arithmetic",
    bits.shift_right_arithmetic,
    hlo.shift_right_arithmetic,
    INTEGER,
    samples=Sampling(edges=_SHIFTS),
)
shift_right_logical = binary(
    "shift_right_logical",
    bits.shift_right_logical,
    hlo.shift_right_logical,
    INTEGER,
    samples=Sampling(edges=_SHIFTS),
)

# Selection -------------------------------------------------------------------------------------


def _infer_select(which: ShapedArray, *cases: ShapedArray) -> ShapedArray:
    if not cases:
        raise ParameterError("select_n needs at least one case.")
    if which.dtype not in (dtypes.bool_, dtypes.int32):
        raise DTypeError(f"select_n: the selector must be a bool or an integer, not {which.dtype}.")
    if which.dtype == dtypes.bool_ and len(cases) > 2:
        raise ParameterError(f"select_n: a bool selector chooses among 2 cases, not {len(cases)}.")
    if any(case.dtype != cases[0].dtype for case in cases):
        raise DTypeError(
            f"select_n requires cases of equal dtype, but got {' and '.join(map(str, cases))}.",
            "Cast with x.astype(dtype); jnp.where promotes by itself.",
        )
    shape = broadcast_shape("select_n", [which, *cases], stretches=False)
    return ShapedArray(shape, cases[0].dtype, all(c.weak_type for c in cases))


def _evaluate_select(which: np.ndarray, *cases: np.ndarray) -> np.ndarray:
    if len(cases) == 1:
        return np.broadcast_to(cases[0], np.broadcast_shapes(which.shape, cases[0].shape))
    if which.dtype == np.bool_:
        return np.where(which, cases[1], cases[0])
    result = cases[-1]
    for index in range(len(cases) - 2, -1, -1):
        result = np.where(which <= index, cases[index], result)
    return result


def _select_jvp(primals: Sequence[Value], tangents: Sequence[Tangent], out: Value) -> Tangents:
    cases = tangents[1:]
    if all(type(t) is Zero for t in cases):
        return zero_tangent(primals, tangents, out)
    zero = full((), 0, out.dtype)
    terms = [zero if type(t) is Zero else t for t in cases]
    return broadcast_to(select_n(primals[0], *terms), out.shape)


def _select_transpose(
    ct: Value, which: Value, *cases: TransposeOperand
) -> Sequence[Cotangent | None]:
    zero = full((), 0, ct.dtype)
    cotangents: list[Cotangent | None] = [None]
    for index, case in enumerate(cases):
        if not is_undefined_primal(case):
            cotangents.append(None)
            continue
        chosen = [ct if i == index else zero for i in range(len(cases))]
        term = broadcast_to(select_n(which, *chosen), ct.shape)
        cotangents.append(unbroadcast(term, case))
    return cotangents


def _lower_select(context: LoweringContext, which: ir.Value, *cases: object) -> MlirValues:
    which, *spread = hlo.broadcast_operands((which, *cases), context.types_out[0].shape)
    if len(spread) == 1:
        return spread[0]
    if context.types_in[0].dtype == dtypes.bool_:
        return hlo.select(which, spread[1], spread[0])
    result = spread[-1]
    for index in range(len(spread) - 2, -1, -1):
        is_chosen = hlo.compare(which, hlo.full_like(which, index), "LE")
        result = hlo.select(is_chosen, spread[index], result)
    return result


def _select_batch(operands: Sequence[Value], axes: BatchAxes) -> tuple[Value, int]:
    aligned, axis = align(operands, axes)
    return select_n(*aligned), axis


def _select_samples() -> list[Sample]:
    generator = np.random.default_rng(0)
    samples = []
    which = np.array([[True, False, True], [False, False, True]])
    chooser = np.array([[0, 1, 2], [2, 1, 0]], np.int32)
    for dtype in ANY:
        a, b, c = (random_values(generator, (2, 3), dtype, -2, 2) for _ in range(3))
        samples += [Sample((which, a, b)), Sample((chooser, a, b, c))]
        if dtype in (dtypes.uint8, dtypes.float32, dtypes.complex64):
            samples += [Sample((which[0, 0], a, b)), Sample((which, a, b[0, 0]))]
            samples += [Sample((chooser, a)), Sample((which[:0], a[:0], b[:0]))]
        edges = edge_values(EDGES, dtype)
        flags = np.arange(edges.size) % 2 == 0
        samples.append(Sample((flags, edges, edges[::-1].copy()), is_smooth=False))
    ranks = [np.reshape(v, (1, 2, 1, 1, 3, 1)) for v in (which, chooser % 2 == 0, which)]
    samples += [Sample(tuple(ranks)), Sample(tuple(v[0, 0] for v in (which, which, chooser > 0)))]
    return samples


def _simplify_select(which: Value, *cases: Value) -> Value | None:
    first = cases[0]
    is_same = all(case is first for case in cases) and which.shape in ((), first.shape)
    return first if is_same else None


_select_n = declare(
    "select_n",
    moves_elements=True,
    infer=_infer_select,
    evaluate=_evaluate_select,
    jvp=_select_jvp,
    transpose=_select_transpose,
    dimensions=position_wise,
    batch=_select_batch,
    lower=_lower_select,
    simplify=_simplify_select,
    samples=_select_samples,
)


def select_n(which: Operand, *cases: Operand) -> Value:
    """Chooses elementwise: case 0 where `which` is False (or 0), case 1 where it is True (or 1).

    Integers out of range choose the first or the last case.
    """
    if getattr(which, "dtype", None) not in (dtypes.bool_, dtypes.int32):
        which = _as_selector(as_value(which), len(cases))
    return _select_n.bind(which, *match_scalars(*cases))


def _as_selector(which: Value, count: int) -> Value:
    """Limits integers of any dtype to the numbers of cases; returns them as int32."""
    if not dtypes.is_integer(which.dtype):
        return which
    last = np.minimum(count - 1, np.iinfo(which.dtype).max)
    low, high = (np.array(n, which.dtype) for n in (0, last))
    return later.convert_element_type(ordered_clamp.bind(low, which, high), np.int32)


def _clamp_term(tangent: Value, is_active: Value, out: Value) -> Value:
    return select_n(is_active, full((), 0, out.dtype), tangent)


def _clamp_jvp(primals: Sequence[Value], tangents: Sequence[Tangent], out: Value) -> Tangents:
    low, x, high = primals
    inside = and_(gt(x, low), lt(x, high))
    at_low = and_(ge(low, x), lt(low, high))
    total: Value | None = None
    for tangent, is_active in zip(tangents, (at_low, inside, ge(x, high)), strict=True):
        if type(tangent) is not Zero:
            total = add_tangents(total, _clamp_term(tangent, is_active, out))
    return Zero(out.aval.to_tangent_aval()) if total is None else broadcast_to(total, out.shape)


def _infer_clamp(low: ShapedArray, x: ShapedArray, high: ShapedArray) -> ShapedArray:
    if not low.dtype == x.dtype == high.dtype:
        raise DTypeError(
            f"clamp requires operands of equal dtype, but got {low}, {x} and {high}.",
            "Cast with x.astype(dtype); jnp.clip promotes by itself.",
        )
    if x.dtype not in ORDERED:
        raise DTypeError(f"clamp does not accept {x.dtype}.")
    shape = broadcast_shape("clamp", (low, x, high), stretches=False)
    return ShapedArray(shape, x.dtype, low.weak_type and x.weak_type and high.weak_type)


def _evaluate_clamp(low: np.ndarray, x: np.ndarray, high: np.ndarray) -> np.ndarray:
    return bits.minimum(bits.maximum(x, low), high)


def _lower_clamp(context: LoweringContext, *operands: ir.Value) -> MlirValues:
    shape = context.types_out[0].shape
    return hlo.clamp(*hlo.broadcast_operands(operands, shape))


def _clamp_batch(operands: Sequence[Value], axes: BatchAxes) -> tuple[Value, int]:
    aligned, axis = align(operands, axes)
    return ordered_clamp.bind(*aligned), axis


def _clamp_samples() -> list[Sample]:
    samples = []
    for dtype in ORDERED:
        x = np.array([0, 1, 2, 3, 4, 5]).astype(dtype)
        low, high = np.array(1).astype(dtype), np.array(3).astype(dtype)
        if dtype != dtypes.bool_:
            low, high = np.array(1.5).astype(dtype), np.array(3.5).astype(dtype)
        smooth = not dtypes.is_integer(dtype)
        samples.append(Sample((low, x, high), is_smooth=smooth))
        samples.append(Sample((np.broadcast_to(low, x.shape), x, np.broadcast_to(high, x.shape))))
        values = edge_values((0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan), dtype)
        grid = tuple(g.ravel() for g in np.meshgrid(values, values, values))
        samples.append(Sample(grid, is_smooth=False))
    for shape in [(), (0, 2), (1, 2, 1, 1, 2, 1)]:
        x = np.full(shape, 0.5, np.float32)
        samples.append(Sample((np.float32(0).reshape(()), x, np.float32(1).reshape(()))))
    return samples


ordered_clamp = declare(
    "clamp",
    infer=_infer_clamp,
    evaluate=_evaluate_clamp,
    jvp=_clamp_jvp,
    dimensions=position_wise,
    batch=_clamp_batch,
    lower=_lower_clamp,
    samples=_clamp_samples,
    unsupported={"transpose": "clamp is not linear; differentiate it with jvp first."},
)
