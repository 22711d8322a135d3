"""Operations of StableHLO that make arrays, change their shape, or take static parts of them."""

from __future__ import annotations

from iree.compiler import ir

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import HostArray
from axir.dialect.core.array import ConcreteArray, from_numpy
from axir.dialect.core.quantized_types import is_quantized
from axir.dialect.core.symbolic_dims import are_same, symbolic_dim_bounds
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

from .attributes import dense, integer, integers
from .table import RaisingContext, raises, recorded, result_type

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
