"""Elementwise ops: arithmetic and rounding.

Each declaration gives the specific parts of the op: its evaluation in NumPy, its StableHLO, its
dtypes, and its derivative in each operand. A derivative rule receives the tangent `dx`, the result
`out` and the operands; a transpose rule the cotangent `ct`. Both are written with the functions
declared here, so they can be traced, and differentiated again.
"""

from __future__ import annotations

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core import dtypes
from axir.dialect.core.errors import ParameterError
from axir.dialect.core.symbolic_zeros import Zero
from axir.dialect.ops.later_ops import later
from axir.dialect.program.op_table import Traceable
from axir.dialect.program.operation import Sample
from axir.dialect.program.rules import (
    Operand,
    Tangent,
    Value,
)

from . import integer_evaluation as bits
from .comparison import eq, ge, lt, ordered_clamp, select_n, to_bool
from .family import (
    ANY,
    FLOAT,
    INEXACT,
    NUMBER,
    REAL,
    as_value,
    binary,
    full,
    instantiate,
    is_constant,
    match_scalars,
    unary,
)
from .operand_shapes import broadcast_to
from .samples import EDGES, Sampling, edge_values

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
    # Not x + 0.0, because that turns -0.0 into 0.0.
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
    has_out_dtype=True,
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
# Complex numbers compare by their real, then by their imaginary parts. As in NumPy nan wins. Of
# zeros with different signs either may win (IEEE 754): eager code takes NumPy's choice, compiled
# code takes JAX's.
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
# Equal operands give the second one, as in C; NumPy's float16 gives the first.
nextafter = binary(
    "nextafter",
    lambda x, y: np.where(x == y, y, np.nextafter(x, y)),
    hlo.next_after,
    FLOAT,
    operands=("x1", "x2"),
    samples=Sampling(edges=(*EDGES, 1e-3, 60000.0)),
)


def _share(operand: Value, out: Value, other: Value) -> Value:
    """Returns the weight of an operand in a max or min: one for the result, one half at a tie."""
    one, zero = full((), 1, out.dtype), full((), 0, out.dtype)
    is_result = select_n(eq(operand, out), zero, one)
    return select_n(eq(operand, other), is_result, full((), 0.5, out.dtype))


def _abs_tangent(dx: Value, out: Value, x: Value) -> Value:
    if not dtypes.is_complex(x.dtype):
        # One at zero, as in JAX: the slope on the right.
        return select_n(ge(x, 0), neg(dx), dx)
    # d|x| = Re(conj(x) dx) / |x|, and zero at the origin.
    safe = select_n(eq(out, 0), out, full((), 1, out.dtype))
    unit = later.complex_(div(later.real(x), safe), div(later.imag(x), safe))
    return add(
        mul(later.real(unit), later.real(dx)),
        mul(later.imag(unit), later.imag(dx)),
    )


def _sign_tangent(dx: Value, out: Value, x: Value) -> Tangent:
    if not dtypes.is_complex(x.dtype):
        return Zero(out.aval)
    # sign(x) = x / |x|: only the part of dx orthogonal to x turns the direction.
    magnitude = abs(x)
    safe = select_n(eq(magnitude, 0), magnitude, full((), 1, magnitude.dtype))
    along = add(
        mul(later.real(out), later.real(dx)),
        mul(later.imag(out), later.imag(dx)),
    )
    zero = full((), 0, along.dtype)
    projected = sub(dx, mul(out, later.complex_(along, broadcast_to(zero, along.shape))))
    return div(projected, later.complex_(safe, broadcast_to(zero, safe.shape)))


# Rounding --------------------------------------------------------------------------------------

_HALVES = (*EDGES, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49999997, 8388609.0)

floor = unary("floor", np.floor, hlo.floor, FLOAT, samples=Sampling(edges=_HALVES))
ceil = unary("ceil", np.ceil, hlo.ceil, FLOAT, samples=Sampling(edges=_HALVES))
is_finite = unary("is_finite", np.isfinite, hlo.is_finite, FLOAT, result=to_bool)

AWAY_FROM_ZERO, TO_NEAREST_EVEN = 0, 1


def _evaluate_round(x: np.ndarray, *, rounding_method: int) -> np.ndarray:
    if rounding_method == TO_NEAREST_EVEN:
        return np.rint(x)
    # Compares the fraction, because adding one half can round up just below one half.
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
    """Rounds to the nearest integer; `rounding_method` determines the rounding of halves."""
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


_larger, _smaller = max, min  # the parameters of `clamp` hide these names


def clamp(min: Operand, x: Operand, max: Operand) -> Value:
    """Limits `x` to the interval from `min` to `max`; compares complex numbers as `max` does."""
    low, x, high = match_scalars(min, x, max)
    if dtypes.is_complex(as_value(x).dtype):
        return _smaller(_larger(x, low), high)
    return ordered_clamp.bind(low, x, high)


def zeros_like(x: Value) -> Value:
    """Returns zeros of the type of a value."""
    return instantiate(Zero(x.aval))
