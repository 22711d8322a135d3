"""Special functions: Bessel, gamma, beta and zeta functions and their relatives.

The evaluator is SciPy's function if SciPy has it; the compiled code is the formula in
`gamma_formulas.py`, `incomplete_gamma.py`, `incomplete_beta.py` or `bessel_formulas.py`, written
out in StableHLO. Derivatives follow DLMF (chapters 5, 8, 10, 25). As in JAX, derivatives in the
parameters of `betainc` and in the order of `polygamma` do not exist.

At the edges values are SciPy's, also where JAX's formulas give others: igamma(0, x) = 1,
igammac(inf, x) = 1 and polygamma(n, inf) = 0 are nan in JAX, and zeta(s, 0) is infinite for s < 1.

Here: also the derivative of Hurwitz' zeta function in its exponent, written with differentiable
ops.
"""

from __future__ import annotations

import numpy as np

from axir.dialect.builders.formula import evaluate_formula, lower_formula
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import NestedNumbers
from axir.dialect.core.late_modules import scipy_special as library
from axir.dialect.ops.elementwise.arithmetic import add, div, mul, neg, sign, sub
from axir.dialect.ops.elementwise.comparison import eq, select_n
from axir.dialect.ops.elementwise.family import (
    FLOAT,
    Signature,
    binary,
    elementwise,
    full,
    match_scalars,
    scipy_function,
    scipy_special,
    unary,
)
from axir.dialect.ops.elementwise.operand_shapes import broadcast_to
from axir.dialect.ops.elementwise.samples import Sampling
from axir.dialect.ops.elementwise.transcendental import exp, log, log1p
from axir.dialect.program.op_table import Traceable
from axir.dialect.program.operation import Sample, Unsupported
from axir.dialect.program.rules import Operand, Value

from . import bessel_formulas, gamma_formulas, incomplete_beta, incomplete_gamma
from .formula_ops import few_samples, no_derivative, not_written, quick_for_one, written
from .gamma_formulas import EULER_MACLAURIN, SUMMED


def zeta_in_exponent(s: Value, q: Value) -> Value:
    """Returns the sum of -log(q + k) (q + k)^-s over k = 0, 1, ..., for s > 1 and q > 0; else nan.

    The first terms are added. The rest is the derivative of the Euler-Maclaurin formula (DLMF
    25.11.5) of the function.
    """
    total = neg(_weighted_power(s, q))
    for k in range(1, SUMMED):
        total = sub(total, _weighted_power(s, add(q, k)))
    last = add(q, SUMMED)
    logarithm, above = log(last), sub(s, 1)
    correction, slope = _correction(s, div(1, last))
    integral = div(last, above)
    rest = sub(slope, div(integral, above))
    rest = sub(rest, mul(logarithm, add(integral, add(correction, 0.5))))
    return add(total, mul(exp(neg(mul(s, logarithm))), rest))


def _weighted_power(s: Value, base: Value) -> Value:
    """Returns log(base) base^-s."""
    logarithm = log(base)
    return mul(logarithm, exp(neg(mul(s, logarithm))))


def _correction(s: Value, inverse: Value) -> tuple[Value, Value]:
    """Returns the Euler-Maclaurin corrections at 1 / inverse, and their derivative in s."""
    square = mul(inverse, inverse)
    factor, factor_slope = mul(s, inverse), inverse
    correction = mul(factor, EULER_MACLAURIN[0])
    slope = mul(factor_slope, EULER_MACLAURIN[0])
    for k, coefficient in enumerate(EULER_MACLAURIN[1:]):
        low, high = add(s, 2 * k + 1), add(s, 2 * k + 2)
        growth, growth_slope = mul(mul(low, high), square), mul(add(low, high), square)
        factor_slope = add(mul(factor_slope, growth), mul(factor, growth_slope))
        factor = mul(factor, growth)
        correction = add(correction, mul(factor, coefficient))
        slope = add(slope, mul(factor_slope, coefficient))
    return correction, slope


