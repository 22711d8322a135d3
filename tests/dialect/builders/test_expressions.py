"""A formula gives the same numbers in NumPy, as StableHLO, and on scalars in a loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from iree.compiler import ir
from support.stablehlo_runner import Example, build, deviations, run_examples

from axir.dialect.builders import expressions as e
from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.formula import Term
from axir.dialect.builders.scalars import Scalar, constant, index, integer
from axir.dialect.core.context import context
from axir.passes.legalize.elementwise_loops import elementwise
from axir.runtime import Target, compile_module

X = np.linspace(0.125, 3.0, 24)
Y = np.linspace(-2.0, 2.0, 24)

FORMULAS: dict[str, Callable[[Any, Any], Any]] = {
    "arithmetic": lambda x, y: (1 + x * 2 - y) / (3 - y) + 2 / x + (x - 1) * (y + x),
    "signs": lambda x, y: -y + abs(y),
    "comparisons": lambda x, y: e.select((x < 1) | (y >= 1) & ~(x > y), x, y),
    "equality": lambda x, y: e.select((x == 1.5) | (y != y) | (x <= 0.5), 1, y),
    "extremes": lambda x, y: e.maximum(e.minimum(x, y), -1),
    "nan": lambda x, y: e.select(e.is_nan(y / (x - x)), 2, y),
    "roots": lambda x, y: e.sqrt(x) + e.floor(y) + e.round_to_even(x * 2),
    "exponentials": lambda x, y: e.exp(y) + e.expm1(x),
    "logarithms": lambda x, y: e.log(x) + e.log1p(x),
    "circles": lambda x, y: e.sin(x) * e.cos(y),
    "powers": lambda x, y: e.power(x, y) + e.power(2, y) + e.power(x, 3),
    "series": lambda x, y: e.polynomial(y, (1, -0.5, 0.25)) + e.chebyshev(y / 2, (1, 2, 3)),
}


def as_terms(formula: Callable[[Any, Any], Any]) -> Callable[..., ir.Value]:
    return lambda x, y: formula(Term(x), Term(y)).value


def as_loop(name: str, formula: Callable[[Any, Any], Any]) -> Callable[..., list[ir.Value]]:
    def build_loop(x: ir.Value, y: ir.Value) -> list[ir.Value]:
        rewritten = hlo.add(x, y)  # a loop takes the place of an operation
        with ir.InsertionPoint(rewritten.owner):
            return elementwise(f"test {name}", [x, y], formula, [ir.F64Type.get()])

    return build_loop


def expected(name: str) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.asarray(FORMULAS[name](X, Y), np.float64)


EXAMPLES = [
    Example(f"{kind}_{name}", (X, Y), build_formula, expected(name))
    for name, formula in FORMULAS.items()
    for kind, build_formula in (("terms", as_terms(formula)), ("loop", as_loop(name, formula)))
]
# IREE has no such function of scalars.
EXAMPLES.append(Example("terms_erfc", (X, Y), lambda x, y: e.erfc(Term(y)).value, e.erfc(Y)))


@pytest.fixture(scope="module")
def results() -> dict[str, list[np.ndarray]]:
    return run_examples(EXAMPLES, compiler=lambda module: compile_module(module, Target()))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_values(results: dict[str, list[np.ndarray]], example: Example) -> None:
    # IREE's own exponentials and logarithms of doubles are right to 13 digits.
    assert deviations(results[example.name], example, ulps=2**11) == []


def test_no_value_is_known_while_code_is_built() -> None:
    def branch(x: ir.Value) -> ir.Value:
        with pytest.raises(TypeError, match="use select"):
            bool(Term(x) == 1)
        with pytest.raises(TypeError, match="unhashable"):
            hash(Term(x))
        return x

    build({"f": ((X,), branch)})


def test_constants_of_integers_wrap_around() -> None:
    with context(), ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            numbers: list[Scalar] = [
                constant(255, integer(8)),
                constant(-1, integer(1)),
                index(7),
                ~constant(1, integer(8)),
                -constant(3, integer(16)),
            ]
        text = str(module)
    assert "arith.constant -1 : i8" in text
    assert "arith.constant true" in text
    assert "arith.constant 7 : index" in text
    assert "arith.xori" in text
    assert "arith.subi" in text
    assert [str(x.type) for x in numbers] == ["i8", "i1", "index", "i8", "i16"]
