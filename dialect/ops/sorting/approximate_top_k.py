"""`approx_max_k` and `approx_min_k`: approximate in other libraries, exact here."""

from __future__ import annotations

import operator

from axir.dialect.core import dtypes
from axir.dialect.core.errors import DTypeError, ParameterError
from axir.dialect.ops.elementwise.arithmetic import neg
from axir.dialect.ops.elementwise.family import as_value
from axir.dialect.program.rules import Operand, Value

from .sort import top_k


def _operand(name: str, operand: Operand, recall_target: float) -> Value:
    operand = as_value(operand)
    if not dtypes.is_float(operand.dtype):
        raise DTypeError(
            f"{name}: the operand must be of a floating-point dtype, not {operand.dtype}.",
            "Cast it with x.astype(float), or use lax.top_k.",
        )
    if not 0 < recall_target <= 1:
        raise ParameterError(f"{name}: recall_target={recall_target} must lie in (0, 1].")
    return operand


def approx_max_k(
    operand: Operand,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> tuple[Value, Value]:
    """Returns the `k` largest elements along a dimension, and their indices, as `top_k` does.

    Args:
        operand: Array of floating-point numbers.
        k: The number of elements.
        reduction_dimension: The dimension to search along.
        recall_target: The least share of the elements to find; here, all of them are found.
        reduction_input_size_override: Has no effect on an exact result.
        aggregate_to_topk: Has no effect: the result has `k` elements in any case.

    Returns:
        The elements, the largest first, and their int32 indices.

    Raises:
        DTypeError: for integers and complex numbers.
        ParameterError: if there are fewer than `k` elements.

    >>> import numpy as np
    >>> approx_max_k(np.array([3, 1, 2], np.float32), 2)[1]
    Array([0, 2], dtype=int32)
    """
    operand = _operand("approx_max_k", operand, recall_target)
    return top_k(operand, operator.index(k), axis=reduction_dimension)


def approx_min_k(
    operand: Operand,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> tuple[Value, Value]:
    """Returns the `k` smallest elements along a dimension, and their indices.

    Arguments and errors are as in `approx_max_k`; the smallest element comes first.

    >>> import numpy as np
    >>> approx_min_k(np.array([3, 1, 2], np.float32), 2)[1]
    Array([1, 2], dtype=int32)
    """
    operand = _operand("approx_min_k", operand, recall_target)
    negative, indices = top_k(neg(operand), operator.index(k), axis=reduction_dimension)
    return neg(negative), indices
