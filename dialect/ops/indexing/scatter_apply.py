"""`scatter_apply`: a function applied to elements of an array at computed positions."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import (
    DTypeLike,
    NestedNumbers,
    Param,
    Params,
)
from axir.dialect.core.array import from_numpy
from axir.dialect.core.errors import DTypeError, ParameterError, UnsupportedRuleError
from axir.dialect.core.symbolic_zeros import Zero
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.arithmetic import add, mul
from axir.dialect.ops.elementwise.family import as_value
from axir.dialect.ops.elementwise.samples import random_values
from axir.dialect.ops.elementwise.transcendental import sin
from axir.dialect.ops.reductions.computations import apply_elementwise, check_captures
from axir.dialect.ops.shape.movement import batch_size
from axir.dialect.ops.shape.rearranging import move_batch_axis
from axir.dialect.program.derived_functions import derive
from axir.dialect.program.dimensions import Dimensions, Shapes
from axir.dialect.program.function import Function
from axir.dialect.program.function_rules import LoweringContext
from axir.dialect.program.function_tracing import function_name, trace_function
from axir.dialect.program.op_table import declare
from axir.dialect.program.operation import Sample
from axir.dialect.program.parameters import Ints
from axir.dialect.program.rules import MlirValues, Operand, Tangent, Tangents, Value

from .cut_dimensions import of_scatter
from .gather import GatherDimensionNumbers, gather
from .indexed_windows import CLIP, FILL, as_dimension_numbers, mode_name
from .scatter import batched_numbers, scatter
from .scatter_evaluation import lower_scatter, placed
from .scatter_shapes import (
    SCATTER_PARAMETERS,
    ScatterDimensionNumbers,
    infer,
    window_sizes,
    windows,
)

_NAME = "scatter_apply"


def _infer(
    operand: ShapedArray, indices: ShapedArray, *, update_shape: tuple[int, ...], **params: Param
) -> ShapedArray:
    params.pop("jaxpr")
    return infer(_NAME, operand, indices, ShapedArray(update_shape, operand.dtype), **params)


def rounds_of(positions: np.ndarray) -> list[np.ndarray]:
    """Splits positions so that none occurs twice in one part."""
    ordered = np.sort(positions, kind="stable")
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    ends = np.append(starts[1:], len(ordered))
    rounds = []
    while starts.size:
        rounds.append(ordered[starts])
        starts = starts + 1
        remains = starts < ends
        starts, ends = starts[remains], ends[remains]
    return rounds


def _evaluate(
    operand: np.ndarray,
    indices: np.ndarray,
    *,
    jaxpr: Function,
    update_shape: tuple[int, ...],
    dimension_numbers: ScatterDimensionNumbers,
    mode: str,
    **_: object,
) -> np.ndarray:
    result = np.array(operand, order="C", copy=True)
    if not math.prod(update_shape):
        return result
    geometry = windows(operand.shape, indices.shape[:-1], update_shape, dimension_numbers)
    indices, fits = placed(geometry, indices, mode)
    starts = geometry.batch_positions(indices)
    starts = starts.reshape(-1) if fits is None else starts[fits]
    flat = result.reshape(-1)
    for places in rounds_of(geometry.spread(starts).reshape(-1)):
        flat[places] = apply_elementwise(jaxpr, [from_numpy(flat[places])])[0].host()  # type: ignore[attr-defined]
    return result


def _jvp(
    primals: Sequence[Value],
    tangents: Sequence[Tangent],
    out: Value,
    *,
    jaxpr: Function,
    **params: Param,
) -> Tangents:
    """Applies the function's tangent to the elements; each must occur only once."""
    operand, indices = primals
    if type(tangents[0]) is Zero:
        return Zero(out.aval.to_tangent_aval())
    update_shape = params.pop("update_shape")
    numbers = params["dimension_numbers"]
    if not params["unique_indices"] and math.prod(indices.shape[:-1]) > 1:
        raise UnsupportedRuleError(
            "scatter_apply has no derivative where windows may overlap.",
            "Promise that they do not, with unique_indices=True.",
        )
    sizes = window_sizes(operand.shape, update_shape, numbers)

    def read(x: Value) -> Value:
        gather_numbers = GatherDimensionNumbers(*numbers)
        return gather(x, indices, gather_numbers, sizes, mode=params["mode"], fill_value=0)

    tangent = derive(jaxpr, "jvp", (True,), True).function
    moved = apply_elementwise(tangent, [read(operand), read(tangents[0])])[1]
    return scatter(tangents[0], indices, moved, numbers, **_without_numbers(params))


