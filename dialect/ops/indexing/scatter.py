"""The scatter family: windows written, or combined, into an array at computed positions.

These are the ops behind `x.at[indices].set(y)` and its relatives. Elsewhere: `gather`
(`gather.py`), updates at one computed position (`dynamic_slicing.py`), segment sums and NumPy's
indexing syntax (frontend).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import (
    DTypeLike,
    NestedNumbers,
    Params,
)
from axir.dialect.core.errors import UnsupportedRuleError
from axir.dialect.core.symbolic_zeros import Zero, is_undefined_primal
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.arithmetic import add, build_maximum, build_minimum, div, mul, neg
from axir.dialect.ops.elementwise.comparison import eq, select_n
from axir.dialect.ops.elementwise.family import ANY, NUMBER, full, instantiate, match_scalars
from axir.dialect.ops.shape.constants import broadcasted_iota
from axir.dialect.ops.shape.movement import SMOOTH, moved_values
from axir.dialect.ops.shape.rearranging import broadcast_in_dim, move_batch_axis, moveaxis, reshape
from axir.dialect.program.op_table import Traceable, declare, traceable
from axir.dialect.program.operation import Sample
from axir.dialect.program.primitive import Primitive
from axir.dialect.program.rules import (
    Cotangent,
    Operand,
    Rule,
    Tangent,
    Tangents,
    TransposeOperand,
    Value,
)

from .cut_dimensions import of_scatter
from .gather import GatherDimensionNumbers, gather
from .indexed_windows import (
    CLIP,
    FILL,
    PROMISE_IN_BOUNDS,
    as_dimension_numbers,
    mode_name,
    shift,
)
from .scatter_evaluation import evaluate_scatter, lower_scatter
from .scatter_shapes import (
    SCATTER_PARAMETERS,
    ScatterDimensionNumbers,
    infer,
    window_sizes,
)

# Evaluation ------------------------------------------------------------------------------------


# Differentiation -------------------------------------------------------------------------------


def _gather_like(
    source: Value, indices: Value, updates_shape: tuple[int, ...], params: Params
) -> Value:
    """Reads at the positions that the scatter writes; zeros for windows that it drops."""
    numbers = params["dimension_numbers"]
    return gather(
        source,
        indices,
        GatherDimensionNumbers(*numbers),
        window_sizes(source.shape, updates_shape, numbers),
        unique_indices=params["unique_indices"],
        indices_are_sorted=params["indices_are_sorted"],
        mode=params["mode"],
        fill_value=0,
    )


def _has_unique_windows(indices_shape: tuple[int, ...], params: Params) -> bool:
    return params["unique_indices"] or math.prod(indices_shape[:-1]) <= 1


def _winners(operand: ShapedArray, indices: Value, updates: ShapedArray, params: Params) -> Value:
    """Tells for each update whether its value stays, if several windows hit one element."""
    batch_shape = indices.shape[:-1]
    count = math.prod(batch_shape)
    numbers = params["dimension_numbers"]
    flat = broadcasted_iota(dtypes.int32, (count,), 0)
    window = numbers.update_window_dims
    batch_axes = tuple(d for d in range(updates.ndim) if d not in window)
    names = broadcast_in_dim(reshape(flat, batch_shape), updates.shape, batch_axes)
    nobody = full(operand.shape, -1, dtypes.int32)
    last = _scatter.bind(nobody, indices, names, **params)
    return eq(_gather_like(last, indices, updates.shape, params), names)


def _zero_like(out: Value) -> Zero:
    return Zero(out.aval.to_tangent_aval())


def _scatter_jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], out: Value, **params: object
) -> Tangents:
    # The tangents use the same indices, so the same updates stay as in the primals.
    operand_tangent, _, updates_tangent = tangents
    if type(operand_tangent) is Zero and type(updates_tangent) is Zero:
        return _zero_like(out)
    return _scatter.bind(
        instantiate(operand_tangent), primals[1], instantiate(updates_tangent), **params
    )


def _scatter_transpose(
    cotangent: Value,
    operand: TransposeOperand,
    indices: Value,
    updates: TransposeOperand,
    **params: object,
) -> Sequence[Cotangent | None]:
    operand_cotangent = updates_cotangent = None
    if is_undefined_primal(operand):
        zeros = full(updates.shape, 0, cotangent.dtype)
        operand_cotangent = _scatter.bind(cotangent, indices, zeros, **params)
    if is_undefined_primal(updates):
        updates_cotangent = _gather_like(cotangent, indices, updates.shape, params)
        if not _has_unique_windows(indices.shape, params):
            stays = _winners(cotangent.aval, indices, updates.aval, params)
            zero = full((), 0, cotangent.dtype)
            updates_cotangent = select_n(stays, zero, updates_cotangent)
    return [operand_cotangent, None, updates_cotangent]


def _add_jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], out: Value, **params: object
) -> Tangents:
    operand_tangent, _, updates_tangent = tangents
    if type(updates_tangent) is Zero:
        return operand_tangent if type(operand_tangent) is not Zero else _zero_like(out)
    return _scatter_add.bind(instantiate(operand_tangent), primals[1], updates_tangent, **params)


def _add_transpose(
    cotangent: Value,
    operand: TransposeOperand,
    indices: Value,
    updates: TransposeOperand,
    **params: object,
) -> Sequence[Cotangent | None]:
    return [
        cotangent if is_undefined_primal(operand) else None,
        None,
        _gather_like(cotangent, indices, updates.shape, params)
        if is_undefined_primal(updates)
        else None,
    ]


def _mul_jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], out: Value, **params: object
) -> Tangents:
    operand, indices, updates = primals
    operand_tangent, _, updates_tangent = tangents
    total: Tangent | None = _zero_like(out)
    if type(operand_tangent) is not Zero:
        total = _scatter_mul.bind(operand_tangent, indices, updates, **params)
    if type(updates_tangent) is not Zero:
        if not _has_unique_windows(indices.shape, params):
            raise UnsupportedRuleError(
                "scatter_mul has no derivative in its updates where windows may overlap.",
                "Promise that they do not, with unique_indices=True, or combine updates of one "
                "position first.",
            )
        zeros = full(operand.shape, 0, operand.dtype)
        term = mul(operand, _scatter_add.bind(zeros, indices, updates_tangent, **params))
        total = term if type(total) is Zero else add(total, term)
    return total


def _mul_transpose(
    cotangent: Value,
    operand: TransposeOperand,
    indices: Value,
    updates: Value,
    **params: object,
) -> Sequence[Cotangent | None]:
    if is_undefined_primal(updates):
        raise UnsupportedRuleError(
            "scatter_mul is not linear in its updates.", "Differentiate it with jvp first."
        )
    return [_scatter_mul.bind(cotangent, indices, updates, **params), None, None]


def _extremum_jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], out: Value, **params: object
) -> Tangents:
    """Shares the tangent equally among the operand and the updates that attain the result."""
    operand, indices, updates = primals
    operand_tangent, _, updates_tangent = tangents
    if type(operand_tangent) is Zero and type(updates_tangent) is Zero:
        return _zero_like(out)
    one, zero = full((), 1, out.dtype), full((), 0, out.dtype)
    is_operand = eq(operand, out)
    is_update = eq(updates, _gather_like(out, indices, updates.shape, params))
    share = _scatter_add.bind(
        select_n(is_operand, zero, one), indices, select_n(is_update, zero, one), **params
    )
    chosen: Any = full(out.shape, 0, out.dtype)
    if type(operand_tangent) is not Zero:
        chosen = select_n(is_operand, zero, operand_tangent)
    if type(updates_tangent) is not Zero:
        term = select_n(is_update, zero, updates_tangent)
        chosen = _scatter_add.bind(chosen, indices, term, **params)
    return div(chosen, share)


# Batching --------------------------------------------------------------------------------------


def _batch(
    primitive: Primitive,
    operands: Sequence[Value],
    axes: Sequence[int | None],
    *,
    dimension_numbers: ScatterDimensionNumbers,
    **params: object,
) -> tuple[Value, int]:
    operand, indices, updates = operands
    size = next(x.shape[a] for x, a in zip(operands, axes, strict=True) if a is not None)
    operand = move_batch_axis(operand, axes[0], size, 0)
    updates = move_batch_axis(updates, axes[2], size, 0)
    numbers, indices, is_shared = batched_numbers(dimension_numbers, indices, axes[1])
    if not is_shared:
        params |= {"indices_are_sorted": False}
    return primitive.bind(operand, indices, updates, dimension_numbers=numbers, **params), 0


def batched_numbers(
    numbers: ScatterDimensionNumbers, indices: Value, axis: int | None
) -> tuple[ScatterDimensionNumbers, Value, bool]:
    """Returns the dimension numbers and indices of a scatter with its other operands batched.

    The last result tells whether all examples share the indices.
    """
    shifted = ScatterDimensionNumbers(
        update_window_dims=shift(numbers.update_window_dims),
        inserted_window_dims=shift(numbers.inserted_window_dims),
        scatter_dims_to_operand_dims=shift(numbers.scatter_dims_to_operand_dims),
        operand_batching_dims=shift(numbers.operand_batching_dims),
        scatter_indices_batching_dims=numbers.scatter_indices_batching_dims,
    )
    if axis is None:
        # The batch axis is one more axis of every window.
        window = (0, *shifted.update_window_dims)
        return shifted._replace(update_window_dims=window), indices, True
    batched = shifted._replace(
        operand_batching_dims=(0, *shifted.operand_batching_dims),
        scatter_indices_batching_dims=(0, *shift(shifted.scatter_indices_batching_dims)),
    )
    return batched, moveaxis(indices, axis, 0), False


# Lowering --------------------------------------------------------------------------------------


# The ops ---------------------------------------------------------------------------------------


def _declare(
    name: str,
    combine: np.ufunc | None,
    body: Callable[[object, object], object],
    *,
    combined: str | None = None,
    **rules: Rule,
) -> Primitive:
    primitive = declare(
        name,
        dimensions=of_scatter(combined),
        parameters=SCATTER_PARAMETERS,
        infer=functools.partial(infer, name),
        evaluate=functools.partial(evaluate_scatter, combine),
        lower=lambda context, *values, **params: lower_scatter(
            body, context.types_in, *values, **params
        ),
        samples=functools.partial(_samples, name),
        **rules,
    )
    primitive.batch = functools.partial(_batch, primitive)
    return primitive


def _function(primitive: Primitive, does: str) -> Traceable:
    def apply(
        operand: Operand,
        scatter_indices: Value,
        updates: Operand,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: object = None,
    ) -> Value:
        if not hasattr(updates, "dtype"):
            operand, updates = match_scalars(operand, updates)
        return primitive.bind(
            operand,
            scatter_indices,
            updates,
            dimension_numbers=as_dimension_numbers(ScatterDimensionNumbers, dimension_numbers),
            indices_are_sorted=bool(indices_are_sorted),
            unique_indices=bool(unique_indices),
            mode=mode_name(mode),
        )

    documentation = f"""{does}

    Args:
        operand: The array of rank n.
        scatter_indices: Integers of shape `(*batch, k)`: one vector per window, which says where
            it starts in k of the operand's dimensions.
        updates: The windows, of the operand's dtype, with the batch and the window dimensions.
        dimension_numbers: Which dimension is which.
        indices_are_sorted: The promise that the index vectors increase.
        unique_indices: The promise that no two windows overlap.
        mode: What to do where a window does not fit: 'clip', 'drop' (by default) or
            'promise_in_bounds'. Negative indices do not count from the end.

    Returns:
        The updated array, of the operand's type.

    Raises:
        ShapeError, ParameterError: where shapes and dimension numbers do not fit.
        DTypeError: where operand and updates differ in dtype or the indices are not integers.
    """
    return traceable(apply, primitive, documentation)


def _samples(name: str) -> list[Sample]:
    generator = np.random.default_rng(len(name))
    samples = []

    def add_sample(
        dtype: DTypeLike,
        shape: tuple[int, ...],
        indices: NestedNumbers,
        updates_shape: tuple[int, ...],
        numbers: tuple,
        mode: str,
        index_dtype: DTypeLike = np.int32,
        is_unique: bool = False,
    ) -> None:
        dtype = np.dtype(dtype)
        operand, updates = (moved_values(generator, s, dtype) for s in (shape, updates_shape))
        params = {
            "dimension_numbers": ScatterDimensionNumbers(*numbers),
            "indices_are_sorted": False,
            "unique_indices": is_unique,
            "mode": mode,
        }
        # A product has a derivative in its updates only where they do not overlap.
        is_smooth = dtype in SMOOTH and (name != "scatter_mul" or is_unique)
        samples.append(
            Sample((operand, np.array(indices).astype(index_dtype), updates), params, is_smooth)
        )

    rows = ((1,), (0,), (0,))
    f32 = np.float32
    five = [[2], [0], [2], [-1], [7]]
    for position, dtype in enumerate(NUMBER if name in ("scatter_add", "scatter_mul") else ANY):
        add_sample(dtype, (3, 2), five, (5, 2), rows, (CLIP, FILL)[position % 2])
    add_sample(
        f32, (5,), [[3], [1], [4]], (3,), ((), (0,), (0,)), PROMISE_IN_BOUNDS, is_unique=True
    )
    add_sample(f32, (3, 2), [1], (2,), ((0,), (0,), (0,)), FILL, np.uint8)
    for mode in (CLIP, FILL):
        add_sample(f32, (5, 4), [[1], [3], [4], [-1]], (4, 2, 3), ((1, 2), (), (0,)), mode)
        windows = [[0, 0], [2, 3], [1, -1], [9, 1]]
        add_sample(f32, (4, 5), windows, (2, 4, 3), ((0, 2), (), (1, 0)), mode, np.int64)
        add_sample(f32, (2, 3, 4), [[1, 9], [0, 2], [1, 1]], (4, 3), ((0,), (0, 1), (0, 1)), mode)
        add_sample(
            f32,
            (2, 4),
            [[[3], [0], [-9]], [[1], [1], [4]]],
            (2, 3),
            ((), (1,), (1,), (0,), (0,)),
            mode,
            np.uint64 if mode == CLIP else np.int32,
        )
    add_sample(f32, (3, 2), np.zeros((0, 1)), (0, 2), rows, FILL)
    add_sample(f32, (3, 0), [[1], [5]], (2, 0), rows, FILL)
    add_sample(f32, (), np.zeros((0,)), (), ((), (), ()), CLIP)
    limits = np.iinfo(np.int32)
    add_sample(
        f32,
        (1, 2, 1, 1, 3, 1),
        [[1], [limits.max], [limits.min]],
        (3, 1, 1, 1, 3, 1),
        ((1, 2, 3, 4, 5), (1,), (1,)),
        FILL,
    )
    return samples


_scatter = _declare(
    "scatter",
    None,
    lambda current, update: update,
    jvp=_scatter_jvp,
    transpose=_scatter_transpose,
    moves_elements=True,
)
_scatter_add = _declare(
    "scatter_add", np.add, hlo.add, combined="sum", jvp=_add_jvp, transpose=_add_transpose
)
_scatter_mul = _declare(
    "scatter_mul", np.multiply, hlo.multiply, jvp=_mul_jvp, transpose=_mul_transpose
)
_NOT_LINEAR = "it is not linear; differentiate it with jvp first."
_scatter_min = _declare(
    "scatter_min",
    np.minimum,
    build_minimum,
    combined="min",
    jvp=_extremum_jvp,
    unsupported={"transpose": _NOT_LINEAR},
)
_scatter_max = _declare(
    "scatter_max",
    np.maximum,
    build_maximum,
    combined="max",
    jvp=_extremum_jvp,
    unsupported={"transpose": _NOT_LINEAR},
)

scatter = _function(
    _scatter,
    "Writes windows into an array; of several that hit one element, the last stays.",
)
scatter_add = _function(_scatter_add, "Adds windows to an array.")
scatter_mul = _function(_scatter_mul, "Multiplies an array with windows.")
scatter_min = _function(_scatter_min, "Takes the minimum of an array and windows.")
scatter_max = _function(_scatter_max, "Takes the maximum of an array and windows.")


def scatter_sub(
    operand: Operand,
    scatter_indices: Value,
    updates: Operand,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: object = None,
) -> Value:
    """Subtracts windows from an array; takes the arguments of `scatter_add`."""
    operand, updates = match_scalars(operand, updates)
    return scatter_add(
        operand, scatter_indices, neg(updates), dimension_numbers,
        indices_are_sorted=indices_are_sorted, unique_indices=unique_indices, mode=mode,
    )  # fmt: skip
