"""Start indices of a block: their checks, their wrapping and clamping, their forms.

The indices of `dynamic_slice` and `dynamic_update_slice` are one integer scalar for each dimension.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import Array, ConcreteArray, Positions, scalar
from axir.dialect.core.errors import DTypeError, OutOfBoundsError, ParameterError, ShapeError
from axir.dialect.core.symbolic_dims import as_traced, is_symbolic_dim, symbolic_dim_bounds
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.arithmetic import add
from axir.dialect.ops.elementwise.comparison import lt, select_n
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.elementwise.family import INTEGER, as_value, full, match_scalars
from axir.dialect.ops.shape.concatenation import concatenate
from axir.dialect.ops.shape.rearranging import broadcast_in_dim
from axir.dialect.program.function_rules import LoweringContext
from axir.dialect.program.rules import Operand, Value

from .static_slicing import index_in_dim

_INDEX_LIMIT = np.iinfo(np.int32).max


class NegativeStartError(OutOfBoundsError, ValueError):
    """A start index is negative, but negative indices do not count from the end here."""


def check_number(name: str, what: str, count: int, operand: ShapedArray) -> None:
    """Raises the user's error unless a sequence has one entry for each dimension."""
    if count != operand.ndim:
        raise ParameterError(
            f"{name}: {count} {what} were given for the {operand.ndim} dimensions of {operand}."
        )


def check_starts(name: str, operand: ShapedArray, starts: Sequence[ShapedArray]) -> None:
    """Raises the user's error unless there is one integer scalar for each dimension."""
    check_number(name, "start indices", len(starts), operand)
    if any(start.shape for start in starts):
        raise ShapeError(
            f"{name}: start indices must be scalars, but got {', '.join(map(str, starts))}.",
            "Use gather, or vmap, for many blocks.",
        )
    if any(s.dtype not in INTEGER or s.dtype != starts[0].dtype for s in starts):
        raise _unlike(name, starts)


def _unlike(name: str, starts: Sequence[ShapedArray]) -> DTypeError:
    return DTypeError(
        f"{name}: start indices must be integers of one dtype, but got "
        f"{', '.join(map(str, starts))}.",
        "Cast with i.astype(int).",
    )


def check_block(name: str, operand: ShapedArray, sizes: tuple[int, ...], what: str) -> None:
    """Raises the user's error unless a block of these sizes fits into the operand."""
    if len(sizes) != operand.ndim:
        raise ShapeError(
            f"{name}: {what} {sizes} must have one entry for each of the {operand.ndim} dimensions "
            f"of {operand}."
        )
    if any(not 0 <= size <= extent for size, extent in zip(sizes, operand.shape, strict=True)):
        raise ShapeError(f"{name}: {what} {sizes} does not fit into {operand}.")


def block(
    shape: tuple[int, ...], sizes: Sequence[int], starts: Sequence[np.ndarray]
) -> tuple[slice, ...]:
    """Returns the clamped block as NumPy's index."""
    slices = []
    for extent, size, start in zip(shape, sizes, starts, strict=True):
        first = int(start)
        first = 0 if first < 0 else extent - size if first > extent - size else first
        slices.append(slice(first, first + size))
    return tuple(slices)


def lower_starts(
    context: LoweringContext, starts: Sequence[ir.Value], sizes: Sequence[int]
) -> list[ir.Value]:
    """Returns start indices in a signed dtype wide enough for the extents."""
    dtype = context.types_in[-1].dtype
    if dtype in (dtypes.int32, dtypes.int64):
        return list(starts)
    shape = context.types_in[0].shape
    lowered = []
    for start, extent, size in zip(starts, shape, sizes, strict=True):
        highest = extent - size
        # Large unsigned indices would turn negative, so they are clamped before the cast.
        most = symbolic_dim_bounds(highest)[1]
        if dtypes.is_unsigned(dtype) and most <= np.iinfo(dtype).max:
            start = hlo.minimum(start, hlo.full_like(start, highest))
        lowered.append(hlo.convert(start, dtypes.int64 if most > _INDEX_LIMIT else dtypes.int32))
    return lowered


