"""Operations of StableHLO that make arrays, change their shape, or take parts of them.

Here: static shapes, and shapes as operands, of constants and of open dimensions.
Elsewhere: arithmetic on shapes (`shape_arithmetic.py`).
"""

from __future__ import annotations

from iree.compiler import ir

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import HostArray
from axir.dialect.core.array import ConcreteArray, from_numpy
from axir.dialect.core.quantized_types import is_quantized
from axir.dialect.core.symbolic_dims import are_same, is_same, symbolic_dim_bounds
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.indexing.dynamic_slicing import dynamic_slice, dynamic_update_slice
from axir.dialect.ops.indexing.static_slicing import slice
from axir.dialect.ops.shape.broadcasting import broadcast_in_dim
from axir.dialect.ops.shape.concatenation import concatenate
from axir.dialect.ops.shape.constants import broadcasted_iota
from axir.dialect.ops.shape.padding import pad
from axir.dialect.ops.shape.rearranging import reshape, rev, transpose
from axir.dialect.program.module_writer import SMALL_BYTES
from axir.dialect.program.rules import Value
from axir.dialect.text.resources import resource_name
from axir.passes.raising.dimensions.attributes import dense, integer, integers

from .table import RaisingContext, raises, recorded, refusal, result_dtype, result_type

# Arrays of up to so many integers are computed, because shapes and indices follow from them.
_FEW = 16


@raises("stablehlo.constant", "chlo.constant", "arith.constant")
def _constant(context: RaisingContext, operation: ir.Operation) -> Value:
    attribute = operation.attributes["value"]
    array = elements(operation)
    name = resource_name(attribute)
    is_splat = isinstance(attribute, ir.DenseElementsAttr) and attribute.is_splat
    if name is not None or (array.nbytes > SMALL_BYTES and not is_splat):
        return context.weights(array, name)
    if not array.shape:
        return from_numpy(array)
    made = recorded("constant", (), value=array)
    return from_numpy(array) if made is None else made


def elements(operation: ir.Operation) -> HostArray:
    """Returns the elements of a constant; of quantized numbers these are integers."""
    found = dense(operation.attributes["value"])
    if not is_quantized(operation.results[0].type):
        return found
    storage = result_type(operation).dtype
    # MLIR stores the integers of unsigned types as signless.
    return found.view(storage) if found.dtype.itemsize == storage.itemsize else found


@raises("stablehlo.iota")
def _iota(context: RaisingContext, operation: ir.Operation) -> Value:
    return iota(result_type(operation), integer(operation, "iota_dimension"))


def iota(wanted: ShapedArray, dimension: int) -> Value:
    """Returns positions along a dimension, in an array of a type."""
    if dtypes.is_narrow(wanted.dtype):
        counted = iota(wanted.update(dtype=dtypes.int32), dimension)
        return convert_element_type(counted, wanted.dtype)
    params = {"dtype": wanted.dtype, "shape": wanted.shape, "dimension": dimension}
    made = recorded("iota", (), **params)
    return broadcasted_iota(wanted.dtype, wanted.shape, dimension) if made is None else made


@raises("stablehlo.broadcast_in_dim")
def _broadcast_in_dim(context: RaisingContext, operation: ir.Operation, x: Value) -> Value:
    return spread(x, result_type(operation).shape, integers(operation, "broadcast_dimensions"))


def spread(x: Value, shape: tuple[int, ...], dimensions: tuple[int, ...]) -> Value:
    """Broadcasts; the broadcast of a known number stays an op."""
    if are_same(x.aval.shape, shape) and dimensions == tuple(range(len(shape))):
        return x
    is_small = len(shape) == 1 and symbolic_dim_bounds(shape[0])[1] <= _FEW
    is_small = is_small and x.dtype.kind in "iu"
    if type(x) is ConcreteArray and len(shape) and not is_small:
        made = recorded("broadcast_in_dim", (x,), shape=shape, broadcast_dimensions=dimensions)
        if made is not None:
            return made
    return broadcast_in_dim(x, shape, dimensions)


@raises("stablehlo.broadcast")
def _broadcast(context: RaisingContext, operation: ir.Operation, x: Value) -> Value:
    shape = result_type(operation).shape
    return spread(x, shape, tuple(range(len(shape) - x.ndim, len(shape))))


@raises("stablehlo.reshape")
def _reshape(context: RaisingContext, operation: ir.Operation, x: Value) -> Value:
    return reshape(x, result_type(operation).shape)


@raises("stablehlo.transpose")
def _transpose(context: RaisingContext, operation: ir.Operation, x: Value) -> Value:
    return transpose(x, integers(operation, "permutation"))


@raises("stablehlo.reverse")
def _reverse(context: RaisingContext, operation: ir.Operation, x: Value) -> Value:
    return rev(x, integers(operation, "dimensions"))


@raises("stablehlo.concatenate")
def _concatenate(context: RaisingContext, operation: ir.Operation, *values: Value) -> Value:
    return concatenate(values, integer(operation, "dimension"))


@raises("stablehlo.slice")
def _slice(context: RaisingContext, operation: ir.Operation, x: Value) -> Value:
    names = ("start_indices", "limit_indices", "strides")
    return slice(x, *(integers(operation, name) for name in names))


@raises("stablehlo.pad")
def _pad(context: RaisingContext, operation: ir.Operation, x: Value, filling: Value) -> Value:
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    parts = (integers(operation, name) for name in names)
    return pad(x, filling, tuple(zip(*parts, strict=True)))


