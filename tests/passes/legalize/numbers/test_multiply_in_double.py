"""`multiply-in-double`: long products of numbers in single precision."""

import numpy as np
from support.stablehlo_runner import Example, build, run_examples

from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.pipeline import run_passes

FACTORS = (1 + np.random.default_rng(1).normal(size=(5_000, 2)) * 2.0**-12).astype(np.float32)


def product(operand):
    return hlo.reduce([operand], [hlo.full(1, (), np.float32)], [0], hlo.multiply)[0]


def test_long_products_are_rounded_once() -> None:
    exact = FACTORS.astype(float).prod(0)
    case = Example("product", (FACTORS,), product, exact.astype(np.float32))
    [single] = run_examples([case], "")["product"]
    [double] = run_examples([case], "multiply-in-double")["product"]
    unit = np.finfo(np.float32).eps
    assert np.abs(double / exact - 1).max() <= unit
    assert np.abs(single / exact - 1).max() > 4 * unit


def test_short_products_sums_and_doubles_stay() -> None:
    functions = {
        "short": ((FACTORS[:100],), product),
        "double": (
            (FACTORS.astype(float),),
            lambda x: hlo.reduce([x], [hlo.full(1, (), np.float64)], [0], hlo.multiply)[0],
        ),
        "sum": (
            (FACTORS,),
            lambda x: hlo.reduce([x], [hlo.full(0, (), np.float32)], [0], hlo.add)[0],
        ),
    }
    module = build(functions)
    before = str(module)
    run_passes(module, "multiply-in-double")
    assert str(module) == before
