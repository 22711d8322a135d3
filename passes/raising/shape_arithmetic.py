"""Operations of the dialects `tensor` and `shape`, by which exporters compute shapes.

A shape is an array of int64, with symbolic dimensions where the program leaves extents open.
Witnesses that shapes fit each other are None: if shapes do not fit, the operation that needs them
raises.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from iree.compiler import ir

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Extent, HostArray
from axir.dialect.core.array import from_numpy
from axir.dialect.core.errors import AxirError
from axir.dialect.core.symbolic_dims import is_same
from axir.dialect.ops.elementwise import arithmetic
from axir.dialect.ops.elementwise.conversion import bitcast_convert_type
from axir.dialect.ops.indexing.dynamic_slicing import dynamic_slice, dynamic_update_slice
from axir.dialect.ops.indexing.static_slicing import slice
from axir.dialect.ops.shape.broadcasting import broadcast_in_dim, broadcast_shapes
from axir.dialect.ops.shape.concatenation import concatenate
from axir.dialect.ops.shape.rearranging import reshape
from axir.dialect.program.rules import Value
from axir.passes.raising.dimensions.attributes import dense, integer, integers

from .shapes import known
from .table import RaisingContext, raises, raises_elementwise, refusal, result_dtype

_OPEN = -(2**63)


def _shape(context: RaisingContext, extents: Sequence[Extent]) -> Value:
    return context.extents_value(extents, (len(extents),), dtypes.int64)


def _extent(context: RaisingContext, extent: Extent) -> Value:
    return context.extents_value([extent], (), dtypes.int64)


def _extents(context: RaisingContext, operation: ir.Operation, number: int) -> tuple[int, ...]:
    return tuple(known(context, operation, number).reshape(-1).tolist())


# Shapes -------------------------------------------------------------------------------------------


@raises("shape.shape_of")
def _shape_of(context: RaisingContext, operation: ir.Operation, x: Value) -> Value:
    return _shape(context, x.shape)


@raises("shape.const_shape")
def _const_shape(context: RaisingContext, operation: ir.Operation) -> Value:
    return _shape(context, dense(operation.attributes["shape"]).reshape(-1).tolist())


@raises("shape.const_size")
def _const_size(context: RaisingContext, operation: ir.Operation) -> Value:
    return from_numpy(np.array(integer(operation, "value"), np.int64))


@raises("shape.broadcast")
def _broadcast_shapes(
    context: RaisingContext, operation: ir.Operation, *shapes: Value
) -> Value | Sequence[Value]:
    given = [_extents(context, operation, number) for number in range(len(shapes))]
    try:
        return _shape(context, broadcast_shapes(*given))
    except (AxirError, ValueError):
        raise refusal(
            f"The shapes {' and '.join(map(str, given))} do not fit each other.",
            "Export the program for arrays whose shapes do.",
        ) from None


@raises("shape.num_elements")
def _num_elements(context: RaisingContext, operation: ir.Operation, shape: Value) -> Value:
    return _extent(context, math.prod(_extents(context, operation, 0)))


@raises("shape.rank")
def _rank(context: RaisingContext, operation: ir.Operation, shape: Value) -> Value:
    return from_numpy(np.array(shape.shape[0], np.int64))


@raises("shape.get_extent", "shape.dim")
def _get_extent(context: RaisingContext, operation: ir.Operation, x: Value, place: Value) -> Value:
    is_shape = operation.name == "shape.get_extent"
    extents = _extents(context, operation, 0) if is_shape else x.shape
    return _extent(context, extents[int(known(context, operation, 1))])


@raises("shape.from_extents")
def _from_extents(context: RaisingContext, operation: ir.Operation, *extents: Value) -> Value:
    found = [known(context, operation, number).item() for number in range(len(extents))]
    return _shape(context, found)


@raises("shape.concat")
def _concat_shapes(
    context: RaisingContext, operation: ir.Operation, lhs: Value, rhs: Value
) -> Value:
    return _shape(context, [*_extents(context, operation, 0), *_extents(context, operation, 1)])


@raises(
    "shape.index_to_size",
    "shape.size_to_index",
    "shape.to_extent_tensor",
    "shape.value_as_shape",
)
def _same(context: RaisingContext, operation: ir.Operation, x: Value) -> Value:
    return x


raises_elementwise(
    {"shape.add": arithmetic.add, "shape.div": arithmetic.div, "shape.mul": arithmetic.mul}
)


@raises(
    "shape.assuming_all",
    "shape.const_witness",
    "shape.cstr_broadcastable",
    "shape.cstr_eq",
    "shape.cstr_require",
)
def _witness(context: RaisingContext, operation: ir.Operation, *values: Value) -> list[None]:
    return [None]


@raises("shape.assuming")
def _assuming(context: RaisingContext, operation: ir.Operation, witness: None) -> Sequence[Value]:
    return context.body(operation)()


# Arrays -------------------------------------------------------------------------------------------


@raises("tensor.dim")
def _dim(context: RaisingContext, operation: ir.Operation, x: Value, place: Value) -> Value:
    return _extent(context, x.shape[int(known(context, operation, 1))])


@raises("tensor.rank")
def _tensor_rank(context: RaisingContext, operation: ir.Operation, x: Value) -> Value:
    return from_numpy(np.array(x.ndim, np.int64))


@raises("tensor.cast")
def _cast(context: RaisingContext, operation: ir.Operation, x: Value) -> Value:
    return x


@raises("tensor.bitcast")
def _bitcast(context: RaisingContext, operation: ir.Operation, x: Value) -> Value:
    return bitcast_convert_type(x, result_dtype(operation))


@raises("tensor.empty")
def _empty(context: RaisingContext, operation: ir.Operation, *extents: Value) -> Value:
    # Its contents are undefined; zeros are used.
    shape = _full_shape(context, operation, operation.results[0].type.shape, 0)
    return broadcast_in_dim(from_numpy(np.zeros((), result_dtype(operation))), shape, ())


@raises("tensor.splat")
def _splat(context: RaisingContext, operation: ir.Operation, x: Value, *extents: Value) -> Value:
    shape = _full_shape(context, operation, operation.results[0].type.shape, 1)
    return broadcast_in_dim(x, shape, ())


def _full_shape(
    context: RaisingContext, operation: ir.Operation, extents: Sequence[int], first: int
) -> tuple[int, ...]:
    """Returns extents; the open ones are taken from the operands, in order from number `first`."""
    found = []
    for extent in extents:
        if extent == _OPEN:
            extent, first = known(context, operation, first).item(), first + 1
        found.append(extent)
    return tuple(found)


@raises("tensor.from_elements")
def _from_elements(context: RaisingContext, operation: ir.Operation, *elements: Value) -> Value:
    found = [context.constant(x) for x in operation.operands]
    shape = tuple(operation.results[0].type.shape)
    if all(x is not None for x in found):
        return from_numpy(np.array(found, result_dtype(operation)).reshape(shape))
    return reshape(concatenate([reshape(x, (1,)) for x in elements], 0), shape)


@raises("tensor.extract")
def _extract(context: RaisingContext, operation: ir.Operation, x: Value, *places: Value) -> Value:
    found: HostArray | None = context.constant(operation.operands[0])
    indices = [context.constant(place) for place in list(operation.operands)[1:]]
    if found is not None and all(place is not None for place in indices):
        return from_numpy(found[tuple(int(place) for place in indices if place is not None)])
    part = dynamic_slice(x, places, (1,) * x.ndim, allow_negative_indices=False)
    return reshape(part, ())


@raises("tensor.collapse_shape")
def _collapse(context: RaisingContext, operation: ir.Operation, x: Value) -> Value:
    groups = [
        [ir.IntegerAttr(place).value for place in ir.ArrayAttr(group)]
        for group in ir.ArrayAttr(operation.attributes["reassociation"])
    ]
    return reshape(x, tuple(math.prod([x.shape[d] for d in group]) for group in groups))


@raises("tensor.expand_shape")
def _expand(context: RaisingContext, operation: ir.Operation, x: Value, *extents: Value) -> Value:
    shape = integers(operation, "static_output_shape")
    return reshape(x, _full_shape(context, operation, shape, 1))


@raises("tensor.reshape")
def _reshape(context: RaisingContext, operation: ir.Operation, x: Value, shape: Value) -> Value:
    return reshape(x, _extents(context, operation, 1))


@raises("tensor.concat")
def _concat(context: RaisingContext, operation: ir.Operation, *values: Value) -> Value:
    return concatenate(values, integer(operation, "dim"))


def _bounds(
    context: RaisingContext, operation: ir.Operation, first: int
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Returns the offsets, sizes and strides of a part; dynamic ones come from the operands."""
    found = []
    for name in ("static_offsets", "static_sizes", "static_strides"):
        extents = integers(operation, name)
        found.append(_full_shape(context, operation, extents, first))
        first += extents.count(_OPEN)
    return found[0], found[1], found[2]