@raises("stablehlo.dynamic_slice")
def _dynamic_slice(
    context: RaisingContext, operation: ir.Operation, x: Value, *starts: Value
) -> Value:
    sizes = integers(operation, "slice_sizes")
    return dynamic_slice(x, starts, sizes, allow_negative_indices=False)


@raises("stablehlo.dynamic_update_slice")
def _dynamic_update_slice(
    context: RaisingContext, operation: ir.Operation, x: Value, update: Value, *starts: Value
) -> Value:
    return dynamic_update_slice(x, update, starts, allow_negative_indices=False)


@raises("stablehlo.get_dimension_size")
def _get_dimension_size(context: RaisingContext, operation: ir.Operation, x: Value) -> Value:
    extent = x.shape[integer(operation, "dimension")]
    return context.extents_value([extent], (), dtypes.int32)


@raises("stablehlo.tuple")
def _tuple(context: RaisingContext, operation: ir.Operation, *values: Value) -> list[object]:
    return [tuple(values)]


@raises("stablehlo.get_tuple_element")
def _get_tuple_element(
    context: RaisingContext, operation: ir.Operation, values: tuple[Value, ...]
) -> list[object]:
    return [values[integer(operation, "index")]]


def known(context: RaisingContext, operation: ir.Operation, number: int) -> HostArray:
    """Returns an operand that must follow from constants and from extents of arguments.

    Raises:
        RaisingError: if it does not.
    """
    found = context.constant(operation.operands[number])
    if found is None:
        found = context.extents(operation.operands[number])
    if found is None or None in found.reshape(-1).tolist():
        context.want_extents(operation.operands[number])
        raise refusal(
            f"Operand {number} of {operation.name} is computed when the program runs, but it says "
            "of which shape or where the result is.",
            "Shapes in axir follow from those of arguments: export the program again without it.",
        )
    return found


def _numbers(context: RaisingContext, operation: ir.Operation, number: int) -> tuple[int, ...]:
    return tuple(known(context, operation, number).reshape(-1).tolist())


@raises("stablehlo.dynamic_reshape", "chlo.dynamic_reshape")
def _dynamic_reshape(
    context: RaisingContext, operation: ir.Operation, x: Value, shape: Value
) -> Value:
    return reshape(x, _numbers(context, operation, 1))


@raises("stablehlo.dynamic_broadcast_in_dim")
def _dynamic_broadcast(
    context: RaisingContext, operation: ir.Operation, x: Value, shape: Value
) -> Value:
    dimensions = integers(operation, "broadcast_dimensions")
    return spread(x, _numbers(context, operation, 1), dimensions)


@raises("stablehlo.dynamic_iota")
def _dynamic_iota(context: RaisingContext, operation: ir.Operation, shape: Value) -> Value:
    extents = _numbers(context, operation, 0)
    wanted = ShapedArray(extents, result_dtype(operation))
    return iota(wanted, integer(operation, "iota_dimension"))


@raises("stablehlo.dynamic_pad")
def _dynamic_pad(
    context: RaisingContext, operation: ir.Operation, x: Value, filling: Value, *amounts: Value
) -> Value:
    parts = [_numbers(context, operation, number) for number in (2, 3, 4)]
    return pad(x, filling, tuple(zip(*parts, strict=True)))


@raises("stablehlo.real_dynamic_slice")
def _real_dynamic_slice(
    context: RaisingContext, operation: ir.Operation, x: Value, *bounds: Value
) -> Value:
    starts, limits = (context.extents(v) for v in list(operation.operands)[1:3])
    if starts is not None and None not in starts.tolist() and limits is not None:
        return slice(x, *(_numbers(context, operation, number) for number in (1, 2, 3)))
    return _slice_at(context, operation, x, starts, bounds[0])


def _slice_at(
    context: RaisingContext,
    operation: ir.Operation,
    x: Value,
    starts: HostArray | None,
    places: Value,
) -> Value:
    """Returns a slice with a computed start and the extents of the result's type."""
    wanted = operation.results[0].type.shape
    known_starts = [None] * x.ndim if starts is None else starts.tolist()
    if any(stride != 1 for stride in _numbers(context, operation, 3)) or any(
        n < 0 and start != 0 for n, start in zip(wanted, known_starts, strict=True)
    ):
        known(context, operation, 1)  # raises, and names the unknown value
    # An open dimension that is taken as a whole begins at 0.
    sizes = tuple([m if n < 0 else n for n, m in zip(wanted, x.shape, strict=True)])
    rows = [slice(places, (axis,), (axis + 1,)) for axis in range(x.ndim)]
    at = [reshape(row, ()) for row in rows]
    return dynamic_slice(x, at, sizes, allow_negative_indices=False)


@raises("stablehlo.set_dimension_size")
def _set_dimension_size(
    context: RaisingContext, operation: ir.Operation, x: Value, size: Value
) -> Value:
    wanted = known(context, operation, 1).item()
    dimension = integer(operation, "dimension")
    if not is_same(wanted, x.shape[dimension]):
        raise refusal(
            f"stablehlo.set_dimension_size makes dimension {dimension} of extent "
            f"{x.shape[dimension]} one of {wanted} within its bounds.",
            "Shapes in axir are static: export the program again for arrays of that shape.",
        )
    return x
