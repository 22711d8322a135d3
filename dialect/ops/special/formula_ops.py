"""Shared code of ops that are compiled as formulas."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn

import numpy as np

from axir.dialect.builders.formula import lower_formula
from axir.dialect.core import dtypes
from axir.dialect.core.errors import UnsupportedRuleError
from axir.dialect.ops.elementwise.family import UNDIFFERENTIABLE
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
