"""`gather`: windows of an array at computed positions, the op behind `x[indices]`.

Elsewhere: scatters (`scatter.py`), slices at one computed position (`dynamic_slicing.py`), and
NumPy's indexing syntax, which the frontend translates into these ops.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import (
    AnyDtype,
    DTypeLike,
    NestedNumbers,
    Options,
    UserObject,
)
from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.errors import ParameterError, ShapeError
from axir.dialect.core.extended_dtypes import keys_of
from axir.dialect.core.symbolic_dims import as_extent
from axir.dialect.core.symbolic_zeros import Zero, is_undefined_primal
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.family import ANY, as_value, full
from axir.dialect.ops.later_ops import later
from axir.dialect.ops.shape.movement import SMOOTH, moved_values
from axir.dialect.ops.shape.rearranging import moveaxis
from axir.dialect.program.function_rules import LoweringContext
from axir.dialect.program.op_table import declare
from axir.dialect.program.operation import Sample
from axir.dialect.program.parameters import Ints
from axir.dialect.program.rules import (
    Cotangent,
    MlirValues,
    Operand,
    Tangent,
    Tangents,
    TransposeOperand,
    Value,
)

from .cut_dimensions import of_gather
from .indexed_windows import (
    FILL,
    PROMISE_IN_BOUNDS,
    GatherDimensionNumbers,
    GatherScatterMode,
    Windows,
    as_dimension_numbers,
    as_int64,
    check_batching,
    check_dimensions,
    check_distinct,
    check_index_type,
    mode_name,
    shift,
)
from .lowered_indices import LoweredIndices

__all__ = ["GatherDimensionNumbers", "GatherScatterMode", "gather"]


# A fill value as a parameter: a number, or the two parts of a complex one; None for the default.
FillValue: TypeAlias = bool | int | float | tuple[float, float] | None


def gather(
    operand: Operand,
    start_indices: Operand,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: object = None,
    fill_value: Operand | None = None,
) -> Value:
    """Collects windows of an array.

    Args:
        operand: The array of rank n.
        start_indices: Integers of shape `(*batch, k)`: one vector per window, with its start in k
            of the operand's dimensions.
        dimension_numbers: The roles of the dimensions.
        slice_sizes: Size of the windows in each of the n dimensions.
        unique_indices: The promise that no element is read twice.
        indices_are_sorted: The promise that the index vectors increase.
        mode: The treatment of windows that do not fit: 'clip', 'fill' or 'promise_in_bounds' (by
            default). Negative indices do not count from the end.
        fill_value: The value for 'fill'. By default NaN, the smallest signed or the largest
            unsigned integer.

    Returns:
        An array of the operand's dtype, with the batch and the window dimensions.

    Raises:
        ShapeError, ParameterError: if shapes, sizes and dimension numbers do not fit.
        DTypeError: if the indices are not integers.

    >>> import numpy as np
    >>> rows = GatherDimensionNumbers((1,), (0,), (0,))
    >>> x = np.arange(6).reshape(3, 2)
    >>> np.asarray(gather(x, np.array([[2], [0]]), rows, (1, 2))).tolist()
    [[4, 5], [0, 1]]
    """
    operand = as_value(operand)
    name = PROMISE_IN_BOUNDS if mode is None else mode_name(mode)
    return _gather.bind(
        operand,
        start_indices,
        dimension_numbers=as_dimension_numbers(GatherDimensionNumbers, dimension_numbers),
        slice_sizes=tuple(map(as_extent, slice_sizes)),
        unique_indices=bool(unique_indices),
        indices_are_sorted=bool(indices_are_sorted),
        mode=name,
        fill_value=_fill_parameter(fill_value) if name == FILL else None,
    )


def _fill_parameter(value: UserObject) -> FillValue:
    """Returns a fill value as a parameter: a Python number, or the two parts of a complex one."""
    if value is None or type(value) in (bool, int):
        return value
    if isinstance(value, (np.ndarray, np.generic, ConcreteArray)):
        value = np.asarray(value).item()
    if isinstance(value, complex):
        if value.imag:
            return value.real, value.imag
        value = value.real
    if isinstance(value, float) and np.isnan(value):
        return None  # the default; unlike NaN, it equals itself
    if not isinstance(value, (bool, int, float)):
        raise ParameterError(
            f"gather: fill_value must be a number, not {value!r}.",
            "A fill value that is computed goes through jnp.where.",
        )
    return value


def _fill_scalar(value: FillValue, dtype: np.dtype) -> np.ndarray:
    """Returns the fill value of windows that do not fit."""
    keys: AnyDtype = dtypes.as_dtype(dtype)
    if dtypes.is_key(keys):
        word = _fill_scalar(value, dtypes.uint32)
        return keys_of(np.full(keys.impl.key_shape, word), keys)
    if value is None:
        if dtypes.is_inexact(dtype):
            value = np.nan
        elif dtype == dtypes.bool_:
            value = True
        else:
            limits = np.iinfo(dtype)
            value = limits.max if dtypes.is_unsigned(dtype) else limits.min
    number = complex(*value) if isinstance(value, tuple) else value
    return np.asarray(number).astype(dtype)


@functools.lru_cache(maxsize=1024)
def _windows(
    operand_shape: tuple[int, ...],
    batch_shape: tuple[int, ...],
    numbers: GatherDimensionNumbers,
    sizes: tuple[int, ...],
) -> Windows:
    return Windows(operand_shape, batch_shape, *numbers, sizes)


def _infer(
    operand: ShapedArray,
    indices: ShapedArray,
    *,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: tuple[int, ...],
    **_: object,
) -> ShapedArray:
    numbers = dimension_numbers
    _check_numbers(operand, indices, numbers, slice_sizes)
    hidden = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    window = iter([slice_sizes[d] for d in range(operand.ndim) if d not in hidden])
    batch = iter(indices.shape[:-1])
    rank = indices.ndim - 1 + operand.ndim - len(hidden)
    check_dimensions("gather", "offset_dims", numbers.offset_dims, rank)
    offsets = set(numbers.offset_dims)
    shape = tuple(next(window) if axis in offsets else next(batch) for axis in range(rank))
    return ShapedArray(shape, operand.dtype, operand.weak_type)


def _check_numbers(
    operand: ShapedArray,
    indices: ShapedArray,
    numbers: GatherDimensionNumbers,
    sizes: Sequence[int],
) -> None:
    check_index_type("gather", indices, len(numbers.start_index_map), None)
    collapsed, batching = numbers.collapsed_slice_dims, numbers.operand_batching_dims
    if len(sizes) != operand.ndim:
        raise ShapeError(
            f"gather: slice_sizes {sizes} must have {operand.ndim} entries, one for each dimension "
            f"of the operand {operand}."
        )
    for d, (size, extent) in enumerate(zip(sizes, operand.shape, strict=True)):
        if not 0 <= size <= extent:
            raise ShapeError(
                f"gather: slice size {size} of dimension {d} exceeds the operand {operand}."
            )
    if list(collapsed) != sorted(collapsed):
        raise ParameterError(f"gather: collapsed_slice_dims {collapsed} must increase.")
    check_distinct(
        "gather", operand.ndim, collapsed_slice_dims=collapsed, operand_batching_dims=batching
    )
    check_distinct(
        "gather",
        operand.ndim,
        start_index_map=numbers.start_index_map,
        operand_batching_dims=batching,
    )
    if len(numbers.offset_dims) != operand.ndim - len(collapsed) - len(batching):
        raise ShapeError(
            f"gather: offset_dims {numbers.offset_dims} must name one result dimension for each "
            f"dimension of the operand {operand} that is neither collapsed nor a batching one."
        )
    if any(sizes[d] != 1 for d in collapsed) or any(sizes[d] > 1 for d in batching):
        raise ShapeError(
            f"gather: slice_sizes {sizes} must be 1 in the dimensions {(*collapsed, *batching)}, "
            "which the result lacks."
        )
    check_batching("gather", operand, indices, batching, numbers.start_indices_batching_dims)


def _evaluate(
    operand: np.ndarray,
    indices: np.ndarray,
    *,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: tuple[int, ...],
    mode: str,
    fill_value: FillValue,
    **_: object,
) -> np.ndarray:
    windows = _windows(operand.shape, indices.shape[:-1], dimension_numbers, slice_sizes)
    indices = as_int64(indices)
    if windows.take_axis is not None:
        result = operand.take(indices[..., 0], axis=windows.take_axis, mode="clip")
        permutation = windows.take_permutation
    else:
        positions = windows.spread(windows.batch_positions(windows.clip(indices)))
        # A window of size 0 has no positions, and `take` objects to an empty operand.
        flat = operand.reshape(-1) if operand.size else np.zeros(1, operand.dtype)
        result = flat.take(positions)
        permutation = windows.permutation
    if permutation is not None:
        result = result.transpose(permutation)
    if mode != FILL:
        return result
    fits = windows.fits(indices)
    if fits.all():
        return result
    offsets = set(dimension_numbers.offset_dims)
    extents = iter(fits.shape)
    mask = fits.reshape([1 if axis in offsets else next(extents) for axis in range(result.ndim)])
    return np.where(mask, result, _fill_scalar(fill_value, operand.dtype))


def _jvp(
    primals: Sequence[Value],
    tangents: Sequence[Tangent],
    out: Value,
    *,
    fill_value: FillValue,
    **params: object,
) -> Tangents:
    if type(tangents[0]) is Zero:
        return Zero(out.aval.to_tangent_aval())
    fill = None if fill_value is None and params["mode"] != FILL else 0
    return _gather.bind(tangents[0], primals[1], fill_value=fill, **params)


def _transpose(
    cotangent: Value,
    operand: TransposeOperand,
    indices: Value,
    *,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: tuple[int, ...],
    mode: str,
    fill_value: FillValue,
    **promises: object,
) -> Sequence[Cotangent | None]:
    if not is_undefined_primal(operand):
        return [None, None]
    zeros = full(operand.shape, 0, operand.dtype)
    numbers = later.ScatterDimensionNumbers(*dimension_numbers)
    return [later.scatter_add(zeros, indices, cotangent, numbers, mode=mode, **promises), None]


def _batch(
    operands: Sequence[Value],
    axes: Sequence[int | None],
    *,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: tuple[int, ...],
    **params: object,
) -> tuple[Value, int]:
    operand, indices = operands
    operand_axis, indices_axis = axes
    numbers, sizes = dimension_numbers, slice_sizes
    offset_dims = shift(numbers.offset_dims)
    if operand_axis is None:
        assert indices_axis is not None
        indices = moveaxis(indices, indices_axis, 0)
        numbers = numbers._replace(
            offset_dims=offset_dims,
            start_indices_batching_dims=shift(numbers.start_indices_batching_dims),
        )
        # Properties of the indices of each example need not hold for all examples together.
        params |= {"unique_indices": False, "indices_are_sorted": False}
        return _gather.bind(
            operand, indices, dimension_numbers=numbers, slice_sizes=sizes, **params
        ), 0
    operand = moveaxis(operand, operand_axis, 0)
    size = operand.shape[0]
    numbers = GatherDimensionNumbers(
        offset_dims=offset_dims,
        collapsed_slice_dims=shift(numbers.collapsed_slice_dims),
        start_index_map=shift(numbers.start_index_map),
        operand_batching_dims=shift(numbers.operand_batching_dims),
        start_indices_batching_dims=numbers.start_indices_batching_dims,
    )
    if indices_axis is None:
        # The batch axis is one more axis of every window.
        numbers = numbers._replace(offset_dims=(0, *offset_dims))
        sizes = (size, *sizes)
    else:
        indices = moveaxis(indices, indices_axis, 0)
        numbers = numbers._replace(
            operand_batching_dims=(0, *numbers.operand_batching_dims),
            start_indices_batching_dims=(0, *shift(numbers.start_indices_batching_dims)),
        )
        sizes = (min(size, 1), *sizes)
        params |= {"indices_are_sorted": False}
    return _gather.bind(operand, indices, dimension_numbers=numbers, slice_sizes=sizes, **params), 0


def _lower(
    context: LoweringContext,
    operand: ir.Value,
    indices: ir.Value,
    *,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: tuple[int, ...],
    indices_are_sorted: bool,
    unique_indices: bool,
    mode: str,
    fill_value: FillValue,
) -> MlirValues:
    operand_type, indices_type = context.types_in
    out = context.types_out[0]
    numbers = dimension_numbers
    if not out.size:
        return hlo.full(0, out.shape, out.dtype)
    limits = [operand_type.shape[d] - slice_sizes[d] for d in numbers.start_index_map]
    lowered = LoweredIndices(indices, indices_type, limits)
    # StableHLO's gather clamps the indices, as both modes other than 'fill' do.
    result = hlo.gather(
        operand,
        lowered.for_gather(),
        offset_dims=numbers.offset_dims,
        collapsed_slice_dims=numbers.collapsed_slice_dims,
        start_index_map=numbers.start_index_map,
        operand_batching_dims=numbers.operand_batching_dims,
        start_indices_batching_dims=numbers.start_indices_batching_dims,
        index_vector_dim=indices_type.ndim - 1,
        slice_sizes=slice_sizes,
        indices_are_sorted=indices_are_sorted,
        shape=out.shape,
    )
    if mode != FILL:
        return result
    batch_axes = tuple(d for d in range(out.ndim) if d not in numbers.offset_dims)
    mask = hlo.broadcast_in_dim(lowered.fits(), out.shape, batch_axes)
    fill = hlo.full(_fill_scalar(fill_value, out.dtype), out.shape, out.dtype)
    return hlo.select(mask, result, fill)


def _samples() -> list[Sample]:
    generator = np.random.default_rng(7)
    samples = []

    def add(
        dtype: DTypeLike,
        shape: tuple[int, ...],
        indices: NestedNumbers,
        numbers: tuple,
        sizes: Sequence[int],
        mode: str,
        **more: Options,
    ) -> None:
        operand = moved_values(generator, shape, np.dtype(dtype))
        index_dtype = np.dtype(more.pop("index_dtype", np.int32))
        params = {
            "dimension_numbers": GatherDimensionNumbers(*numbers),
            "slice_sizes": sizes,
            "unique_indices": False,
            "indices_are_sorted": False,
            "mode": mode,
            "fill_value": None,
        }
        args = (operand, np.array(indices, index_dtype))
        samples.append(Sample(args, {**params, **more}, is_smooth=operand.dtype in SMOOTH))

    modes = ("clip", FILL, PROMISE_IN_BOUNDS)
    rows = [[2], [0], [2], [-1], [7]]
    for position, dtype in enumerate(ANY):
        mode = modes[position % 2]
        add(dtype, (3, 2), rows, ((1,), (0,), (0,)), (1, 2), mode)
    f32 = np.float32
    for mode in modes:
        add(f32, (5,), [[0], [3], [1]], ((1,), (), (0,)), (2,), mode)
    # Whole windows move, or are filled, when a part is outside.
    for mode in modes[:2]:
        windows = [[[0, 0], [2, 3]], [[1, -1], [9, 1]]]
        add(f32, (4, 5), windows, ((0, 3), (), (1, 0)), (3, 2), mode, index_dtype=np.int64)
        add(f32, (2, 3, 4), [[1, 9], [0, 2]], ((0,), (0, 1), (0, 1)), (1, 1, 4), mode)
        add(
            f32,
            (2, 4),
            [[[3], [0], [-9]], [[1], [1], [4]]],
            ((), (1,), (1,), (0,), (0,)),
            (1, 1),
            mode,
        )
    add(f32, (3, 4, 2), [[3], [0]], ((0, 2), (1,), (1,)), (3, 1, 2), PROMISE_IN_BOUNDS)
    add(f32, (3, 2), [1], ((0,), (0,), (0,)), (1, 2), "clip", index_dtype=np.uint8)
    add(
        f32,
        (3, 2),
        [[4], [1]],
        ((1,), (0,), (0,)),
        (1, 2),
        FILL,
        fill_value=1.5,
        index_dtype=np.uint64,
    )
    add(f32, (3, 2), np.zeros((0, 1)), ((1,), (0,), (0,)), (1, 2), FILL)
    add(f32, (3, 0), [[1], [5]], ((1,), (0,), (0,)), (1, 0), FILL)
    add(f32, (), np.zeros((2, 0)), ((), (), ()), (), "clip")
    add(
        f32,
        (1, 2, 1, 1, 3, 1),
        [[1], [-1]],
        ((0, 2, 3, 4, 5), (1,), (1,)),
        (1, 1, 1, 1, 3, 1),
        FILL,
    )
    limits = np.iinfo(np.int32)
    add(f32, (3, 2), [[limits.max], [limits.min]], ((1,), (0,), (0,)), (1, 2), "clip")
    return samples


_gather = declare(
    "gather",
    parameters={
        "dimension_numbers": GatherDimensionNumbers,
        "slice_sizes": Ints,
        "unique_indices": bool,
        "indices_are_sorted": bool,
        "mode": str,
        "fill_value": bool | int | float | tuple[float, float] | None,
    },
    moves_elements=True,
    infer=_infer,
    evaluate=_evaluate,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    lower=_lower,
    dimensions=of_gather,
    samples=_samples,
)
