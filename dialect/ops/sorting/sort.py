"""`sort` and `top_k`, along one dimension.

Numbers ascend, with NaN behind all of them and -0.0 equal to 0.0; complex numbers go by real, then
imaginary part. `top_k` has another order: NaN first, and 0.0 before -0.0. Elsewhere: `argsort`,
`unique` and the like (frontend) and sort kernels (`passes/`).
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, overload

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Param, UserObject
from axir.dialect.core.errors import DTypeError, ParameterError, ShapeError, axis_error
from axir.dialect.core.symbolic_zeros import Zero
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.family import ANY, ORDERED, as_value, full
from axir.dialect.ops.elementwise.samples import edge_array
from axir.dialect.ops.indexing.gather import GatherDimensionNumbers, gather
from axir.dialect.ops.shape.constants import broadcasted_iota
from axir.dialect.ops.shape.rearranging import move_batch_axis, reshape
from axir.dialect.program.dimensions import Dimensions, by_position, except_along
from axir.dialect.program.function_rules import LoweringContext
from axir.dialect.program.op_table import declare
from axir.dialect.program.operation import Sample
from axir.dialect.program.rules import Operand, Results, Tangent, Value


def _axis(name: str, axis: int, ndim: int) -> int:
    axis = operator.index(axis)
    if not -ndim <= axis < ndim:
        raise axis_error(name, axis, ndim)
    return axis % ndim


def _take_along(operand: Value, indices: Value, dimension: int) -> Value:
    """Reads, in each line along a dimension, the elements at that line's indices."""
    if not indices.size:
        return full(indices.shape, 0, operand.dtype)
    lines = tuple(d for d in range(operand.ndim) if d != dimension)
    numbers = GatherDimensionNumbers((), (dimension,), (dimension,), lines, lines)
    return gather(
        operand,
        reshape(indices, (*indices.shape, 1)),
        numbers,
        (1,) * operand.ndim,
        unique_indices=True,
        mode="promise_in_bounds",
    )


def _canonical(key: ir.Value) -> list[ir.Value]:
    """Splits a scalar key into real parts; for a total order, -0.0 becomes 0.0 and NaNs one NaN."""
    if hlo.is_complex(key):
        return [*_canonical(hlo.real(key)), *_canonical(hlo.imag(key))]
    if not hlo.is_float(key):
        return [key]
    zero, nan = hlo.full_like(key, 0), hlo.full_like(key, np.nan)
    key = hlo.select(hlo.compare(key, zero, "EQ"), zero, key)
    return [hlo.select(hlo.compare(key, key, "NE"), nan, key)]


def _compare(lhs: ir.Value, rhs: ir.Value, direction: str) -> ir.Value:
    return hlo.compare(lhs, rhs, direction, is_total_order=hlo.is_float(lhs))


# sort ------------------------------------------------------------------------------------------


@overload
def sort(
    operand: Operand, dimension: int = -1, is_stable: bool = True, num_keys: int = 1
) -> Value: ...
@overload
def sort(
    operand: Sequence[Operand], dimension: int = -1, is_stable: bool = True, num_keys: int = 1
) -> tuple[Value, ...]: ...
def sort(
    operand: UserObject,
    dimension: int = -1,
    is_stable: bool = True,
    num_keys: int = 1,
) -> Value | tuple[Value, ...]:
    """Sorts an array along a dimension, or several arrays together.

    Args:
        operand: The array, or a sequence of arrays of equal shape that are permuted alike.
        dimension: The dimension to sort along.
        is_stable: Whether equal keys keep their order.
        num_keys: How many of the arrays are keys; the first array is the primary key.

    Returns:
        The sorted array, or a tuple of them.

    Raises:
        ShapeError: if no array is given, or shapes differ.
        AxisError: if the dimension is out of range.
        ParameterError: if `num_keys` exceeds the number of arrays, or is below 1.

    >>> import numpy as np
    >>> sort(np.array([3, 1, 2], np.int32))
    Array([1, 2, 3], dtype=int32)
    """
    is_sequence = isinstance(operand, (tuple, list))
    operands = [as_value(x) for x in operand] if is_sequence else [as_value(operand)]
    if not operands:
        raise ShapeError("sort needs at least one array.")
    results = _sort.bind(
        *operands,
        dimension=_axis("sort", dimension, operands[0].ndim),
        is_stable=bool(is_stable),
        num_keys=operator.index(num_keys),
    )
    return tuple(results) if is_sequence else results[0]


