"""Shared code of ops that are compiled as formulas, and evaluators for arrays of one element.

An evaluator of SciPy's functions reads its operands several times, to find elements where SciPy
defines another value. For one element that takes twenty times as long as the function.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NoReturn

import numpy as np

from axir.dialect.builders.formula import lower_formula
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import UserFunction
from axir.dialect.core.errors import UnsupportedRuleError
from axir.dialect.ops.elementwise.family import UNDIFFERENTIABLE, scipy_function
from axir.dialect.program.op_table import Traceable
from axir.dialect.program.operation import Sample
from axir.dialect.program.rules import Value


def written(function: Traceable, formula: Callable[..., object]) -> Traceable:
    """Lets the primitive of a function be compiled as a formula."""
    function.primitive.lower = lower_formula(formula)
    return function


def not_written(*operands: Value) -> NoReturn:
    """Stands in for the builder of StableHLO, until `written` gives a formula."""
    raise AssertionError("replaced by the formula")


def no_derivative(name: str, operand: int, what: str) -> Callable[..., Value]:
    """Returns the jvp rule of an operand without derivative."""
    UNDIFFERENTIABLE.setdefault(name, set()).add(operand)

    def rule(tangent: Value, out: Value, *primals: Value) -> Value:
        raise UnsupportedRuleError(
            f"{name} has no derivative in {what}.",
            "Hold it constant with stop_gradient, or define the derivative with custom_jvp.",
        )

    return rule


def few_samples(
    arity: int,
    low: float,
    high: float,
    edges: Sequence[float],
    tolerance: float,
    half: np.dtype | None = None,
) -> Callable[[], list[Sample]]:
    """Returns the samples of a function of one or two operands that takes seconds to compile.

    Args:
        arity: Number of operands.
        low, high: Range of the operands.
        edges: Further values, which are combined with each other.
        tolerance: As in `Sample`.
        half: float16 to sample half and double precision as well, with three more functions.
    """

    def samples() -> list[Sample]:
        generator = np.random.default_rng(0)

        def operands(dtype: np.dtype, *shapes: tuple[int, ...]) -> Sample:
            drawn = (
                np.asarray(generator.uniform(low, high, s)).astype(dtype) for s in shapes[:arity]
            )
            return Sample(tuple(drawn), tolerance=tolerance)

        grid = np.meshgrid(*[edges] * arity)
        edge_args = tuple(g.ravel().astype(np.float32) for g in grid)
        return [
            operands(dtypes.float32, (2, 1), (1, 3)),
            operands(dtypes.float64 if half else dtypes.float32, *[(1, 2, 1, 1, 2, 1)] * 2),
            operands(half, (3,), ()) if half else operands(dtypes.float32, (), ()),
            operands(dtypes.bfloat16, (), ()) if half else operands(dtypes.float32, (3,), ()),
            operands(dtypes.float32, (0, 2), (0, 2)),
            Sample(edge_args, is_smooth=False, tolerance=tolerance),
        ]

    return samples


def quick_for_one(
    name: str, evaluate: UserFunction, accepts: Callable[..., bool] | None = None
) -> Callable[..., object]:
    """Returns an evaluator that calls SciPy directly if operands have one element each.

    Args:
        name: The function in `scipy.special`.
        evaluate: The evaluator for all other operands, for operands that are not finite, and for
            results of SciPy that are zero or not finite.
        accepts: Tells whether SciPy's function has the same definition for given numbers; by
            default always.
    """

    def evaluate_quickly(*operands: np.ndarray) -> np.ndarray:
        numbers = [x.item() for x in operands if x.size == 1]
        is_single = len(numbers) == len(operands)
        if is_single and all(map(math.isfinite, numbers)) and (not accepts or accepts(*numbers)):
            value = float(scipy_function(name)(*numbers))
            if value != 0 and math.isfinite(value):
                shape = operands[0].shape
                for x in operands[1:]:
                    shape = x.shape if x.ndim > len(shape) else shape
                result = np.empty(shape, operands[-1].dtype)
                result.fill(value)
                return result
        return evaluate(*operands)

    return evaluate_quickly
