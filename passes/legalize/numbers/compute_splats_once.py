"""`compute-splats-once`: operations on arrays of equal elements are computed for one element."""

from __future__ import annotations

from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.base import Pass
from axir.passes.legalize.rewriting import (
    ELEMENTWISE,
    defining_operation,
    operations_in_order,
    replace,
)

# Operations that move elements compute nothing; a bitcast may change the shape.
_OTHERS = ("bitcast_convert", "broadcast_in_dim", "reshape", "slice", "transpose")
OPERATIONS = ELEMENTWISE - {"linalg.generic", *(f"stablehlo.{name}" for name in _OTHERS)} | {
    f"chlo.{name}"
    for name in (
        "acos acosh asin asinh atan atanh bessel_i1e conj cosh digamma erf erf_inv erfc lgamma "
        "next_after polygamma sinh square tan zeta"
    ).split()
}


class ComputeSplatsOnce(Pass):
    """Moves elementwise operations on arrays of equal elements before the broadcast.

    The facts: if an elementwise operation reads only constants of equal elements, IREE makes a
    `linalg.generic` without inputs of it. Where this is fused with a reduction, the number of
    elements is lost, and a sum, a product or a matrix product takes only the first element:
    `sum(exp(full(6, 2.0)))` was exp(2.0), at every level of optimization. Tracing computes such
    arrays earlier. They come from imported modules, and from loops of one iteration that are
    unrolled. For broadcast numbers that are not constant, IREE computes correct results. But it
    does the work of this pass after all of axir's passes, so that `limit-scalar-fusion` could not
    count the scalars.

    1. Visit each elementwise operation on arrays if every operand is a scalar, a broadcast scalar,
       or a constant with equal elements.
    2. Apply the operation to the scalars, and broadcast the result.

    Before::

        %0 = stablehlo.constant dense<2.0> : tensor<6xf32>
        %1 = stablehlo.exponential %0 : tensor<6xf32>

    After::

        %0 = stablehlo.constant dense<2.0> : tensor<f32>
        %1 = stablehlo.exponential %0 : tensor<f32>
        %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<6xf32>
    """

    name: ClassVar[str] = "compute-splats-once"

    def run(self, module: ir.Module) -> None:
        """Visits the operations in program order, so that earlier ones have been moved."""
        for operation in operations_in_order(module.operation, OPERATIONS):
            [result] = operation.results
            if not result.type.shape or not all(map(_is_splat, operation.operands)):
                continue
            with ir.InsertionPoint(operation), operation.location:
                computed = _computed_of(operation, list(map(_number, operation.operands)))
                replace(operation, hlo.broadcast_scalar(computed, result.type.shape))


def _is_splat(value: ir.Value) -> bool:
    """Tells whether all elements of a value are known to be one number."""
    if not value.type.shape:
        return True
    operation = defining_operation(value)
    if operation is None:
        return False
    if operation.name == "stablehlo.broadcast_in_dim":
        return not operation.operands[0].type.shape
    if operation.name == "stablehlo.constant":
        elements = operation.attributes["value"]
        return isinstance(elements, ir.DenseElementsAttr) and elements.is_splat
    return False


def _number(value: ir.Value) -> ir.Value:
    """Returns the number that all elements of a value are."""
    if not value.type.shape:
        return value
    operation = value.owner.operation
    if operation.name == "stablehlo.broadcast_in_dim":
        return operation.operands[0]
    kind = hlo.tensor_type((), value.type.element_type)
    number = operation.attributes["value"].get_splat_value()
    if isinstance(number, ir.ArrayAttr):  # the Python bindings make no splat of it
        parts = [ir.FloatAttr(part).value for part in number]
        return hlo.full(complex(*parts), (), value.type.element_type)
    attributes = {"value": ir.DenseElementsAttr.get_splat(kind, number)}
    constant = ir.Operation.create("stablehlo.constant", results=[kind], attributes=attributes)
    return constant.results[0]


def _computed_of(operation: ir.Operation, numbers: list[ir.Value]) -> ir.Value:
    """Returns the result of an operation for numbers."""
    return ir.Operation.create(
        operation.name,
        results=[hlo.tensor_type((), operation.results[0].type.element_type)],
        operands=numbers,
        attributes={name: operation.attributes[name] for name in operation.attributes},
    ).results[0]
