"""Ops of error functions' relatives and of functions that are integrals: `erfcx`, `expi` ...

The evaluator is SciPy's function; the compiled code is a formula of `error_formulas.py` or
`integral_formulas.py`. Derivatives follow from the definitions (DLMF 6, 7, 8.19, 25.12).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.formula import Term
from axir.dialect.core import dtypes
from axir.dialect.core.late_modules import scipy_special as library
from axir.dialect.ops.elementwise.arithmetic import add, div, floor, mul, neg, square, sub
from axir.dialect.ops.elementwise.comparison import eq, lt, select_n
from axir.dialect.ops.elementwise.family import COMPLEX, FLOAT, binary, full, scipy_special, unary
from axir.dialect.ops.elementwise.operand_shapes import broadcast_to
from axir.dialect.ops.elementwise.transcendental import cos, erf, exp, log, sin
from axir.dialect.program.op_table import Traceable
from axir.dialect.program.operation import Sample
from axir.dialect.program.rules import Value

from . import error_formulas, integral_formulas
from .formula_ops import few_samples, no_derivative, not_written, quick_for_one, written

_EDGES = (0.0, -0.0, 0.5, 1.0, -1.0, 4.9, 5.1, 30.0, -20.0, np.inf, -np.inf, np.nan)
_OWENS_EDGES = (0.0, -0.0, 0.5, 1.0, -2.0, np.inf, -np.inf, np.nan)
_POSITIVE = (0.0, -0.0, 0.5, 1.0, 1.5, 13.0, 25.0, -1.0, np.inf, -np.inf, np.nan)


def _integral(
    name: str,
    evaluate: Callable[..., object],
    formula: Callable[..., object],
    slope: Callable[[Value, Value], Value],
    low: float,
    high: float,
    edges: Sequence[float] = _EDGES,
) -> Traceable:
    """Declares a function of one number, given its derivative in terms of the result and it."""
    function = unary(
        name,
        evaluate,
        not_written,
        FLOAT,
        samples=few_samples(1, low, high, edges, 64.0),
        jvp=[lambda dx, out, x: mul(dx, slope(out, x))],
    )
    return written(function, formula)


def _of_scipy(name: str, part: int) -> Callable[..., object]:
    """Returns one of several results of a function of SciPy, which loses the sign of zero."""
    both = scipy_special(name)

    def evaluate(x: np.ndarray) -> np.ndarray:
        value = both(x)[part]
        return np.where(value == 0, np.copysign(value, x), value)

    return evaluate


def _regular(x: Value, at: float) -> tuple[Value, Value]:
    """Tells where a number equals another one, and replaces it there."""
    is_there = eq(x, at)
    return is_there, select_n(is_there, x, full((), at + 1, x.dtype))


# Relatives of the error function ---------------------------------------------------------------

erfcx = _integral(
    "erfcx",
    scipy_special("erfcx"),
    error_formulas.erfcx,
    lambda out, x: sub(mul(mul(2, x), out), 2 / math.sqrt(math.pi)),
    -3.0,
    9.0,
)
dawsn = _integral(
    "dawsn",
    scipy_special("dawsn"),
    error_formulas.dawson,
    lambda out, x: sub(1, mul(mul(2, x), out)),
    -5.0,
    5.0,
)

erfcinv = _integral(
    "erfcinv",
    scipy_special("erfcinv"),
    error_formulas.inverse_complement,
    lambda out, y: mul(-math.sqrt(math.pi) / 2, exp(square(out))),
    0.1,
    1.9,
    (0.0, -0.0, 2.0, 1.0, 1e-3, 1e-30, 2e-38, -0.5, 3.0, np.inf, -np.inf, np.nan),
)
ndtri = _integral(
    "ndtri",
    scipy_special("ndtri"),
    error_formulas.normal_quantile,
    lambda out, p: mul(math.sqrt(2 * math.pi), exp(mul(0.5, square(out)))),
    0.05,
    0.95,
    (0.0, -0.0, 1.0, 0.5, 1e-3, 1e-30, -0.5, 2.0, np.inf, -np.inf, np.nan),
)


def _evaluate_wofz(z: np.ndarray) -> np.ndarray:
    return library.wofz(z).astype(z.dtype)


def _lower_wofz(z: ir.Value) -> ir.Value:
    narrow = hlo.element_type_of(hlo.real(z))
    parts = [Term(hlo.convert(part, dtypes.float64)) for part in (hlo.real(z), hlo.imag(z))]
    real, imag = error_formulas.faddeeva(*parts)
    return hlo.complex(*(hlo.convert(part.value, narrow) for part in (real, imag)))


def _wofz_samples() -> list[Sample]:
    generator = np.random.default_rng(0)

    def drawn(*shape: int) -> np.ndarray:
        return generator.uniform(-2, 2, shape) + 1j * generator.uniform(-2, 2, shape)

    edges = np.array(
        [0, complex(0.0, -0.0), complex(np.inf, 1), complex(np.nan, np.nan), 30, 1 - 3j],
        np.complex64,
    )
    return [
        Sample((drawn(2, 3).astype(np.complex64),), tolerance=64.0),
        Sample((drawn(1, 2, 1, 1, 2, 1),), tolerance=64.0),
        Sample((drawn().astype(np.complex64),), tolerance=64.0),
        Sample((np.zeros((0, 2), np.complex64),)),
        Sample((edges,), is_smooth=False, tolerance=64.0),
    ]


wofz: Traceable = unary(
    "wofz",
    _evaluate_wofz,
    _lower_wofz,
    COMPLEX,
    samples=_wofz_samples,
    jvp=[
        lambda dz, out, z: mul(
            dz, sub(full((), 2j / math.sqrt(math.pi), z.dtype), mul(mul(2, z), out))
        )
    ],
)

# Exponential integrals -------------------------------------------------------------------------


def _evaluate_expn(n: np.ndarray, x: np.ndarray) -> np.ndarray:
    order, wide = np.broadcast_arrays(n.astype(np.float64), x.astype(np.float64))
    is_known = (order == np.rint(order)) & (order >= 0) & np.isfinite(order)
    value = library.expn(np.where(is_known, order, 1).astype(np.int64), wide)
    return np.where(is_known, value, np.nan).astype(x.dtype)


def _expn_tangent(dx: Value, out: Value, n: Value, x: Value) -> Value:
    # -E_{n-1}, for n = 0 by the recurrence DLMF 8.19.12.
    at_zero = div(neg(add(out, exp(neg(x)))), x)
    is_zero = broadcast_to(lt(n, 1), out.shape)
    return mul(dx, select_n(is_zero, neg(expn(sub(n, 1), x)), broadcast_to(at_zero, out.shape)))


exp1 = _integral(
    "exp1",
    scipy_special("exp1"),
    integral_formulas.exponential_integral,
    lambda out, x: div(neg(exp(neg(x))), x),
    0.2,
    9.0,
    _POSITIVE,
)
expi = _integral(
    "expi",
    scipy_special("expi"),
    integral_formulas.principal_integral,
    lambda out, x: div(exp(x), x),
    0.5,
    9.0,
    (*_EDGES, 11.9, 12.1, 24.1),
)
expn: Traceable = written(
    binary(
        "expn",
        quick_for_one("expn", _evaluate_expn, lambda n, x: n >= 0 and n == round(n)),
        not_written,
        FLOAT,
        operands=("n", "x"),
        jvp=[
            no_derivative("expn", 0, "its order n"),
            _expn_tangent,
        ],
    ),
    integral_formulas.generalized_integral,
)


def _expn_samples() -> list[Sample]:
    orders, points = np.meshgrid([0, 1, 2, 7, 40, -1, 1.5, np.nan, np.inf], [*_POSITIVE, 1e-3])
    generator = np.random.default_rng(0)
    x = generator.uniform(0.2, 4, (2, 3))
    edges = (orders.ravel().astype(np.float32), points.ravel().astype(np.float32))
    return [
        Sample((np.array([[1], [3]], np.float32), x.astype(np.float32)), tolerance=64.0),
        Sample((np.array([1.0, 2, 5]).reshape(1, 1, 1, 1, 1, 3), x[None, None, None, None])),
        Sample((np.float32(2), np.float32(0.5)), tolerance=64.0),
        Sample((np.zeros((0, 2), np.float32), np.zeros((0, 2), np.float32))),
        Sample(edges, is_smooth=False, tolerance=64.0),
    ]


expn.primitive.samples = _expn_samples

# Sine and cosine integrals, Fresnel integrals, the dilogarithm ---------------------------------


def _sine_quotient(out: Value, x: Value) -> Value:
    is_zero, safe = _regular(x, 0.0)
    return select_n(is_zero, div(sin(safe), safe), full((), 1, x.dtype))


def _phase(x: Value) -> Value:
    """pi x^2 / 2 less a multiple of 2 pi."""
    half = mul(0.5, square(x))
    return mul(math.pi, sub(half, mul(2, floor(add(mul(0.5, half), 0.5)))))


def _spence_slope(out: Value, x: Value) -> Value:
    is_one, safe = _regular(x, 1.0)
    return select_n(is_one, div(log(safe), sub(1, safe)), full((), -1, x.dtype))


sine_integral = _integral(
    "sine_integral", _of_scipy("sici", 0), integral_formulas.sine_integral, _sine_quotient, -9, 9
)
cosine_integral = _integral(
    "cosine_integral",
    _of_scipy("sici", 1),
    integral_formulas.cosine_integral,
    lambda out, x: div(cos(x), x),
    0.5,
    9.0,
)
fresnel_sine = _integral(
    "fresnel_sine",
    _of_scipy("fresnel", 0),
    integral_formulas.fresnel_sine,
    lambda out, x: sin(_phase(x)),
    -3.0,
    3.0,
)
fresnel_cosine = _integral(
    "fresnel_cosine",
    _of_scipy("fresnel", 1),
    integral_formulas.fresnel_cosine,
    lambda out, x: cos(_phase(x)),
    -3.0,
    3.0,
)
spence = _integral(
    "spence", scipy_special("spence"), integral_formulas.spence, _spence_slope, 0.1, 6.0, _POSITIVE
)

# Owen's T function -----------------------------------------------------------------------------


def _owens_in_h(dh: Value, out: Value, h: Value, a: Value) -> Value:
    density = mul(-0.5 / math.sqrt(2 * math.pi), exp(mul(-0.5, square(h))))
    return mul(dh, mul(density, erf(mul(math.sqrt(0.5), mul(a, h)))))


def _owens_in_a(da: Value, out: Value, h: Value, a: Value) -> Value:
    power = add(1, square(a))
    return mul(da, div(exp(mul(-0.5, mul(square(h), power))), mul(2 * math.pi, power)))


owens_t = written(
    binary(
        "owens_t",
        scipy_special("owens_t"),
        not_written,
        FLOAT,
        operands=("h", "a"),
        jvp=[_owens_in_h, _owens_in_a],
        samples=few_samples(2, -2.0, 2.0, _OWENS_EDGES, 128.0),
    ),
    integral_formulas.owens_t,
)
