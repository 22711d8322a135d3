"""`store-narrow-elements`: elements of fewer than eight bits, and floats of eight, as bytes."""

from __future__ import annotations

from typing import ClassVar

import ml_dtypes
import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Dtype
from axir.dialect.core.attributes import dense, dense_to_numpy
from axir.dialect.core.types import numpy_dtype
from axir.dialect.program.narrow_elements import bytes_of
from axir.passes.framework.base import Pass
from axir.passes.legalize.rewriting import operations_in_order, replace

from .narrow_floats import code_of_float, float_of_code

_CONVERSIONS = ("stablehlo.convert", "stablehlo.bitcast_convert")
# Gives a value another type until all values have their new types.
_CAST = "builtin.unrealized_conversion_cast"


class StoreNarrowElements(Pass):
    """Keeps float8, float6, float4, int4, int2 and the like in bytes, and converts by formulas.

    The fact: IREE packs elements of fewer than eight bits. For most floats of eight bits it has no
    storage type and no conversion.

    1. Replace conversions from and to such elements by formulas on bytes; an element is in the low
       bits of its byte, with zeros above. The formulas for floats are in `narrow_floats.py`.
    2. Give all values, the types of functions and constants elements of type ui8.

    Precondition: such elements are only moved and converted, which `lower-to-stablehlo` ensures.

    Before::

        %0 = stablehlo.convert %x : (tensor<4xi8>) -> tensor<4xi4>

    After::

        %0 = stablehlo.bitcast_convert %x : (tensor<4xi8>) -> tensor<4xui8>
        %1 = stablehlo.and %0, %fifteen : tensor<4xui8>
    """

    name: ClassVar[str] = "store-narrow-elements"

    def run(self, module: ir.Module) -> None:
        """Rewrites the module."""
        for operation in operations_in_order(module.operation, _CONVERSIONS):
            if _narrow_dtype(operation.operands[0]) or _narrow_dtype(operation.results[0]):
                with ir.InsertionPoint(operation), operation.location:
                    replace(operation, _converted(operation))
        module.operation.walk(_retype, ir.WalkOrder.PRE_ORDER)
        for cast in operations_in_order(module.operation, (_CAST,)):
            replace(cast, cast.operands[0])


def _narrow_dtype(value: ir.Value) -> Dtype | None:
    """Returns the dtype of a tensor's elements if it has few bits."""
    is_narrow = hlo.is_narrow_tensor(value.type)
    return numpy_dtype(value.type.element_type) if is_narrow else None


def _as_bytes(x: ir.Value) -> ir.Value:
    """Returns a value with the type that it will have when all values are stored in bytes."""
    if not hlo.is_narrow_tensor(x.type):
        return x
    result = _stored_type(x.type)
    return ir.Operation.create(_CAST, results=[result], operands=[x]).result


def _converted(operation: ir.Operation) -> ir.Value:
    """Builds a conversion on bytes; the result gets its own type back."""
    operand, result = operation.operands[0], operation.results[0]
    source, target = _narrow_dtype(operand), _narrow_dtype(result)
    found = _as_bytes(operand)
    if operation.name == "stablehlo.bitcast_convert":
        found = hlo.bitcast_convert(found, np.uint8 if target else hlo.element_type_of(result))
    else:
        if source is not None:
            found = (
                float_of_code(found, source) if dtypes.is_float(source) else _number(found, source)
            )
        if target is not None:
            found = (
                code_of_float(found, target) if dtypes.is_float(target) else _code(found, target)
            )
        else:
            found = hlo.convert(found, hlo.element_type_of(result))
    if target is None:
        return found
    return ir.Operation.create(_CAST, results=[result.type], operands=[found]).result


def _number(code: ir.Value, dtype: Dtype) -> ir.Value:
    """Returns the integers of codes."""
    if dtypes.is_unsigned(dtype):
        return code
    sign = hlo.full_like(code, 2 ** (ml_dtypes.iinfo(dtype).bits - 1))
    return hlo.bitcast_convert(hlo.subtract(hlo.xor(code, sign), sign), np.int8)


def _code(x: ir.Value, dtype: Dtype) -> ir.Value:
    """Returns the low bits of integers."""
    low = hlo.bitcast_convert(hlo.convert(x, dtypes.wide(dtype)), np.uint8)
    return hlo.and_(low, hlo.full_like(low, 2 ** ml_dtypes.iinfo(dtype).bits - 1))


def _retype(operation: ir.Operation) -> ir.WalkResult:
    """Gives the values, constants and functions of an operation the types of bytes."""
    for region in operation.regions:
        for block in region.blocks:
            for argument in block.arguments:
                _set_bytes(argument)
    for result in operation.results:
        _set_bytes(result)
    attributes = operation.attributes
    if operation.name == "func.func":
        function_type = attributes["function_type"].value
        attributes["function_type"] = ir.TypeAttr.get(
            ir.FunctionType.get(
                [_stored_type(t) for t in function_type.inputs],
                [_stored_type(t) for t in function_type.results],
            )
        )
    elif operation.name == "stablehlo.constant":
        value = attributes["value"]
        if hlo.is_narrow_tensor(value.type):
            attributes["value"] = dense(bytes_of(dense_to_numpy(value)))
    return ir.WalkResult.ADVANCE


def _set_bytes(value: ir.Value) -> None:
    stored = _stored_type(value.type)
    if stored != value.type:
        value.set_type(stored)


def _stored_type(value_type: ir.Type) -> ir.Type:
    return (
        hlo.tensor_type(value_type.shape, np.uint8)
        if hlo.is_narrow_tensor(value_type)
        else value_type
    )
