"""Reductions of trees of arrays by a function: `reduce`, `reduce_window`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from axir._trees import tree
from axir.dialect.core.annotations import Options, UserFunction, UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.ops.reductions import variadic_reduce
from axir.dialect.ops.windows import reduce_window_by_function


def _by_leaves(
    reduction: UserFunction,
    operands: UserObject,
    init_values: object,
    computation: Callable[[object, object], object],
    *args: Options,
) -> object:
    """Applies a reduction of arrays, or of lists of them, to a tree."""
    leaves, structure = tree.flatten(operands)
    is_list = type(operands) in (list, tuple) and len(leaves) == len(operands)
    if structure.is_leaf() or is_list:
        return reduction(operands, init_values, computation, *args)

    @functools.wraps(computation)
    def flat(accumulators: list[object], elements: list[object]) -> list[UserObject]:
        result = computation(structure.unflatten(accumulators), structure.unflatten(elements))
        return tree.flatten_like(structure, result, "Result of the computation of a reduction")

    inits = tree.flatten_like(structure, init_values, "Initial values of a reduction")
    return structure.unflatten(reduction(leaves, inits, flat, *args))


@functools.wraps(variadic_reduce.reduce)
def reduce(
    operands: object,
    init_values: object,
    computation: Callable[[UserObject, UserObject], UserObject],
    dimensions: Sequence[int],
    out_sharding: None = None,
) -> UserObject:
    """Reduces a tree of arrays along axes by a function of two trees of scalars."""
    reduction = variadic_reduce.reduce
    return _by_leaves(reduction, operands, init_values, computation, dimensions, out_sharding)


@functools.wraps(reduce_window_by_function.reduce_window)
def reduce_window(
    operand: ArrayLike,
    init_value: object,
    computation: Callable[[UserObject, UserObject], UserObject],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> UserObject:
    """Reduces sliding windows of a tree of arrays by a function of two trees of scalars."""
    window = (window_dimensions, window_strides, padding, base_dilation, window_dilation)
    reduction = reduce_window_by_function.reduce_window
    return _by_leaves(reduction, operand, init_value, computation, *window)
