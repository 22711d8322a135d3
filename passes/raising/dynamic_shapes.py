"""Operations of StableHLO with shapes as operands, where these follow from constants."""

from __future__ import annotations

from iree.compiler import ir

from axir.dialect.core.annotations import HostArray
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.indexing.static_slicing import slice
from axir.dialect.ops.shape.padding import pad
from axir.dialect.ops.shape.rearranging import reshape
from axir.dialect.program.rules import Value

from .attributes import integer, integers
from .shapes import iota, spread
from .table import RaisingContext, raises, refusal, result_dtype


def known(context: RaisingContext, operation: ir.Operation, number: int) -> HostArray:
    """Returns an operand that must follow from constants.

    Raises:
        RaisingError: if it does not.
    """
    found = context.constant(operation.operands[number])
    if found is None:
        raise refusal(
            f"Operand {number} of {operation.name} is computed when the program runs, but it says "
            "of which shape or where the result is.",
            "Shapes in axir are static: export the program again for arrays of given shapes.",
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
    return slice(x, *(_numbers(context, operation, number) for number in (1, 2, 3)))


@raises("stablehlo.set_dimension_size")
def _set_dimension_size(
    context: RaisingContext, operation: ir.Operation, x: Value, size: Value
) -> Value:
    wanted = int(known(context, operation, 1))
    dimension = integer(operation, "dimension")
    if wanted != x.shape[dimension]:
        raise refusal(
            f"stablehlo.set_dimension_size makes dimension {dimension} of extent "
            f"{x.shape[dimension]} one of {wanted} within its bounds.",
            "Shapes in axir are static: export the program again for arrays of that shape.",
        )
    return x