_POSITIVE = (0.0, -0.0, 0.5, 1.0, 2.5, 12.0, -1.0, np.inf, -np.inf, np.nan)
_ALL = (0.0, -0.0, 0.5, 1.0, 2.0, -0.5, -1.0, -2.5, 1e-3, 20.0, 300.0, 1e4, np.inf, -np.inf, np.nan)


# Bessel functions ------------------------------------------------------------------------------


def _i1e_tangent(dx: Value, out: Value, x: Value) -> Value:
    # i1e' = i0e - i1e (sign(x) + 1/x), which tends to 1/2 at 0.
    is_origin = eq(x, 0)
    safe = select_n(is_origin, x, full((), 1, x.dtype))
    slope = sub(bessel_i0e(safe), mul(out, add(sign(safe), div(1, safe))))
    return mul(dx, select_n(is_origin, slope, full((), 0.5, x.dtype)))


_i1e = scipy_special("i1e")
bessel_i0e = written(
    unary(
        "bessel_i0e",
        scipy_special("i0e"),
        not_written,
        FLOAT,
        samples=Sampling(low=-9.0, high=9.0, edges=_ALL),
        jvp=[lambda dx, out, x: mul(dx, sub(bessel_i1e(x), mul(sign(x), out)))],
    ),
    bessel_formulas.bessel_i0e,
)
bessel_i1e: Traceable = written(
    unary(
        # SciPy loses the sign of zero.
        "bessel_i1e",
        lambda x: np.copysign(_i1e(x), x),
        not_written,
        FLOAT,
        samples=Sampling(low=-9.0, high=9.0, edges=_ALL),
        jvp=[_i1e_tangent],
    ),
    bessel_formulas.bessel_i1e,
)

# Gamma and zeta functions ----------------------------------------------------------------------


def _evaluate_lgamma(x: np.ndarray) -> np.ndarray:
    return np.where(np.isinf(x), np.inf, scipy_special("gammaln")(x))


def _evaluate_digamma(x: np.ndarray) -> np.ndarray:
    return np.where(x == 0, -np.copysign(np.inf, x), scipy_special("digamma")(x))


def _evaluate_polygamma(m: np.ndarray, x: np.ndarray) -> np.ndarray:
    order, wide = np.broadcast_arrays(m.astype(np.float64), x.astype(np.float64))
    is_known = (order == np.rint(order)) & (order >= 0) & np.isfinite(order)
    value = library.polygamma(np.where(is_known, order, 1).astype(np.int64), wide)
    value = np.where(is_known, value, np.nan)
    return np.where(is_known & (order == 0), _evaluate_digamma(wide), value).astype(x.dtype)


def _evaluate_zeta(s: np.ndarray, q: np.ndarray) -> np.ndarray:
    order, wide = s.astype(np.float64), q.astype(np.float64)
    value = library.zeta(order, wide)
    if np.isfinite(order).all() and np.isfinite(value).all():  # nothing is at an edge
        return value.astype(s.dtype)
    # SciPy gives up at orders from 1e15 on; the formula does not.
    value = np.where(
        np.isnan(value), gamma_formulas.zeta(np.where(np.isinf(order), 2.0, order), wide), value
    )
    # An infinitely high power vanishes, except for numbers up to 1.
    is_pole = (wide <= 0) & (wide == np.rint(wide))
    beyond = np.where((wide < 1) | is_pole, np.inf, np.where(wide == 1, 1.0, 0.0))
    value = np.where(np.isposinf(order) & ~np.isnan(wide), beyond, value)
    is_undefined = (order < 1) | np.isnan(order) | np.isnan(wide)
    return np.where(is_undefined, np.nan, value).astype(s.dtype)