def start_operands(
    name: str,
    operand: Value,
    start_indices: Positions,
    allow_negative_indices: bool | Sequence[bool],
) -> list[Operand]:
    """Splits start indices into scalars of one dtype; negative ones count from the end.

    Raises:
        DTypeError: for arrays of several dtypes; Python integers take the dtype of the others.
        NegativeStartError: for negative Python integers where they are not allowed.
    """
    if isinstance(start_indices, Sequence):
        starts: list[Operand] = list(start_indices)
    elif getattr(start_indices, "ndim", None) == 1:
        starts = [*_split(as_value(start_indices))]
    else:
        raise ParameterError(
            f"{name}: start_indices {start_indices!r} is neither a sequence of scalars nor an "
            "array of rank 1.",
            "Write (i,) for a single index.",
        )
    if not starts:
        return starts
    allowed = allow_negative_indices
    wraps = [allowed] * len(starts) if isinstance(allowed, bool) else list(allowed)
    check_number(name, "start indices", len(starts), operand.aval)
    check_number(name, "entries of allow_negative_indices", len(wraps), operand.aval)
    starts = [start if type(start) is int else as_value(start) for start in starts]
    kinds = {x.dtype for x in starts if type(x) is not int}  # type: ignore[union-attr]
    if len(kinds) > 1:
        raise _unlike(name, [as_value(start).aval for start in starts])
    for start, extent, may_wrap in zip(starts, operand.shape, wraps, strict=True):
        if type(start) is int and start < 0 and not may_wrap:
            raise NegativeStartError(
                f"{name}: the start index {start} of a dimension of extent {extent} is negative.",
                "allow_negative_indices=True lets it count from the end.",
            )
    wrapped = [
        _wrap(start, extent) if may_wrap else start
        for start, extent, may_wrap in zip(starts, operand.shape, wraps, strict=True)
    ]
    return one_dtype(wrapped)


def _split(starts: Value) -> list[Value]:
    if type(starts) is ConcreteArray:
        return list(starts)
    return [index_in_dim(starts, i, 0, keepdims=False) for i in range(starts.shape[0])]


def _wrap(start: Operand, extent: int) -> Operand:
    if type(start) is int:
        return start + extent if start < 0 else start
    start = as_value(start)
    if start.shape or start.dtype not in dtypes.SIGNED:
        return start  # unsigned, or not an index: `infer` checks it
    if is_symbolic_dim(extent):
        start = start if start.dtype.itemsize > 2 else convert_element_type(start, dtypes.int32)
        wrapped = add(start, convert_element_type(as_traced(extent), start.dtype))
        return select_n(lt(start, 0), start, wrapped)
    if extent > np.iinfo(start.dtype).max:
        start = convert_element_type(start, dtypes.int32)
    if type(start) is ConcreteArray:
        known = int(start.host())
        return start if known >= 0 else scalar(known + extent, start.dtype, start.weak_type)
    return select_n(lt(start, 0), start, add(start, extent))


@functools.lru_cache(maxsize=1024)
def _known_index(value: int, dtype: np.dtype) -> Array:
    return scalar(value, dtype)


def _index_scalar(value: int) -> Array:
    return _known_index(value, dtypes.scalar_dtype(value))


def one_dtype(starts: Sequence[UserObject]) -> list[Operand]:
    """Casts start indices of different integer dtypes to the one that they promote to."""
    kinds = {start.dtype for start in starts if type(start) is not int}
    if not kinds:
        return [_index_scalar(start) for start in starts]
    if len(kinds) == 1:
        return match_scalars(*starts)
    common, _ = dtypes.promote((dtype, False) for dtype in kinds)
    if not dtypes.is_integer(common):
        return match_scalars(*starts)  # unequal dtypes: `infer` refuses them
    return [
        start
        if type(start) is not int and start.dtype == common
        else convert_element_type(as_value(start), common)
        for start in starts
    ]


def stack_starts(starts: Sequence[Value], axes: Sequence[int | None], size: int) -> Value:
    """Joins start indices, with or without a batch axis, into rows with one vector each."""
    columns = [
        broadcast_in_dim(start, (size, 1), () if axis is None else (0,))
        for start, axis in zip(starts, axes, strict=True)
    ]
    return concatenate(columns, 1)


def zero_start(starts: Sequence[Value]) -> Value:
    """Returns a start index of zero, of the dtype of the others."""
    return full((), 0, starts[0].dtype if starts else dtypes.int32)
