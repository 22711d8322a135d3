"""Elementwise ops, part one: arithmetic, rounding, comparisons, bits, selection.

Each declaration gives all that is particular to the op: how NumPy evaluates it, how StableHLO
spells it, which dtypes it takes, and its derivative in each operand. A derivative rule receives the
tangent `dx`, the result `out` and the operands; a transpose rule the cotangent `ct`. Both are
written with the functions declared here, so they can be traced, and differentiated again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Returning
from axir.dialect.core.errors import DTypeError, ParameterError
from axir.dialect.core.symbolic_zeros import Zero, is_undefined_primal
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.later_ops import conversion
from axir.dialect.program.dimensions import position_wise
from axir.dialect.program.op_table import Traceable, declare
from axir.dialect.program.primitive import Sample
from axir.dialect.program.rules import (
    BatchAxes,
    Cotangent,
    EvaluateRule,
    HostArrays,
    LoweringContext,
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
    EDGES,
    FLOAT,
    INEXACT,
    INTEGER,
    NUMBER,
    ORDERED,
    REAL,
    Sampling,
    add_tangents,
    as_value,
    binary,
    edge_values,
    full,
    instantiate,
    is_constant,
    match_scalars,
    random_values,
    unary,
    zero_tangent,
)
from .operand_shapes import align, broadcast_shape, broadcast_to, unbroadcast


def _to_bool(dtype: np.dtype) -> np.dtype:
    return dtypes.bool_


# Arithmetic ------------------------------------------------------------------------------------


def build_maximum(lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    """Builds the StableHLO maximum; complex numbers compare by real, then imaginary part."""
    return _lexicographic(lhs, rhs, "GT") if hlo.is_complex(lhs) else hlo.maximum(lhs, rhs)


def build_minimum(lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    """Builds the StableHLO minimum; complex numbers compare by real, then imaginary part."""
    return _lexicographic(lhs, rhs, "LT") if hlo.is_complex(lhs) else hlo.minimum(lhs, rhs)


def _lexicographic(lhs: ir.Value, rhs: ir.Value, direction: str) -> ir.Value:
    a, b = hlo.real(lhs), hlo.real(rhs)
    breaks_tie = hlo.and_(
        hlo.compare(a, b, "EQ"), hlo.compare(hlo.imag(lhs), hlo.imag(rhs), direction)
    )
    is_lhs = hlo.or_(hlo.compare(a, b, direction), breaks_tie)
    is_lhs = hlo.and_(is_lhs, hlo.compare(rhs, rhs, "EQ"))  # a nan on the right wins
    is_nan = hlo.compare(lhs, lhs, "NE")
    return hlo.select(hlo.or_(is_lhs, is_nan), lhs, rhs)


neg: Traceable = unary(
    "neg",
    np.negative,
    hlo.negate,
    NUMBER,
    jvp=[lambda dx, out, x: neg(dx)],
    transpose=[lambda ct, x: neg(ct)],
)
add = binary(
    "add",
    np.add,
    hlo.add,
    NUMBER,
    is_commutative=True,
    jvp=[lambda dx, out, x, y: dx, lambda dy, out, x, y: dy],
    transpose=[lambda ct, x, y: ct, lambda ct, x, y: ct],
    # Not x + 0.0, which turns -0.0 into 0.0.
    simplify=lambda x, y: x if is_constant(y, -0.0) else y if is_constant(x, -0.0) else None,
)
sub = binary(
    "sub",
    np.subtract,
    hlo.subtract,
    NUMBER,
    jvp=[lambda dx, out, x, y: dx, lambda dy, out, x, y: neg(dy)],
    transpose=[lambda ct, x, y: ct, lambda ct, x, y: neg(ct)],
    simplify=lambda x, y: x if is_constant(y, 0.0) else None,
)
mul: Traceable = binary(
    "mul",
    np.multiply,
    hlo.multiply,
    NUMBER,
    is_commutative=True,
    jvp=[lambda dx, out, x, y: mul(dx, y), lambda dy, out, x, y: mul(x, dy)],
    transpose=[lambda ct, x, y: mul(ct, y), lambda ct, x, y: mul(x, ct)],
    simplify=lambda x, y: x if is_constant(y, 1.0) else y if is_constant(x, 1.0) else None,
)
div: Traceable = binary(
    "div",
    bits.divide,
    hlo.divide,
    NUMBER,
    jvp=[lambda dx, out, x, y: div(dx, y), lambda dy, out, x, y: neg(mul(div(dy, y), out))],
    transpose=[lambda ct, x, y: div(ct, y), None],
    simplify=lambda x, y: x if is_constant(y, 1.0) else None,
    samples=Sampling(low=0.5),
)
rem = binary(
    "rem",
    bits.remainder,
    hlo.remainder,
    REAL,
    jvp=[
        lambda dx, out, x, y: dx,
        lambda dy, out, x, y: neg(mul(dy, round_toward_zero(div(x, y)))),
    ],
    samples=Sampling(low=0.5),
)
# Complex numbers compare by their real, then by their imaginary parts. As in NumPy nan wins, and of
# zeros with unlike signs either one (IEEE 754): eagerly what NumPy takes, compiled what JAX does.
max = binary(
    "max",
    bits.maximum,
    build_maximum,
    ANY,
    is_commutative=True,
    jvp=[
        lambda dx, out, x, y: mul(dx, _share(x, out, y)),
        lambda dy, out, x, y: mul(dy, _share(y, out, x)),
    ],
)
min = binary(
    "min",
    bits.minimum,
    build_minimum,
    ANY,
    is_commutative=True,
    jvp=[
        lambda dx, out, x, y: mul(dx, _share(x, out, y)),
        lambda dy, out, x, y: mul(dy, _share(y, out, x)),
    ],
)
abs = unary(
    "abs",
    np.abs,
    hlo.abs,
    (*dtypes.SIGNED, *INEXACT),
    result=dtypes.real_dtype,
    jvp=[lambda dx, out, x: _abs_tangent(dx, out, x)],
)
sign = unary(
    "sign",
    bits.sign,
    bits.lower_sign,
    NUMBER,
    jvp=[lambda dx, out, x: _sign_tangent(dx, out, x)],
)
square = unary(
    "square",
    np.square,
    lambda x: hlo.multiply(x, x),
    NUMBER,
    jvp=[lambda dx, out, x: mul(dx, mul(2, x))],
)
# Of equal operands the second one, as in C; NumPy's float16 gives the first.
nextafter = binary(
    "nextafter",
    lambda x, y: np.where(x == y, y, np.nextafter(x, y)),
    hlo.next_after,
    FLOAT,
    operands=("x1", "x2"),
    samples=Sampling(edges=(*EDGES, 1e-3, 60000.0)),
)


def _share(operand: Value, out: Value, other: Value) -> Value:
    """Weight of an operand in a max or min: one if it is the result, one half at a tie."""
    one, zero = full((), 1, out.dtype), full((), 0, out.dtype)
    is_result = select_n(eq(operand, out), zero, one)
    return select_n(eq(operand, other), is_result, full((), 0.5, out.dtype))


def _abs_tangent(dx: Value, out: Value, x: Value) -> Value:
    if not dtypes.is_complex(x.dtype):
        # One at zero, as in JAX: of the slopes on both sides the right one.
        return select_n(ge(x, 0), neg(dx), dx)
    # d|x| = Re(conj(x) dx) / |x|, and zero at the origin.
    safe = select_n(eq(out, 0), out, full((), 1, out.dtype))
    unit = conversion.complex_(div(conversion.real(x), safe), div(conversion.imag(x), safe))
    return add(
        mul(conversion.real(unit), conversion.real(dx)),
        mul(conversion.imag(unit), conversion.imag(dx)),
    )


def _sign_tangent(dx: Value, out: Value, x: Value) -> Tangent:
    if not dtypes.is_complex(x.dtype):
        return Zero(out.aval)
    # sign(x) = x / |x|: only the part of dx orthogonal to x turns the direction.
    magnitude = abs(x)
    safe = select_n(eq(magnitude, 0), magnitude, full((), 1, magnitude.dtype))
    along = add(
        mul(conversion.real(out), conversion.real(dx)),
        mul(conversion.imag(out), conversion.imag(dx)),
    )
    zero = full((), 0, along.dtype)
    projected = sub(dx, mul(out, conversion.complex_(along, broadcast_to(zero, along.shape))))
    return div(projected, conversion.complex_(safe, broadcast_to(zero, safe.shape)))


# Rounding --------------------------------------------------------------------------------------

_HALVES = (*EDGES, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49999997, 8388609.0)

floor = unary("floor", np.floor, hlo.floor, FLOAT, samples=Sampling(edges=_HALVES))
ceil = unary("ceil", np.ceil, hlo.ceil, FLOAT, samples=Sampling(edges=_HALVES))
is_finite = unary("is_finite", np.isfinite, hlo.is_finite, FLOAT, result=_to_bool)

AWAY_FROM_ZERO, TO_NEAREST_EVEN = 0, 1


def _evaluate_round(x: np.ndarray, *, rounding_method: int) -> np.ndarray:
    if rounding_method == TO_NEAREST_EVEN:
        return np.rint(x)
    # Adding one half can round up just below one half, hence the comparison with the fraction.
    whole = np.trunc(x)
    return np.copysign(np.where(np.abs(x - whole) >= 0.5, np.abs(whole) + 1, np.abs(whole)), x)


def _lower_round(x: ir.Value, *, rounding_method: int) -> ir.Value:
    even = rounding_method == TO_NEAREST_EVEN
    return hlo.round_nearest_even(x) if even else hlo.round_nearest_afz(x)


def _round_samples() -> list[Sample]:
    methods = (AWAY_FROM_ZERO, TO_NEAREST_EVEN)
    samples = [
        Sample((edge_values(_HALVES, dtype),), {"rounding_method": method}, is_smooth=False)
        for dtype in FLOAT
        for method in methods
    ]
    for shape in [(), (0, 2), (1, 2, 1, 1, 2, 1)]:
        x = np.full(shape, 1.25, np.float32)
        samples += [Sample((x,), {"rounding_method": method}) for method in methods]
    return samples


_round = unary(
    "round",
    _evaluate_round,
    _lower_round,
    FLOAT,
    parameters={"rounding_method": int},
    samples=_round_samples,
)


def round(x: Value, rounding_method: int = AWAY_FROM_ZERO) -> Value:
    """Rounds to the nearest integer; `rounding_method` tells where halves go."""
    if rounding_method not in (AWAY_FROM_ZERO, TO_NEAREST_EVEN):
        raise ParameterError(
            f"round: rounding_method {rounding_method!r} is neither 0 (away from zero) nor 1 "
            "(to the nearest even)."
        )
    return _round.primitive.bind(x, rounding_method=int(rounding_method))


def round_toward_zero(x: Value) -> Value:
    """Rounds a real value toward zero; integers stay."""
    if not dtypes.is_float(x.dtype):
        return x
    return select_n(lt(x, 0), floor(x), ceil(x))


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
        result=_to_bool,
        is_commutative=direction in ("EQ", "NE"),
        takes_keys=direction in ("EQ", "NE"),
    )


def _equality(name: str, compare: np.ufunc, direction: str) -> Traceable:
    """Declares a comparison which random keys, too, have: of all their words."""

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


def _lower_select(context: LoweringContext, which: ir.Value, *cases: Any) -> MlirValues:
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
    samples=_select_samples,
)


def select_n(which: Operand, *cases: Operand) -> Value:
    """Chooses elementwise: case 0 where `which` is False (or 0), case 1 where it is True (or 1).

    Integers outside of the cases that there are choose the first or the last one.
    """
    if getattr(which, "dtype", None) not in (dtypes.bool_, dtypes.int32):
        which = _as_selector(as_value(which), len(cases))
    return _select_n.bind(which, *match_scalars(*cases))


def _as_selector(which: Value, count: int) -> Value:
    """Returns integers of any dtype as int32, after they are limited to the numbers of cases."""
    if not dtypes.is_integer(which.dtype):
        return which
    last = np.minimum(count - 1, np.iinfo(which.dtype).max)
    low, high = (np.array(n, which.dtype) for n in (0, last))
    return conversion.convert_element_type(clamp(low, which, high), np.int32)


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
    return clamp(*aligned), axis


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


_clamp = declare(
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


_larger, _smaller = max, min  # which the parameters of `clamp` hide


def clamp(min: Operand, x: Operand, max: Operand) -> Value:
    """Limits `x` to the interval from `min` to `max`; complex numbers as `max` and `min` do."""
    low, x, high = match_scalars(min, x, max)
    if dtypes.is_complex(as_value(x).dtype):
        return _smaller(_larger(x, low), high)
    return _clamp.bind(low, x, high)


def zeros_like(x: Value) -> Value:
    """Returns zeros of the type of a value."""
    return instantiate(Zero(x.aval))
