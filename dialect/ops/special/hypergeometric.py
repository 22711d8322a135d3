"""Ops of the hypergeometric functions 1F1 and 2F1, and of their derivatives in the parameters.

SciPy evaluates the functions. Compiled code and the derivatives use the formulas of
`hypergeometric_formulas.py`. Derivatives in the argument are DLMF 13.3.15 and 15.5.1. Derivatives
in the parameters are ops; these have derivatives in the argument only.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from axir.dialect.builders.formula import evaluate_formula, lower_formula
from axir.dialect.core.late_modules import scipy_special
from axir.dialect.ops.elementwise.arithmetic import add, div, mul, neg, square, sub
from axir.dialect.ops.elementwise.family import FLOAT, Signature, elementwise
from axir.dialect.program.operation import Sample
from axir.dialect.program.primitive import Primitive
from axir.dialect.program.rules import Value

from . import hypergeometric_formulas as formulas
from .formula_ops import no_derivative, not_written


def _of_scipy(name: str) -> Callable[..., object]:
    """Returns SciPy's function as evaluator, with nan where an operand is not finite.

    The result is 1 where the first parameter is 0, also at the poles of the last parameter.
    """

    def evaluate(*operands: np.ndarray) -> np.ndarray:
        wide = np.broadcast_arrays(*[x.astype(np.float64) for x in operands])
        is_finite = np.logical_and.reduce([np.isfinite(x) for x in wide])
        safe = [np.where(is_finite, x, 1.0) for x in wide]
        value = getattr(scipy_special, name)(*safe)
        value = np.where(safe[0] == 0, 1.0, value)
        return np.where(is_finite, value, np.nan).astype(operands[0].dtype)

    return evaluate


def _samples(*ranges: tuple[float, float]) -> Callable[[], list[Sample]]:
    def samples() -> list[Sample]:
        generator = np.random.default_rng(0)

        def drawn(shape: tuple[int, ...], dtype: type) -> Sample:
            values = [np.asarray(generator.uniform(a, b, shape)) for a, b in ranges]
            return Sample(tuple(x.astype(dtype) for x in values), tolerance=256.0)

        points = np.array([0.5, 1.0, -0.0, np.inf, -np.inf, np.nan, 0.5], np.float32)
        edges = [np.roll(points, 2 * place) for place in range(len(ranges))]
        return [
            drawn((2, 3), np.float32),
            drawn((1, 2, 1, 1, 2, 1), np.float32),
            drawn((), np.float32),
            drawn((0, 2), np.float32),
            Sample(tuple(edges), is_smooth=False, tolerance=256.0),
        ]

    return samples


def _declared(
    name: str,
    evaluate: Callable[..., object],
    formula: Callable[..., object],
    jvp: list[Callable[..., Value]],
    *ranges: tuple[float, float],
) -> Primitive:
    signature = Signature(len(ranges), FLOAT)
    primitive = elementwise(
        name,
        evaluate,
        not_written,
        signature,
        jvp=jvp,
        samples=_samples(*ranges),
    )
    primitive.lower = lower_formula(formula)
    return primitive


# 1F1 -------------------------------------------------------------------------------------------

_CONFLUENT = ((0.5, 3.0), (1.0, 4.0), (-4.0, 4.0))


def _confluent_in_x(dx: Value, out: Value, a: Value, b: Value, x: Value) -> Value:
    return mul(dx, mul(div(a, b), hyp1f1.bind(add(a, 1), add(b, 1), x)))


def _slope_in_a(dx: Value, out: Value, a: Value, b: Value, x: Value) -> Value:
    # The derivatives in a and x commute: differentiates a / b 1F1(a + 1; b + 1; x) in a.
    shifted = (add(a, 1), add(b, 1), x)
    slope = add(hyp1f1.bind(*shifted), mul(a, hyp1f1_in_a.bind(*shifted)))
    return mul(dx, div(slope, b))


def _slope_in_b(dx: Value, out: Value, a: Value, b: Value, x: Value) -> Value:
    shifted = (add(a, 1), add(b, 1), x)
    slope = sub(hyp1f1_in_b.bind(*shifted), div(hyp1f1.bind(*shifted), b))
    return mul(dx, mul(div(a, b), slope))


def _no_parameters(name: str, *names: str) -> list[Callable[..., Value]]:
    return [no_derivative(name, i, f"its parameter {what}") for i, what in enumerate(names)]


hyp1f1: Primitive = _declared(
    "hyp1f1",
    _of_scipy("hyp1f1"),
    formulas.confluent,
    [
        lambda da, out, a, b, x: mul(da, hyp1f1_in_a.bind(a, b, x)),
        lambda db, out, a, b, x: mul(db, hyp1f1_in_b.bind(a, b, x)),
        _confluent_in_x,
    ],
    *_CONFLUENT,
)
hyp1f1_in_a: Primitive = _declared(
    "hyp1f1_in_a",
    evaluate_formula(formulas.confluent_in_a),
    formulas.confluent_in_a,
    [*_no_parameters("hyp1f1_in_a", "a", "b"), _slope_in_a],
    *_CONFLUENT,
)
hyp1f1_in_b: Primitive = _declared(
    "hyp1f1_in_b",
    evaluate_formula(formulas.confluent_in_b),
    formulas.confluent_in_b,
    [*_no_parameters("hyp1f1_in_b", "a", "b"), _slope_in_b],
    *_CONFLUENT,
)

# 2F1 -------------------------------------------------------------------------------------------

_GAUSS = ((0.5, 2.0), (0.5, 2.0), (1.0, 4.0), (-2.0, 0.8))


def _gauss_in_x(dx: Value, out: Value, a: Value, b: Value, c: Value, x: Value) -> Value:
    return mul(dx, mul(div(mul(a, b), c), hyp2f1.bind(add(a, 1), add(b, 1), add(c, 1), x)))


def _gauss_slope(operand: int) -> Callable[..., Value]:
    """Returns the jvp rule in x of the derivative in a parameter.

    It differentiates the derivative in x, a b / c 2F1(a + 1, b + 1; c + 1; x), in that parameter.
    """

    def rule(dx: Value, out: Value, a: Value, b: Value, c: Value, x: Value) -> Value:
        shifted = (add(a, 1), add(b, 1), add(c, 1), x)
        factors = (div(b, c), div(a, c), neg(div(mul(a, b), square(c))))
        slope = mul(div(mul(a, b), c), HYP2F1_SLOPES[operand].bind(*shifted))
        return mul(dx, add(slope, mul(factors[operand], hyp2f1.bind(*shifted))))

    return rule


def _in_parameter(operand: int) -> Callable[..., Value]:
    return lambda tangent, out, *primals: mul(tangent, HYP2F1_SLOPES[operand].bind(*primals))


hyp2f1: Primitive = _declared(
    "hyp2f1",
    _of_scipy("hyp2f1"),
    formulas.gauss,
    [_in_parameter(0), _in_parameter(1), _in_parameter(2), _gauss_in_x],
    *_GAUSS,
)
HYP2F1_SLOPES: list[Primitive] = [
    _declared(
        f"hyp2f1_in_{name}",
        evaluate_formula(formulas.gauss_in(operand)),
        formulas.gauss_in(operand),
        [*_no_parameters(f"hyp2f1_in_{name}", "a", "b", "c"), _gauss_slope(operand)],
        *_GAUSS,
    )
    for operand, name in enumerate("abc")
]
