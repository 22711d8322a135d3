"""Reductions by a function of the user's: `reduce`, of several arrays at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import from_numpy
from axir.dialect.core.errors import one_layout
from axir.dialect.core.symbolic_zeros import Zero
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.arithmetic import add, mul
from axir.dialect.ops.elementwise.comparison import gt, select_n
from axir.dialect.ops.elementwise.family import instantiate
from axir.dialect.ops.elementwise.samples import edge_rows
from axir.dialect.ops.elementwise.transcendental import exp, log
from axir.dialect.ops.shape.movement import batch_size
from axir.dialect.ops.shape.rearranging import broadcast, broadcast_in_dim, moveaxis
from axir.dialect.program.dimensions import Dimensions, reduced_along
from axir.dialect.program.function import Function
from axir.dialect.program.function_rules import LoweringContext
from axir.dialect.program.function_tracing import trace_function
from axir.dialect.program.op_table import declare
from axir.dialect.program.operation import Sample
from axir.dialect.program.parameters import Ints
from axir.dialect.program.rules import BatchAxes, Operand, Results, Tangent, Value

from .computations import (
    Computation,
    apply_elementwise,
    check_equal_shapes,
    paired_with_tangents,
)
from .folding import batch_axes, canonical_axes, check_axes, fold, gather_axes, without
from .reduce import (
    reduce_and,
    reduce_max,
    reduce_min,
    reduce_or,
    reduce_prod,
    reduce_sum,
    reduce_xor,
)

# Types -----------------------------------------------------------------------------------------


def _infer(*types: ShapedArray, jaxpr: Function, dimensions: tuple[int, ...]) -> list[ShapedArray]:
    count = len(types) // 2
    operands, inits = types[:count], types[count:]
    shape = operands[0].shape
    check_equal_shapes("reduce", operands)
    check_axes("reduce", dimensions, len(shape))
    kept = without(shape, dimensions)
    return [
        ShapedArray(kept, x.dtype, x.weak_type and init.weak_type)
        for x, init in zip(operands, inits, strict=True)
    ]


def _reduce_by_fold(
    function: Function, operands: Sequence[Value], inits: Sequence[Value], axes: tuple[int, ...]
) -> list[Value]:
    """Reduces by halving; initial values may have the shape of the result.

    `function` combines accumulators, then elements. Without axes nothing is combined: the operands
    are the results, without the initial values, as in StableHLO.
    """
    if not axes:
        return list(operands)
    shape = without(operands[0].shape, axes)
    accumulators = [x if x.shape == shape else broadcast_in_dim(x, shape, ()) for x in inits]
    if operands[0].size == 0:
        return accumulators
    gathered = [gather_axes(x, axes) for x in operands]
    total = fold(lambda lhs, rhs: apply_elementwise(function, [*lhs, *rhs]), gathered)
    return apply_elementwise(function, [*accumulators, *total])


def _evaluate(
    *arrays: np.ndarray, jaxpr: Function, dimensions: tuple[int, ...]
) -> list[np.ndarray]:
    count = len(arrays) // 2
    values = [from_numpy(x) for x in arrays]
    results = _reduce_by_fold(jaxpr, values[:count], values[count:], dimensions)
    return [x.host() for x in results]  # type: ignore[attr-defined]


# Derivatives -----------------------------------------------------------------------------------


def _jvp(
    primals: Sequence[Value],
    tangents: Sequence[Tangent],
    outs: Results,
    *,
    jaxpr: Function,
    dimensions: tuple[int, ...],
) -> Sequence[Tangent]:
    """Folds values together with their tangents, combined by the tangent of the computation."""
    count = len(primals) // 2
    is_inexact = [dtypes.is_inexact(x.dtype) for x in primals[:count]]
    if all(type(t) is Zero for t in tangents):
        return [Zero(out.aval.to_tangent_aval()) for out in outs]
    combined = paired_with_tangents(jaxpr, tuple(is_inexact))
    moving = [
        instantiate(tangent)
        for tangent, is_moving in zip(tangents, is_inexact * 2, strict=True)
        if is_moving
    ]
    active = len(moving) // 2
    results = _reduce_by_fold(
        combined,
        [*primals[:count], *moving[:active]],
        [*primals[count:], *moving[active:]],
        dimensions,
    )
    remaining = iter(results[count:])
    return [
        next(remaining) if is_moving else Zero(out.aval.to_tangent_aval())
        for out, is_moving in zip(outs, is_inexact, strict=True)
    ]


# Batching and lowering -------------------------------------------------------------------------


def _batch(
    operands: Sequence[Value], axes: BatchAxes, *, jaxpr: Function, dimensions: tuple[int, ...]
) -> tuple[list[Value], list[int]]:
    count = len(operands) // 2
    size = batch_size(operands, axes)
    arrays = [
        _with_leading_axis(x, axis, size)
        for x, axis in zip(operands[:count], axes[:count], strict=True)
    ]
    shifted, _ = batch_axes(0, dimensions)
    inits = operands[count:]
    if all(axis is None for axis in axes[count:]):
        results = _reduce.bind(*arrays, *inits, jaxpr=jaxpr, dimensions=shifted)
        return results, [0] * count
    # Each batch element starts from another initial value, which the op does not support.
    shape = without(arrays[0].shape, shifted)
    spread = [_spread_init(x, axis, shape) for x, axis in zip(inits, axes[count:], strict=True)]
    return _reduce_by_fold(jaxpr, arrays, spread, shifted), [0] * count


def _with_leading_axis(x: Value, axis: int | None, size: int) -> Value:
    return broadcast(x, (size,)) if axis is None else moveaxis(x, axis, 0)


def _spread_init(init: Value, axis: int | None, shape: tuple[int, ...]) -> Value:
    return broadcast_in_dim(init, shape, () if axis is None else (0,))


def _lower(
    context: LoweringContext, *values: ir.Value, jaxpr: Function, dimensions: tuple[int, ...]
) -> list[ir.Value]:
    count = len(values) // 2

    def body(*scalars: Operand) -> list[Value]:
        return context.inline(jaxpr, *scalars)

    return hlo.reduce(values[:count], values[count:], dimensions, body)


# Samples and the function ----------------------------------------------------------------------


def sample_computations() -> tuple[Function, Function, Function]:
    """Returns log(e^x + e^y), the larger of labelled numbers, and a pair of sum and product."""
    float32, int32 = ShapedArray((), np.float32), ShapedArray((), np.int32)

    def sum_of_exponentials(x: Operand, y: Operand) -> list[Value]:
        return [log(add(exp(x), exp(y)))]

    def largest_with_label(x: Operand, i: Operand, y: Operand, j: Operand) -> list[Value]:
        return [select_n(gt(x, y), y, x), select_n(gt(x, y), j, i)]

    def sum_and_product(a: Operand, b: Operand, c: Operand, d: Operand) -> list[Value]:
        return [add(a, c), mul(b, d)]

    return (
        trace_function(sum_of_exponentials, [float32] * 2),
        trace_function(largest_with_label, [float32, int32] * 2),
        trace_function(sum_and_product, [float32] * 4),
    )


def _samples() -> list[Sample]:
    logsumexp, labelled, both = sample_computations()
    generator = np.random.default_rng(5)

    def draw(*shape: int) -> np.ndarray:
        return generator.uniform(0.5, 2, shape).astype(np.float32)

    zero, one, start = np.float32(0), np.float32(1), np.float32(-np.inf)
    labels = generator.integers(0, 9, (3, 4), np.int32)
    cases: list[tuple[tuple[Any, ...], Function, tuple[int, ...]]] = [
        ((draw(5), zero), logsumexp, (0,)),
        ((draw(3, 4), one), logsumexp, (1,)),
        ((draw(2, 3, 2), zero), logsumexp, (0, 2)),
        ((draw(0, 2), one), logsumexp, (0,)),
        ((draw(3), one), logsumexp, ()),
        ((draw(1, 2, 1, 1, 3, 1), one), logsumexp, (1, 4)),
        ((edge_rows(dtypes.float32), zero), logsumexp, (1,)),
        ((draw(3, 4), draw(3, 4), zero, one), both, (0,)),
        ((draw(3, 4), labels, start, np.int32(-1)), labelled, (1,)),
    ]
    return [
        Sample(
            tuple(np.asarray(x) for x in args),
            {"jaxpr": function, "dimensions": dimensions},
            is_smooth=function is not labelled and bool(np.isfinite(args[0]).all()),
        )
        for args, function, dimensions in cases
    ]


def _dimensions(
    operands: Sequence[ShapedArray],
    results: Sequence[ShapedArray],
    *,
    jaxpr: Function,
    dimensions: tuple[int, ...],
) -> Dimensions:
    return reduced_along(operands, results, dimensions, None)


_reduce = declare(
    "reduce",
    parameters={"jaxpr": Function, "dimensions": Ints},
    multiple_results=True,
    is_memoized=False,
    infer=_infer,
    evaluate=_evaluate,
    jvp=_jvp,
    dimensions=_dimensions,
    batch=_batch,
    lower=_lower,
    samples=_samples,
    unsupported={"transpose": "it need not be linear; differentiate it with jvp first."},
)

_MONOIDS: dict[str, Callable[..., Value]] = {
    "add": reduce_sum,
    "mul": reduce_prod,
    "max": reduce_max,
    "min": reduce_min,
    "and": reduce_and,
    "or": reduce_or,
    "xor": reduce_xor,
}


def reduce(
    operands: Operand,
    init_values: Operand,
    computation: Callable[..., object],
    dimensions: Sequence[int],
    out_sharding: None = None,
) -> UserObject:
    """Reduces arrays along axes by a function, all of them together.

    Args:
        operands: An array, or a tuple or list (in `axir.lax` any tree) of arrays of one shape.
        init_values: A scalar for each array, of its dtype; the reduction starts from it. It may be
            combined in more than once, so it should be an identity of the computation.
        computation: Associative and commutative; gets accumulators and elements (two scalars, or
            two tuples of scalars) and returns the new accumulators.
        dimensions: The axes to reduce.
        out_sharding: Only None; there is one layout.

    Returns:
        The reduced array, or a tuple or list of such, as the operands were.

    Raises:
        ShapeError: for operands of different shapes, or initial values that are not scalars.
        DTypeError: for initial values or results of other dtypes than the operands.
        ParameterError: for different numbers of operands and initial values, and for a computation
            that uses traced values from outside.
        AxisError: for an axis out of range or named twice.

    >>> from axir.dialect.ops.elementwise.arithmetic import mul
    >>> reduce(np.array([2, 3], np.int32), 1, mul, (0,))
    Array(6, dtype=int32)
    """
    if out_sharding is not None:
        raise one_layout("reduce", out_sharding)
    given = Computation("reduce", operands, init_values, computation)
    axes = canonical_axes("reduce", tuple(dimensions), given.arrays[0].ndim)
    monoid = given.monoid()
    if monoid is not None:
        results = [_MONOIDS[monoid](given.arrays[0], axes)]
    else:
        results = _reduce.bind(*given.arrays, *given.inits, jaxpr=given.function, dimensions=axes)
    return given.packed(results)