def sort_key_val(
    keys: Value, values: Value, dimension: int = -1, is_stable: bool = True
) -> tuple[Value, Value]:
    """Sorts keys along a dimension, and values by their keys.

    >>> import numpy as np
    >>> sort_key_val(np.array([3, 1], np.int32), np.array([5, 6], np.int32))[1]
    Array([6, 5], dtype=int32)
    """
    sorted_keys, sorted_values = sort((keys, values), dimension, is_stable, num_keys=1)
    return sorted_keys, sorted_values


def _infer_sort(
    *operands: ShapedArray, dimension: int, num_keys: int, is_stable: bool
) -> list[ShapedArray]:
    if any(x.shape != operands[0].shape for x in operands):
        raise ShapeError(
            f"sort requires arrays of equal shape, but got {' and '.join(map(str, operands))}.",
            "Broadcast them first.",
        )
    if not 1 <= num_keys <= len(operands):
        raise ParameterError(
            f"sort: num_keys={num_keys} must be between 1 and the number of arrays, "
            f"{len(operands)}."
        )
    if not 0 <= dimension < operands[0].ndim:
        raise axis_error("sort", dimension, operands[0].ndim)
    return list(operands)


def _sortable(key: np.ndarray) -> list[np.ndarray]:
    """Returns keys that NumPy sorts in the order of the op, also where a key holds NaN."""
    if key.dtype == dtypes.bfloat16:
        return [key.astype(np.float32)]
    return [key.real, key.imag] if key.dtype.kind == "c" else [key]


def _evaluate_sort(
    *operands: np.ndarray, dimension: int, num_keys: int, is_stable: bool
) -> list[np.ndarray]:
    keys = [part for key in operands[:num_keys] for part in _sortable(key)]
    if len(operands) == len(keys) == 1:
        return [_sort_one(operands[0], keys[0], dimension)]
    if len(keys) == 1:
        order = keys[0].argsort(axis=dimension, kind="stable")
    else:
        order = np.lexsort(keys[::-1], axis=dimension)
    return [_take(x, order, dimension) for x in operands]


def _take(operand: np.ndarray, order: np.ndarray, dimension: int) -> np.ndarray:
    return operand[order] if order.ndim == 1 else np.take_along_axis(operand, order, dimension)


def _sort_one(operand: np.ndarray, key: np.ndarray, dimension: int) -> np.ndarray:
    # Equal elements are indistinguishable, except for zeros of both signs.
    has_signed_zeros = key.dtype.kind == "f" and not key.all()
    result = np.sort(key, axis=dimension, kind="stable" if has_signed_zeros else None)
    return result if key is operand else result.astype(operand.dtype)


def _sort_value_and_jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], *, dimension: int, **params: object
) -> tuple[list[Value], list[Any]]:
    places = broadcasted_iota(dtypes.int32, primals[0].shape, dimension)
    *outs, order = _sort.bind(*primals, places, dimension=dimension, **params)
    out_tangents = [
        Zero(out.aval.to_tangent_aval())
        if type(tangent) is Zero
        else _take_along(tangent, order, dimension)
        for out, tangent in zip(outs, tangents, strict=True)
    ]
    return outs, out_tangents


def _sort_jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], outs: Results, **params: Param
) -> Sequence[Tangent]:
    return _sort_value_and_jvp(primals, tangents, **params)[1]