lgamma: Traceable = written(
    unary(
        "lgamma",
        quick_for_one("gammaln", _evaluate_lgamma),
        not_written,
        FLOAT,
        samples=Sampling(low=-1.8, high=9.5, edges=_ALL, tolerance=128.0),
        jvp=[lambda dx, out, x: mul(dx, digamma(x))],
    ),
    gamma_formulas.log_gamma,
)
digamma: Traceable = written(
    unary(
        "digamma",
        quick_for_one("digamma", _evaluate_digamma, lambda x: x != 0),
        not_written,
        FLOAT,
        samples=Sampling(low=0.2, high=9.5, edges=_ALL, tolerance=64.0),
        jvp=[lambda dx, out, x: mul(dx, polygamma(1, x))],
    ),
    gamma_formulas.digamma,
)
polygamma: Traceable = written(
    binary(
        "polygamma",
        _evaluate_polygamma,
        not_written,
        FLOAT,
        operands=("m", "x"),
        jvp=[
            no_derivative("polygamma", 0, "its order m"),
            lambda dx, out, m, x: mul(dx, polygamma(add(m, 1), x)),
        ],
    ),
    gamma_formulas.polygamma,
)
zeta: Traceable = written(
    binary(
        "zeta",
        quick_for_one("zeta", _evaluate_zeta, lambda s, q: s > 1 and q > 0),
        not_written,
        FLOAT,
        operands=("x", "q"),
        jvp=[
            lambda dx, out, x, q: mul(dx, zeta_in_exponent(x, q)),
            lambda dq, out, x, q: mul(dq, mul(neg(x), zeta(add(x, 1), q))),
        ],
        samples=few_samples(2, 1.2, 9.0, (*_POSITIVE, 2.0, -1.5), 64.0, dtypes.float16),
    ),
    gamma_formulas.zeta,
)


def _polygamma_samples() -> list[Sample]:
    generator = np.random.default_rng(0)

    def operands(m: NestedNumbers, shape: tuple[int, ...], dtype: np.dtype) -> Sample:
        x = np.asarray(generator.uniform(0.5, 6, shape)).astype(dtype)
        return Sample((np.array(m).astype(dtype), x), tolerance=64.0)

    orders, points = np.meshgrid([0, 1, 2, -1, 1.5, np.nan, np.inf], [*_POSITIVE, -0.5])
    edges = (orders.ravel().astype(np.float32), points.ravel().astype(np.float32))
    rank_6 = (1, 2, 1, 1, 3, 1)
    return [
        operands([[0], [1], [4]], (1, 2), dtypes.float32),
        operands(np.reshape([0, 1, 2, 3, 4, 1], rank_6), rank_6, dtypes.float64),
        operands(2, (3,), dtypes.float16),
        operands(3, (), dtypes.bfloat16),
        operands(np.zeros((0, 2)), (0, 2), dtypes.float32),
        Sample(edges, is_smooth=False, tolerance=64.0),
    ]


polygamma.primitive.samples = _polygamma_samples

# Incomplete gamma functions --------------------------------------------------------------------


def _log_density(a: Value, x: Value, shape: tuple[int, ...]) -> Value:
    """log(x^(a-1) e^-x / gamma(a)), for operands that broadcast to a shape."""
    # At x = 0 the power is 1 for a = 1, for any logarithm.
    is_first = broadcast_to(eq(a, 1), shape)
    logarithm = log(select_n(is_first, broadcast_to(x, shape), full((), 1, x.dtype)))
    return sub(sub(mul(sub(a, 1), logarithm), x), lgamma(a))


def _density_tangent(dx: Value, out: Value, a: Value, x: Value) -> Value:
    return mul(dx, exp(_log_density(a, x, out.shape)))


def _grad_a_tangent(dx: Value, out: Value, a: Value, x: Value) -> Value:
    # The derivatives in a and x commute: differentiates the density in a.
    return mul(dx, mul(exp(_log_density(a, x, out.shape)), sub(log(x), digamma(a))))


