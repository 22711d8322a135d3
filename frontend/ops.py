"""`axir.ops`: reductions of segments, and updates of indexed parts under their functional names.

Elsewhere: `x.at[index]`, which says the same as the functions `index_...` (`axir.numpy`).

>>> import axir.numpy as jnp
>>> from axir import ops
>>> ops.segment_sum(jnp.array([1, 2, 3, 4]), jnp.array([0, 0, 1, 3]), num_segments=4)
Array([3, 3, 0, 4], dtype=int32)
"""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np

from axir._devices.placement import lies_where_told
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import ConcretizationTypeError, DTypeError, ParameterError
from axir.dialect.core.symbolic_dims import as_extent
from axir.dialect.ops.indexing.indexed_windows import FILL, mode_name
from axir.dialect.ops.reductions.folding import greatest, least
from axir.dialect.program.rules import Value
from axir.dialect.program.tracer import Tracer
from axir.numpy._arguments.promotion import array_argument
from axir.numpy._arrays.creation import converted
from axir.numpy._arrays.filled import full
from axir.numpy._indexing.index_update import update
from axir.numpy._reductions.reductions import max as maximum
from axir.numpy._reductions.reductions import min as minimum
from axir.numpy._reductions.reductions import prod, sum
from axir.numpy._shape.joining import concatenate

__all__ = [
    "index", "index_add", "index_max", "index_min", "index_mul", "index_update", "segment_max",
    "segment_min", "segment_prod", "segment_sum",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


# Segments --------------------------------------------------------------------------------------

# The update that combines, the reduction that combines buckets, and the identity by dtype.
_SEGMENT_KINDS: dict[str, tuple[str, Callable[..., Value], Callable[[np.dtype], UserObject]]] = {
    "segment_sum": ("add", sum, lambda dtype: 0),
    "segment_prod": ("multiply", prod, lambda dtype: 1),
    "segment_max": ("max", maximum, least),
    "segment_min": ("min", minimum, greatest),
}


def _segment_count(name: str, segment_ids: Value, num_segments: object) -> int:
    if num_segments is not None:
        count = as_extent(num_segments)
        if count < 0:
            raise ParameterError(f"{name}: num_segments={count} must not be negative.")
        return count
    ids = segment_ids
    while type(ids) is Tracer:
        ids = ids.known(
            ConcretizationTypeError, "to count the segments (pass num_segments, a constant)"
        )
    return max(int(ids.host().max(initial=-1)) + 1, 0)  # type: ignore[attr-defined]


def _segment_reduction(
    name: str,
    data: object,
    segment_ids: object,
    num_segments: int | None,
    indices_are_sorted: bool,
    unique_indices: bool,
    bucket_size: int | None,
    mode: object,
) -> Value:
    kind, combine, identity = _SEGMENT_KINDS[name]
    data = array_argument(name, data, 0)
    segment_ids = array_argument(name, segment_ids, 1)
    if dtypes.kind(segment_ids.dtype) not in "iu":
        raise DTypeError(f"{name}: segment_ids must be integers, not {segment_ids.dtype}.")
    if kind in ("add", "multiply") and data.dtype == dtypes.bool_:
        raise DTypeError(
            f"{name}: bools have neither sum nor product.",
            "Use segment_max for 'or' and segment_min for 'and', or cast with data.astype(int).",
        )
    count = _segment_count(name, segment_ids, num_segments)
    chosen = FILL if mode is None else mode_name(mode)
    shape = (count, *data.shape[1:])

    def reduced(part: Value, ids: object) -> Value:
        start = full(shape, identity(data.dtype), data.dtype)
        return update(
            start,
            ids,
            kind,
            part,
            mode=chosen,
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices,
            wrap_negative_indices=False,
        )

    if bucket_size is None:
        return reduced(data, segment_ids)
    size = operator.index(bucket_size)
    if size < 1:
        raise ParameterError(f"{name}: bucket_size={size} must be positive.")
    length = segment_ids.shape[0] if segment_ids.ndim else 1
    if length <= size:
        return reduced(data, segment_ids)
    buckets = [
        reduced(data[i : i + size], segment_ids[i : i + size])[None] for i in range(0, length, size)
    ]
    return converted(combine(concatenate(buckets), axis=0), data.dtype)


def _segment_function(name: str, what: str, empty: str) -> Callable[..., Value]:
    @lies_where_told
    def apply(
        data: object,
        segment_ids: object,
        num_segments: int | None = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        bucket_size: int | None = None,
        mode: object = None,
        out_sharding: object = None,
    ) -> Value:
        return _segment_reduction(
            name, data, segment_ids, num_segments, indices_are_sorted, unique_indices, bucket_size,
            mode,
        )  # fmt: skip

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = f"""Returns {what} of the data of each segment.

    Args:
        data: Array.
        segment_ids: Integers: the segment of each entry along the first axis of the data. Those
            outside of [0, num_segments) are left out; negative ones do not count from the end.
        num_segments: How many segments there are; by default one more than the largest id. It must
            be given where the ids are traced, because it is a size of the result.
        indices_are_sorted: The promise that the ids increase.
        unique_indices: The promise that no id occurs twice.
        bucket_size: If given, this many elements are reduced at once, and the buckets then
            combined: sums of many elements lose less precision.
        mode: 'drop' (the default), 'clip' to count ids outside to the nearest segment, or
            'promise_in_bounds'.
        out_sharding: Where the result is to lie: a sharding, or a `PartitionSpec`.

    Returns:
        Array of shape `(num_segments, *rest)`, of the dtype of the data; {empty} for empty
        segments.

    Raises:
        BroadcastError: unless there is one id for each entry of the data.
        DTypeError: for ids that are not integers, and sums and products of bools.
        ConcretizationTypeError: without `num_segments`, where the ids are traced.
    """
    return apply


segment_sum = _segment_function("segment_sum", "the sum", "0")
segment_prod = _segment_function("segment_prod", "the product", "1")
segment_max = _segment_function("segment_max", "the maximum", "minus infinity or the least integer")
segment_min = _segment_function("segment_min", "the minimum", "infinity or the largest integer")


# Updates ---------------------------------------------------------------------------------------


class _Indexable:
    """The class of `index`: returns the expression between the brackets.

    >>> index[0, ..., 1:3]
    (0, Ellipsis, slice(1, 3, None))
    """

    __slots__ = ()

    def __getitem__(self, item: object) -> object:
        return item

    def __repr__(self) -> str:
        return "axir.ops.index"


index = _Indexable()


def _update_function(name: str, kind: str, what: str) -> Callable[..., Value]:
    def apply(
        x: ArrayLike,
        idx: object,
        y: ArrayLike,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: object = None,
    ) -> Value:
        return update(
            array_argument(name, x, 0),
            idx,
            kind,
            y,
            mode=mode,
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices,
        )

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = f"""Returns a copy of an array with an indexed part {what}.

    The same as `x.at[idx].{kind}(y)`.

    Args:
        x: The array.
        idx: An index, such as `index[1:, ::2]`.
        y: Values that broadcast to the shape of the part.
        indices_are_sorted: The promise that positions increase.
        unique_indices: The promise that no position occurs twice.
        mode: As of `x.at[idx]`.
    """
    return apply


index_update = _update_function("index_update", "set", "replaced by values")
index_add = _update_function("index_add", "add", "increased by values")
index_mul = _update_function("index_mul", "multiply", "multiplied with values")
index_min = _update_function("index_min", "min", "replaced by the minimum of it and values")
index_max = _update_function("index_max", "max", "replaced by the maximum of it and values")
