"""Reductions by a function of the user's: `reduce`, of several arrays at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import dtypes
from .. import stablehlo as hlo
from ..array import Array, from_numpy
from ..derived import derive
from ..errors import DTypeError, ParameterError, ShapeError
from ..function import Function
from ..primitive import Sample
from ..symbolic import Zero
from ..trace import function_name, trace_function
from ..types import ShapedArray
from .family import Value, as_value, instantiate
from .folding import (
    all_ones,
    batch_axes,
    canonical_axes,
    check_axes,
    fold,
    gather_axes,
    greatest,
    least,
    without,
)
from .movement import batch_size
from .reduce import (
    reduce_and,
    reduce_max,
    reduce_min,
    reduce_or,
    reduce_prod,
    reduce_sum,
    reduce_xor,
)
from .table import declare

# Types -----------------------------------------------------------------------------------------


def _infer(*types: ShapedArray, jaxpr: Function, dimensions: tuple[int, ...]) -> list[ShapedArray]:
    count = len(types) // 2
    operands, inits = types[:count], types[count:]
    shape = operands[0].shape
    if any(x.shape != shape for x in operands):
        raise ShapeError(
            f"reduce: operands must be of one shape, but are {' and '.join(map(str, operands))}.",
            "Broadcast them first.",
        )
    check_axes("reduce", dimensions, len(shape))
    kept = without(shape, dimensions)
    return [
        ShapedArray(kept, x.dtype, x.weak_type and init.weak_type)
        for x, init in zip(operands, inits, strict=True)
    ]


def _check_operands(operands: Sequence[Value], inits: Sequence[Value]) -> None:
    if not operands:
        raise ParameterError("reduce needs at least one operand.")
    if len(operands) != len(inits):
        raise ParameterError(
            f"reduce: {len(operands)} operands, but {len(inits)} initial values.",
            "Give each operand its own initial value.",
        )
    for x, init in zip(operands, inits, strict=True):
        if init.shape:
            raise ShapeError(f"reduce: initial values are scalars, but one is {init.aval}.")
        if x.dtype != init.dtype:
            raise DTypeError(
                f"reduce: the initial value {init.aval} of operand {x.aval} has another dtype.",
                f"Write numpy.{x.dtype}(...).",
            )


def _check_computation(function: Function, inits: Sequence[Value]) -> None:
    if function.captures:
        raise ParameterError(
            f"reduce: the computation {function.name!r} uses values from around it "
            f"({', '.join(str(v.type) for v in function.captures)}).",
            "Compute with its arguments and with constants only; apply the rest after the "
            "reduction.",
        )
    expected = [(init.shape, init.dtype) for init in inits]
    if [(t.shape, t.dtype) for t in function.output_types] != expected:
        raise DTypeError(
            f"reduce: the computation {function.name!r} must return values of the types of the "
            f"initial values ({', '.join(str(i.aval) for i in inits)}), but returns "
            f"({', '.join(map(str, function.output_types))}).",
            "Cast its results with x.astype(dtype).",
        )


# Application of a scalar function to arrays ----------------------------------------------------


def _apply(function: Function, arguments: Sequence[Value]) -> list[Value]:
    """Applies a function of scalars to each element of arrays of one shape."""
    from .shape import reshape

    shape = arguments[0].shape
    if shape == ():
        return function.evaluate(*arguments)
    size = math.prod(shape)
    if size == 0:
        return [instantiate(Zero(ShapedArray(shape, t.dtype))) for t in function.output_types]
    axes = (0,) * len(arguments)
    batched = derive(function, "vmap", size, axes, (0,) * len(function.outputs)).function
    results = batched.evaluate(*(reshape(x, (size,)) for x in arguments))
    return [reshape(x, shape) for x in results]


def _reduce_by_fold(
    function: Function, operands: Sequence[Value], inits: Sequence[Value], axes: tuple[int, ...]
) -> list[Value]:
    """Reduces by halving; initial values may have the shape of the result.

    `function` combines accumulators, then elements. Along no axes there is nothing to combine:
    the operands are the results, without the initial values, as in StableHLO.
    """
    from .shape import broadcast_in_dim

    if not axes:
        return list(operands)
    shape = without(operands[0].shape, axes)
    accumulators = [x if x.shape == shape else broadcast_in_dim(x, shape, ()) for x in inits]
    if operands[0].size == 0:
        return accumulators
    gathered = [gather_axes(x, axes) for x in operands]
    total = fold(lambda lhs, rhs: _apply(function, [*lhs, *rhs]), gathered)
    return _apply(function, [*accumulators, *total])


def _evaluate(
    *arrays: np.ndarray, jaxpr: Function, dimensions: tuple[int, ...]
) -> list[np.ndarray]:
    count = len(arrays) // 2
    values = [from_numpy(x) for x in arrays]
    results = _reduce_by_fold(jaxpr, values[:count], values[count:], dimensions)
    return [x.host() for x in results]


# Derivatives -----------------------------------------------------------------------------------


def _jvp(
    primals: Any, tangents: Any, outs: Any, *, jaxpr: Function, dimensions: tuple[int, ...]
) -> list[Any]:
    """Folds values together with their tangents, combined by the tangent of the computation."""
    count = len(primals) // 2
    is_inexact = [dtypes.is_inexact(x.dtype) for x in primals[:count]]
    if all(type(t) is Zero for t in tangents):
        return [Zero(out.aval.to_tangent_aval()) for out in outs]
    combined = _paired(jaxpr, tuple(is_inexact))
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


def _paired(function: Function, is_inexact: tuple[bool, ...]) -> Function:
    """Returns the computation on accumulators with tangents and elements with tangents."""
    key = ("reduce_pairs", is_inexact)
    if key not in function.derived:
        tangent = derive(function, "jvp", is_inexact * 2, True).function
        count, active = len(is_inexact), sum(is_inexact)
        types = tangent.input_types

        def body(*arguments: Value) -> list[Value]:
            half = count + active
            lhs, rhs = arguments[:half], arguments[half:]
            return tangent.evaluate(*lhs[:count], *rhs[:count], *lhs[count:], *rhs[count:])

        primal, moving = types[: 2 * count], types[2 * count :]
        paired = [*primal[:count], *moving[:active], *primal[count:], *moving[active:]]
        function.derived[key] = trace_function(body, paired, name=f"{function.name}_pairs")
    return function.derived[key]


# Batching and lowering -------------------------------------------------------------------------


def _batch(
    operands: Any, axes: Any, *, jaxpr: Function, dimensions: tuple[int, ...]
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
    # Each batch element starts from an initial value of its own, which the op does not know.
    shape = without(arrays[0].shape, shifted)
    spread = [_spread_init(x, axis, shape) for x, axis in zip(inits, axes[count:], strict=True)]
    return _reduce_by_fold(jaxpr, arrays, spread, shifted), [0] * count


def _with_leading_axis(x: Value, axis: int | None, size: int) -> Value:
    from .shape import broadcast, moveaxis

    return broadcast(x, (size,)) if axis is None else moveaxis(x, axis, 0)


def _spread_init(init: Value, axis: int | None, shape: tuple[int, ...]) -> Value:
    from .shape import broadcast_in_dim

    return broadcast_in_dim(init, shape, () if axis is None else (0,))


def _lower(context: Any, *values: Any, jaxpr: Function, dimensions: tuple[int, ...]) -> list[Any]:
    count = len(values) // 2

    def body(*scalars: Any) -> list[Any]:
        return context.inline(jaxpr, *scalars)

    return hlo.reduce(values[:count], values[count:], dimensions, body)


# Samples and the function ----------------------------------------------------------------------


def _samples() -> list[Sample]:
    from .elementwise import add, gt, mul, select_n
    from .transcendental import exp, log

    float32, int32 = ShapedArray((), np.float32), ShapedArray((), np.int32)

    def sum_of_exponentials(x: Any, y: Any) -> list[Any]:
        return [log(add(exp(x), exp(y)))]

    def largest_with_label(x: Any, i: Any, y: Any, j: Any) -> list[Any]:
        return [select_n(gt(x, y), y, x), select_n(gt(x, y), j, i)]

    def sum_and_product(a: Any, b: Any, c: Any, d: Any) -> list[Any]:
        return [add(a, c), mul(b, d)]

    logsumexp = trace_function(sum_of_exponentials, [float32] * 2)
    labelled = trace_function(largest_with_label, [float32, int32] * 2)
    both = trace_function(sum_and_product, [float32] * 4)
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
        ((draw(3, 4), draw(3, 4), zero, one), both, (0,)),
        ((draw(3, 4), labels, start, np.int32(-1)), labelled, (1,)),
    ]
    return [
        Sample(
            tuple(np.asarray(x) for x in args),
            {"jaxpr": function, "dimensions": dimensions},
            is_smooth=function is not labelled,
        )
        for args, function, dimensions in cases
    ]


_reduce = declare(
    "reduce",
    multiple_results=True,
    is_memoized=False,
    infer=_infer,
    evaluate=_evaluate,
    jvp=_jvp,
    batch=_batch,
    lower=_lower,
    samples=_samples,
    unsupported={"transpose": "it need not be linear; differentiate it with jvp first."},
)

# Special forms by the one op that a computation consists of, with the identity of that op.
_MONOIDS: dict[str, tuple[Callable[..., Value], Callable[[np.dtype], Any]]] = {
    "add": (reduce_sum, lambda dtype: 0),
    "mul": (reduce_prod, lambda dtype: 1),
    "max": (reduce_max, least),
    "min": (reduce_min, greatest),
    "and": (reduce_and, all_ones),
    "or": (reduce_or, lambda dtype: 0),
    "xor": (reduce_xor, lambda dtype: 0),
}


def monoid_of(function: Function, init: Any) -> Callable[..., Value] | None:
    """Returns the special reduction that equals the one by a function from an initial value.

    Args:
        function: Combines two scalars.
        init: The initial value; only a known one can be an identity.
    """
    if len(function.equations) != 1 or type(init) is not Array:
        return None
    (equation,) = function.equations
    if equation.primitive.name not in _MONOIDS or set(equation.operands) != set(function.inputs):
        return None
    if function.outputs[0] is not equation.results[0]:
        return None
    reduction, identity = _MONOIDS[equation.primitive.name]
    return reduction if bool(init.host() == identity(init.dtype)) else None


def reduce(
    operands: Any,
    init_values: Any,
    computation: Callable[..., Any],
    dimensions: Sequence[int],
) -> Any:
    """Reduces arrays along axes by a function, all of them together.

    Args:
        operands: An array, or a tuple or list of arrays of one shape.
        init_values: For each a scalar of its dtype, from which the reduction starts. It may be
            combined in more than once, so it should be an identity of the computation.
        computation: Associative and commutative; gets accumulators and elements (two scalars, or
            two tuples of scalars) and returns what replaces the accumulators.
        dimensions: The axes to reduce.

    Returns:
        The reduced array, or a tuple or list of such, as the operands were.

    Raises:
        ShapeError: for operands of different shapes, or initial values that are not scalars.
        DTypeError: for initial values or results of other dtypes than the operands.
        ParameterError: for numbers of operands and initial values that differ, and for a
            computation that uses traced values from around it.
        AxisError: for an axis out of range or named twice.
    """
    is_single = not isinstance(operands, (tuple, list))
    arrays = [as_value(x) for x in ([operands] if is_single else operands)]
    is_sequence = isinstance(init_values, (tuple, list))
    inits = [as_value(x) for x in (init_values if is_sequence else [init_values])]
    _check_operands(arrays, inits)
    count = len(arrays)

    def body(*scalars: Value) -> Sequence[Any]:
        if is_single:
            return [computation(*scalars)]
        container = type(operands)
        results = computation(container(scalars[:count]), container(scalars[count:]))
        return results if isinstance(results, (tuple, list)) else [results]

    types = [ShapedArray((), x.dtype) for x in arrays] * 2
    function = trace_function(body, types, name=function_name(computation))
    _check_computation(function, inits)
    axes = canonical_axes("reduce", tuple(dimensions), arrays[0].ndim)
    special = monoid_of(function, inits[0]) if count == 1 else None
    if special is not None:
        results = [special(arrays[0], axes)]
    else:
        results = _reduce.bind(*arrays, *inits, jaxpr=function, dimensions=axes)
    return results[0] if is_single else type(operands)(results)