def _without_numbers(params: Params) -> Params:
    return {key: value for key, value in params.items() if key != "dimension_numbers"}


def _batch(
    operands: Sequence[Value],
    axes: Sequence[int | None],
    *,
    dimension_numbers: ScatterDimensionNumbers,
    update_shape: tuple[int, ...],
    **params: object,
) -> tuple[Value, int]:
    size = batch_size(operands, axes)
    operand = move_batch_axis(operands[0], axes[0], size, 0)
    numbers, indices, is_shared = batched_numbers(dimension_numbers, operands[1], axes[1])
    if not is_shared:
        params |= {"indices_are_sorted": False}
    result = _scatter_apply.bind(
        operand,
        indices,
        dimension_numbers=numbers,
        update_shape=(size, *update_shape),
        **params,
    )
    return result, 0


def _lower(
    context: LoweringContext,
    operand: ir.Value,
    indices: ir.Value,
    *,
    jaxpr: Function,
    update_shape: tuple[int, ...],
    **params: Param,
) -> MlirValues:
    """Counts the occurrences of each element, and applies the function in as many rounds.

    A `stablehlo.scatter` may have any computation, but backends support only the usual ones.
    """
    array, index_type = context.types_in
    int32 = np.dtype(np.int32)
    counted, update = ShapedArray(array.shape, int32), ShapedArray(update_shape, int32)
    zeros, ones = hlo.full(0, array.shape, int32), hlo.full(1, update_shape, int32)
    types = [counted, index_type, update]
    counts = lower_scatter(hlo.add, types, zeros, indices, ones, **params)
    everywhere = trace_function(
        lambda x: apply_elementwise(jaxpr, [x]), [array.strip_weak_type()], name=jaxpr.name
    )

    def apply(x: ir.Value, remaining: object) -> list[ir.Value]:
        one, none = hlo.full(1, array.shape, int32), hlo.full(0, array.shape, int32)
        is_named = hlo.compare(remaining, none, "GT")
        new = hlo.select(is_named, context.inline(everywhere, x)[0], x)
        return [new, hlo.subtract(remaining, one)]

    if params["unique_indices"] or math.prod(index_type.shape[:-1]) <= 1:
        return apply(operand, counts)[0]

    def is_unfinished(x: ir.Value, remaining: object) -> ir.Value:
        axes = tuple(range(array.ndim))
        (most,) = hlo.reduce([remaining], [hlo.full(0, (), int32)], axes, hlo.maximum)
        return hlo.compare(most, hlo.full(0, (), int32), "GT")

    return hlo.while_([operand, counts], is_unfinished, apply)[0]


def _samples() -> list[Sample]:
    generator = np.random.default_rng(29)
    samples = []

    def add_sample(
        apply: Callable[[Value], Value],
        dtype: DTypeLike,
        shape: tuple[int, ...],
        indices: NestedNumbers,
        update_shape: tuple[int, ...],
        numbers: tuple,
        mode: str,
        is_unique: bool = False,
    ) -> None:
        dtype = np.dtype(dtype)
        operand = random_values(generator, shape, dtype, -2, 2)
        function = trace_function(lambda x: [apply(x)], [ShapedArray((), dtype)])
        params = {
            "dimension_numbers": ScatterDimensionNumbers(*numbers),
            "indices_are_sorted": False,
            "jaxpr": function,
            "mode": mode,
            "unique_indices": is_unique,
            "update_shape": update_shape,
        }
        args = (operand, np.array(indices).astype(np.int32))
        samples.append(Sample(args, params, is_smooth=is_unique))

    def doubled(x: Operand) -> Value:
        return add(mul(x, x), x)

    rows = ((1,), (0,), (0,))
    for mode in (CLIP, FILL):
        add_sample(doubled, np.int32, (3, 2), [[2], [0], [2], [-1], [7]], (5, 2), rows, mode)
    add_sample(sin, np.float32, (3, 2), [[2], [0], [9]], (3, 2), rows, FILL, is_unique=True)
    single = ((), (0,), (0,))
    add_sample(sin, dtypes.bfloat16, (4,), [[1], [1], [1]], (3,), single, FILL)
    add_sample(sin, np.float32, (4, 5), [[0, 0], [2, 3]], (2, 2, 3), ((1, 2), (), (0, 1)), CLIP)
    batched = ((), (1,), (1,), (0,), (0,))
    add_sample(sin, np.float32, (2, 4), [[[3], [0]], [[1], [2]]], (2, 2), batched, FILL, True)
    add_sample(sin, np.float32, (3,), np.zeros((0, 1)), (0,), single, FILL, True)
    add_sample(
        sin,
        np.float32,
        (1, 2, 1, 1, 3, 1),
        [[1]],
        (1, 1, 1, 1, 3, 1),
        ((1, 2, 3, 4, 5), (1,), (1,)),
        FILL,
        True,
    )
    add_sample(sin, np.float32, (3,), np.zeros((0,)), (3,), ((0,), (), ()), FILL, True)
    return samples


