"""Evaluators of SciPy's functions for arrays of one element, without the overhead of arrays.

An evaluator reads its operands several times, to find elements where SciPy defines another value.
For one element that takes twenty times as long as the function.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from axir.dialect.core.annotations import UserFunction
from axir.dialect.ops.elementwise.transcendental import scipy_function


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