@raises("tensor.extract_slice")
def _extract_slice(
    context: RaisingContext, operation: ir.Operation, x: Value, *bounds: Value
) -> Value:
    offsets, sizes, strides = _bounds(context, operation, 1)
    ends = [
        o + (n - 1) * s + 1 if not is_same(n, 0) else o
        for o, n, s in zip(offsets, sizes, strides, strict=True)
    ]
    part = slice(x, offsets, tuple(ends), strides)
    # As in MLIR, dimensions are dropped, in order, if they do not match the result's.
    wanted = list(operation.results[0].type.shape)
    kept: list[int] = []
    for extent, given in zip(part.shape, integers(operation, "static_sizes"), strict=True):
        if len(kept) < len(wanted) and given == wanted[len(kept)]:
            kept.append(extent)
    return part if part.ndim == len(wanted) else reshape(part, tuple(kept))


@raises("tensor.insert_slice")
def _insert_slice(
    context: RaisingContext, operation: ir.Operation, part: Value, x: Value, *bounds: Value
) -> Value:
    offsets, sizes, strides = _bounds(context, operation, 2)
    if any(stride != 1 for stride in strides):
        raise refusal(
            "tensor.insert_slice puts elements apart from each other.",
            "Export the program with stablehlo.scatter for it.",
        )
    places = [from_numpy(np.array(place, np.int64)) for place in offsets]
    return dynamic_update_slice(x, reshape(part, sizes), places, allow_negative_indices=False)