def _dimensions(
    operands: Sequence[ShapedArray],
    results: Sequence[ShapedArray],
    *,
    jaxpr: Function,
    update_shape: tuple[int, ...],
    **params: object,
) -> Dimensions:
    operand, indices = operands
    updates = ShapedArray(update_shape, operand.dtype)
    found = of_scatter(None)([operand, indices, updates], results, **params)
    assert isinstance(found, Dimensions)
    assert found.local_params is not None
    of_operands, of_updates, local = found.operands[:2], found.operands[2], found.local_params
    sources = {
        factor: (number, place)
        for number, own in enumerate(of_operands)
        for place, factors in enumerate(own)
        for factor in factors
    }

    def local_params(parts: Shapes, _: Shapes) -> Params:
        shape = list(update_shape)
        for place, factors in enumerate(of_updates):
            for factor in factors:
                number, dimension = sources[factor]
                shape[place] = parts[number][dimension]
        return {**local(parts, _), "update_shape": tuple(shape)}

    return dataclasses.replace(found, operands=of_operands, local_params=local_params)


_scatter_apply = declare(
    _NAME,
    parameters={"jaxpr": Function, "update_shape": Ints, **SCATTER_PARAMETERS},
    is_memoized=False,
    infer=_infer,
    evaluate=_evaluate,
    jvp=_jvp,
    batch=_batch,
    dimensions=_dimensions,
    lower=_lower,
    samples=_samples,
    unsupported={"transpose": "it need not be linear; differentiate it with jvp first."},
)


def scatter_apply(
    operand: Operand,
    scatter_indices: Operand,
    func: Callable[[Value], Any],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Sequence[int] = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: object = None,
) -> Value:
    """Replaces the elements of windows by a function of them.

    Args:
        operand: The array.
        scatter_indices: As in `scatter`.
        func: Elementwise function of one scalar. It is applied once per occurrence of an element.
        dimension_numbers: As in `scatter`.
        update_shape: The shape of updates in `scatter`: the batch and the window dimensions.
        indices_are_sorted: The promise that the index vectors increase.
        unique_indices: The promise that no two windows overlap, which derivatives need.
        mode: As in `scatter`.

    Returns:
        The updated array, of the operand's type.

    Raises:
        ShapeError, ParameterError: if shapes and dimension numbers do not fit.
        DTypeError: if the function returns another type than it got.

    >>> from axir.dialect.ops.elementwise.arithmetic import neg
    >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
    >>> scatter_apply(np.arange(1, 4), np.array([[0], [2]]), neg, numbers, update_shape=(2,))
    Array([-1,  2, -3], dtype=int32)
    """
    operand, indices = as_value(operand), as_value(scatter_indices)
    scalar = ShapedArray((), operand.dtype)
    function = trace_function(lambda x: [func(x)], [scalar], name=function_name(func))
    check_captures(_NAME, function)
    (out,) = function.output_types
    if out.shape:
        raise ParameterError(f"{_NAME}: the function must be elementwise, but returns {out}.")
    if out.dtype != operand.dtype:
        raise DTypeError(
            f"{_NAME}: the function must return {operand.dtype}, but returns {out.dtype}.",
            "Cast its result with x.astype(dtype).",
        )
    return _scatter_apply.bind(
        operand,
        indices,
        dimension_numbers=as_dimension_numbers(ScatterDimensionNumbers, dimension_numbers),
        indices_are_sorted=bool(indices_are_sorted),
        jaxpr=function,
        mode=mode_name(mode),
        unique_indices=bool(unique_indices),
        update_shape=tuple(map(int, update_shape)),
    )