def _sort_batch(
    operands: Sequence[Value], axes: Sequence[int | None], *, dimension: int, **params: object
) -> tuple[list[Value], list[int]]:
    size, axis = next((x.shape[a], a) for x, a in zip(operands, axes, strict=True) if a is not None)
    moved = [move_batch_axis(x, a, size, axis) for x, a in zip(operands, axes, strict=True)]
    dimension += axis <= dimension
    return _sort.bind(*moved, dimension=dimension, **params), [axis] * len(operands)


def _lower_sort(
    context: LoweringContext, *operands: ir.Value, dimension: int, num_keys: int, is_stable: bool
) -> list[ir.Value]:
    def comes_before(*pairs: object) -> ir.Value:
        lhs = [part for key in pairs[: 2 * num_keys : 2] for part in _canonical(key)]
        rhs = [part for key in pairs[1 : 2 * num_keys : 2] for part in _canonical(key)]
        before = _compare(lhs[-1], rhs[-1], "LT")
        for x, y in zip(lhs[-2::-1], rhs[-2::-1], strict=True):
            ties = hlo.and_(_compare(x, y, "EQ"), before)
            before = hlo.or_(_compare(x, y, "LT"), ties)
        return before

    if not context.types_in[0].size:
        return list(operands)
    return hlo.sort(operands, dimension, comes_before, is_stable=is_stable)


_SPECIAL = (1.0, np.nan, -0.0, 0.0, -np.inf, 2.0, 0.0, -0.0, np.inf, np.nan, -1.0)