igamma = written(
    binary(
        "igamma",
        scipy_special("gammainc"),
        not_written,
        FLOAT,
        operands=("a", "x"),
        jvp=[lambda da, out, a, x: mul(da, igamma_grad_a(a, x)), _density_tangent],
    ),
    incomplete_gamma.igamma,
)
igammac = written(
    binary(
        "igammac",
        scipy_special("gammaincc"),
        not_written,
        FLOAT,
        operands=("a", "x"),
        jvp=[
            lambda da, out, a, x: neg(mul(da, igamma_grad_a(a, x))),
            lambda dx, out, a, x: neg(_density_tangent(dx, out, a, x)),
        ],
    ),
    incomplete_gamma.igammac,
)
igamma_grad_a: Traceable = written(
    binary(
        "igamma_grad_a",
        evaluate_formula(incomplete_gamma.igamma_grad_a),
        not_written,
        FLOAT,
        operands=("a", "x"),
        jvp=[no_derivative("igamma_grad_a", 0, "its parameter a"), _grad_a_tangent],
    ),
    incomplete_gamma.igamma_grad_a,
)
random_gamma_grad = written(
    binary(
        "random_gamma_grad",
        evaluate_formula(incomplete_gamma.gamma_sample_slope),
        not_written,
        FLOAT,
    ),
    incomplete_gamma.gamma_sample_slope,
)
random_gamma_grad.primitive.jvp = Unsupported(
    "jvp", "random_gamma_grad", "the derivative of a gamma sample is not differentiated again."
)

for _function in (igamma, igammac, igamma_grad_a, random_gamma_grad):
    _function.primitive.samples = few_samples(
        2, 0.3, 6.0, (*_POSITIVE, 300.0), 128.0, dtypes.float16
    )

# The incomplete beta function ------------------------------------------------------------------


def _betainc_tangent(dx: Value, out: Value, a: Value, b: Value, x: Value) -> Value:
    logarithm = add(mul(sub(b, 1), log1p(neg(x))), mul(sub(a, 1), log(x)))
    constant = sub(lgamma(add(a, b)), add(lgamma(a), lgamma(b)))
    return mul(dx, exp(add(logarithm, constant)))


def _evaluate_betainc(a: np.ndarray, b: np.ndarray, x: np.ndarray) -> np.ndarray:
    # SciPy's function in single precision overflows where a parameter is between 20 and 40.
    wide = (operand.astype(np.float64) for operand in (a, b, x))
    return np.asarray(scipy_function("betainc")(*wide)).astype(x.dtype)


def _betainc_samples() -> list[Sample]:
    generator = np.random.default_rng(0)

    def operands(shape: tuple[int, ...], dtype: np.dtype) -> tuple[np.ndarray, ...]:
        ranges = ((0.3, 5), (0.3, 5), (0.05, 0.95))
        return tuple(np.asarray(generator.uniform(r[0], r[1], shape)).astype(dtype) for r in ranges)

    _, b, x = operands((3,), dtypes.float16)
    a, *_ = operands((2, 1), dtypes.float32)
    _, *others = operands((1, 3), dtypes.float32)
    parameters = (0.0, 0.5, 2.0, 40.0, -1.0, np.inf, -np.inf, np.nan)
    grid = np.meshgrid(parameters, parameters, (0.0, -0.0, 0.25, 1.0, -0.1, 1.1, np.inf, np.nan))
    edges = tuple(g.ravel().astype(np.float32) for g in grid)
    grid = np.meshgrid((25.0, 30.0, 38.0, 1000.0), (25.0, 30.0, 38.0, 1000.0), (0.2, 0.5, 0.8))
    large = tuple(g.ravel().astype(np.float32) for g in grid)
    return [
        Sample((a, *others), tolerance=256.0),
        Sample(operands((1, 2, 1, 1, 2, 1), dtypes.float64), tolerance=256.0),
        Sample((np.float16(1.5).reshape(()), b, x)),
        Sample(operands((), dtypes.bfloat16)),
        Sample(operands((0, 2), dtypes.float32)),
        Sample(edges, is_smooth=False, tolerance=256.0),
        Sample(large, is_smooth=False, tolerance=256.0),
    ]


_betainc = elementwise(
    "regularized_incomplete_beta",
    _evaluate_betainc,
    not_written,
    Signature(3, FLOAT),
    jvp=[
        no_derivative("regularized_incomplete_beta", 0, "its parameter a"),
        no_derivative("regularized_incomplete_beta", 1, "its parameter b"),
        _betainc_tangent,
    ],
    samples=_betainc_samples,
)
_betainc.lower = lower_formula(incomplete_beta.betainc)


def betainc(a: Operand, b: Operand, x: Operand) -> Value:
    """Returns the regularized incomplete beta function I(x; a, b), differentiable in x."""
    return _betainc.bind(*match_scalars(a, b, x))
