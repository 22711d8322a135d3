"""Operations of StableHLO with shapes as operands: of constants, and of open dimensions."""

from __future__ import annotations

from iree.compiler import ir

from axir.dialect.core.annotations import HostArray
from axir.dialect.core.symbolic_dims import is_same
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.indexing.dynamic_slicing import dynamic_slice
from axir.dialect.ops.indexing.static_slicing import slice
from axir.dialect.ops.shape.padding import pad
from axir.dialect.ops.shape.rearranging import reshape
from axir.dialect.program.rules import Value

from .attributes import integer, integers
from .shapes import iota, spread
from .table import RaisingContext, raises, refusal, result_dtype


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