def _distinct(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Draws numbers far enough apart for finite differences."""
    size = int(np.prod(shape))
    return (generator.permutation(size).reshape(shape) / 4 - 1).astype(np.float32)


def _sort_samples() -> list[Sample]:
    generator = np.random.default_rng(11)
    samples = []

    def add(
        *operands: np.ndarray,
        dimension: int = 0,
        num_keys: int = 1,
        is_stable: bool = True,
        is_smooth: bool = False,
    ) -> None:
        params = {"dimension": dimension, "is_stable": is_stable, "num_keys": num_keys}
        samples.append(Sample(operands, params, is_smooth))

    places = np.arange(len(_SPECIAL), dtype=np.int32)
    for dtype in ANY:
        keys = edge_array((11,), dtype)
        if dtypes.is_float(dtype):
            keys = np.array(_SPECIAL).astype(dtype)
        add(keys, places)
    shapes = [((5, 3), 0), ((2, 4), 1), ((2, 3, 2), 1), ((1, 2, 1, 1, 3, 1), 4)]
    for shape, dimension in shapes:
        add(_distinct(generator, shape), dimension=dimension, is_smooth=True)
    first, second = generator.integers(0, 3, (2, 9)).astype(np.int16)
    add(first, second, _distinct(generator, (9,)), num_keys=2, is_smooth=True)
    add(_distinct(generator, (4, 2)), _distinct(generator, (4, 2)), is_smooth=True)
    pairs = (first + 1j * second).astype(np.complex64)
    add(pairs, second, np.arange(9, dtype=np.int32), num_keys=2)
    add(np.array([1 + 1j, complex(0, np.nan), -1j, complex(np.nan, 0), complex(-0.0, 1), 1j]))
    add(np.array(_SPECIAL, np.float32), is_stable=False)
    add(np.zeros((0, 3), np.float32), np.zeros((0, 3), np.int32))
    add(np.zeros((2, 0), np.float32), dimension=1)
    add(np.ones((1,), np.float32), is_smooth=True)
    return samples


def _sort_dimensions(
    operands: Sequence[ShapedArray],
    results: Sequence[ShapedArray],
    *,
    dimension: int,
    num_keys: int,
    is_stable: bool,
) -> Dimensions:
    return by_position(operands, results, (dimension,))


_sort = declare(
    "sort",
    parameters={"dimension": int, "num_keys": int, "is_stable": bool},
    multiple_results=True,
    infer=_infer_sort,
    evaluate=_evaluate_sort,
    jvp=_sort_jvp,
    value_and_jvp=_sort_value_and_jvp,
    dimensions=_sort_dimensions,
    batch=_sort_batch,
    lower=_lower_sort,
    samples=_sort_samples,
    unsupported={"transpose": "it is not linear; differentiate it with jvp first."},
)


# top_k -----------------------------------------------------------------------------------------


def top_k(
    operand: Operand, k: int, *, axis: int = -1, is_stable: bool = True
) -> tuple[Value, Value]:
    """Finds the `k` largest elements along an axis.

    Args:
        operand: The array.
        k: The number of elements.
        axis: The axis to search along.
        is_stable: Whether equal elements keep their order; they do in any case.

    Returns:
        The elements, the largest first (NaN counts as the largest, -0.0 as less than 0.0, and of
        equal elements the first comes first), and their int32 indices.

    Raises:
        ParameterError: if k is negative or exceeds the size of the axis.
        DTypeError: for complex numbers.

    >>> import numpy as np
    >>> top_k(np.array([3, 1, 2], np.int32), 2)
    (Array([3, 2], dtype=int32), Array([0, 2], dtype=int32))
    """
    operand = as_value(operand)
    axis = _axis("top_k", axis, operand.ndim)
    values, indices = _top_k.bind(operand, k=operator.index(k), axis=axis)
    return values, indices


def _infer_top_k(operand: ShapedArray, *, k: int, axis: int) -> tuple[ShapedArray, ShapedArray]:
    if operand.dtype not in ORDERED:
        raise DTypeError(
            f"top_k does not accept {operand.dtype}: complex numbers have no order.",
            "Use top_k of x.real or of abs(x).",
        )
    if not 0 <= axis < operand.ndim:
        raise axis_error("top_k", axis, operand.ndim)
    if not 0 <= k <= operand.shape[axis]:
        raise ParameterError(
            f"top_k: k={k} must lie between 0 and the size of axis {axis} of {operand}."
        )
    shape = (*operand.shape[:axis], k, *operand.shape[axis + 1 :])
    return ShapedArray(shape, operand.dtype, operand.weak_type), ShapedArray(shape, np.int32)


def _descending_key(operand: np.ndarray) -> np.ndarray:
    """Returns integers; their ascending order is the order of `top_k`."""
    if not dtypes.is_float(operand.dtype):
        return ~operand
    integer = np.dtype(f"int{8 * operand.dtype.itemsize}")
    bits = np.ascontiguousarray(operand).view(integer).reshape(operand.shape)
    # The bits of negative floats descend; flipping all bits but the sign reverses them.
    key = np.where(bits < 0, bits ^ np.iinfo(integer).max, bits)
    return ~np.where(np.isnan(operand), np.iinfo(integer).max, key)


def _evaluate_top_k(operand: np.ndarray, *, k: int, axis: int) -> list[np.ndarray]:
    key = _descending_key(operand)
    if key.ndim == 1 and 0 < 8 * k < key.size:
        # Sort only the elements that are no worse than the last chosen one.
        candidates = np.flatnonzero(key <= np.partition(key, k - 1)[k - 1])
        chosen = candidates[key[candidates].argsort(kind="stable")[:k]]
    else:
        chosen = key.argsort(axis=axis, kind="stable")[(np.s_[:],) * axis + (np.s_[:k],)]
    return [_take(operand, chosen, axis), chosen.astype(np.int32)]


def _top_k_jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], outs: Results, *, k: int, axis: int
) -> Sequence[Tangent]:
    values, indices = outs
    no_tangent = Zero(indices.aval.to_tangent_aval())
    if type(tangents[0]) is Zero:
        return [Zero(values.aval.to_tangent_aval()), no_tangent]
    return [_take_along(tangents[0], indices, axis), no_tangent]


def _top_k_batch(
    operands: Sequence[Value], axes: Sequence[int | None], *, k: int, axis: int
) -> tuple[list[Value], list[int]]:
    batch_axis = axes[0]
    assert batch_axis is not None
    axis += batch_axis <= axis
    return _top_k.bind(operands[0], k=k, axis=axis), [batch_axis] * 2


def _lower_top_k(
    context: LoweringContext, operand: ir.Value, *, k: int, axis: int
) -> list[ir.Value]:
    array_type, out = context.types_in[0], context.types_out[0]
    if not out.size:
        return [hlo.full(0, out.shape, out.dtype), hlo.full(0, out.shape, np.int32)]
    places = hlo.iota(array_type.shape, axis, np.int32)
    key = _lower_descending_key(operand, array_type)
    results = hlo.sort(
        [key, places], axis, lambda x, y, *_: hlo.compare(x, y, "LT"), is_stable=True
    )
    start = [0] * array_type.ndim
    key, indices = (hlo.slice(result, start, out.shape) for result in results)
    return [_lower_value_of_key(key, out), indices]


def _lower_descending_key(operand: ir.Value, array_type: ShapedArray) -> ir.Value:
    """Builds integers; their ascending order is the order of `top_k`."""
    if not dtypes.is_float(array_type.dtype):
        return hlo.not_(operand)
    integer = np.dtype(f"int{8 * array_type.dtype.itemsize}")
    nan = hlo.full_like(operand, np.nan)
    operand = hlo.select(hlo.compare(operand, operand, "NE"), nan, operand)
    return hlo.not_(_flip_negative(hlo.bitcast_convert(operand, integer), integer))


def _lower_value_of_key(key: ir.Value, out: ShapedArray) -> ir.Value:
    """Builds the elements from keys of `_lower_descending_key`."""
    bits = hlo.not_(key)
    if not dtypes.is_float(out.dtype):
        return bits
    integer = np.dtype(f"int{8 * out.dtype.itemsize}")
    return hlo.bitcast_convert(_flip_negative(bits, integer), out.dtype)


def _flip_negative(bits: object, integer: np.dtype) -> ir.Value:
    """Reverses the order of negative floats, because their bits descend; is its own inverse."""
    is_negative = hlo.compare(bits, hlo.full_like(bits, 0), "LT")
    flipped = hlo.xor(bits, hlo.full_like(bits, np.iinfo(integer).max))
    return hlo.select(is_negative, flipped, bits)


def _top_k_samples() -> list[Sample]:
    generator = np.random.default_rng(13)
    samples = []
    for dtype in ORDERED:
        operand = edge_array((11,), dtype)
        if dtypes.is_float(dtype):
            operand = np.array(_SPECIAL).astype(dtype)
        samples.append(Sample((operand,), {"k": 7, "axis": 0}, is_smooth=False))
    shapes = [((3, 5), 2, 1), ((5, 3), 5, 0), ((2, 4, 2), 1, 1), ((1, 2, 1, 1, 3, 1), 2, 4)]
    for shape, k, axis in shapes:
        samples.append(Sample((_distinct(generator, shape),), {"k": k, "axis": axis}))
    samples.append(Sample((np.ones((2, 3), np.float32),), {"k": 0, "axis": 1}))
    samples.append(Sample((np.ones((0, 3), np.float32),), {"k": 2, "axis": 1}))
    return samples


_top_k = declare(
    "top_k",
    parameters={"k": int, "axis": int},
    multiple_results=True,
    infer=_infer_top_k,
    evaluate=_evaluate_top_k,
    jvp=_top_k_jvp,
    dimensions=except_along,
    batch=_top_k_batch,
    lower=_lower_top_k,
    samples=_top_k_samples,
    unsupported={"transpose": "it is not linear; differentiate it with jvp first."},
)
