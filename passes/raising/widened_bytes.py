"""Products of integers that were converted from bytes: they are multiplied as bytes.

Programs of frameworks widen bytes, subtract their zero points, and multiply integers of 32 bits.
Products of bytes are faster, and their sums are equal, because they wrap around in the same way.
Elsewhere: how such a product is made (`byte_products.py`).
"""

from __future__ import annotations

import numpy as np
from iree.compiler import ir

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Dtype, HostArray, Param
from axir.dialect.core.array import from_numpy
from axir.dialect.core.quantized_types import is_quantized
from axir.dialect.program.module_writer import SMALL_BYTES
from axir.dialect.program.rules import Value
from axir.dialect.text.resources import resource_name
from axir.passes.legalize.convolution_attributes import Convolution

from .attributes import integers
from .byte_products import Factors, Zeros, convolution_of_integers, dot_of_integers
from .products import dot_dimensions
from .table import RULES, RaisingContext, recorded, result_dtype

_BYTES = (dtypes.int8, dtypes.uint8)
# Not `arith.extui`, which treats signless bytes as unsigned.
_CONVERSIONS = ("stablehlo.convert", "arith.extsi")
_SPREADING = ("stablehlo.broadcast_in_dim", "stablehlo.dynamic_broadcast_in_dim")
# Operations that move integers and, except for the last two, the axis of their zero points.
_MOVING = (*_SPREADING, "stablehlo.transpose", "stablehlo.reshape", "tensor.cast")


def dot_of_widened(context: RaisingContext, operation: ir.Operation) -> Value | None:
    """Returns a product of arrays that were bytes; None if they were not."""
    sides = _sides(context, operation)
    if sides is None:
        return None
    return dot_of_integers(operation, *sides, dot_dimensions(operation), dtypes.int32)


def convolution_of_widened(
    context: RaisingContext, operation: ir.Operation, padding: list[tuple[int, ...]]
) -> Value | None:
    """Returns a convolution of arrays that were bytes; None if they were not."""
    sides = _sides(context, operation)
    if sides is None:
        return None
    read = Convolution.read(operation)
    return convolution_of_integers(operation, *sides, read, padding, dtypes.int32)


def _sides(context: RaisingContext, operation: ir.Operation) -> tuple[Factors, Factors] | None:
    operands = list(operation.operands)[:2]
    if any(is_quantized(x.type) for x in operands) or result_dtype(operation) != dtypes.int32:
        return None
    if any(str(x.type.element_type) != "i32" for x in operands):
        return None
    lhs, rhs = (_bytes_of(context, x) for x in operands)
    return None if lhs is None or rhs is None else (lhs.with_signs(), rhs.with_signs())


def _bytes_of(context: RaisingContext, value: ir.Value) -> Factors | None:
    """Returns the bytes from which integers were converted, with the subtracted zero points."""
    if not isinstance(value, ir.OpResult):
        return None
    op: ir.Operation = value.owner
    if op.name in _CONVERSIONS and _byte_dtype(op.operands[0]) in _BYTES:
        return Factors(context.value(op.operands[0]))
    if op.name == "stablehlo.constant" and resource_name(op.attributes["value"]) is None:
        return _known_bytes(context.constant(value))
    if op.name == "stablehlo.subtract":
        return _less(context, op)
    if op.name in _MOVING:
        return _moved(context, op)
    return None


def _byte_dtype(value: ir.Value) -> Dtype | None:
    """Returns the dtype of a byte array; None for other values."""
    kind = value.type
    if not isinstance(kind, ir.ShapedType) or is_quantized(kind):
        return None
    return {"i8": dtypes.int8, "ui8": dtypes.uint8}.get(str(kind.element_type))


def _known_bytes(found: HostArray | None) -> Factors | None:
    if found is None or found.nbytes > SMALL_BYTES or not found.size:
        return None
    bounds = np.iinfo(np.int8)
    if found.min() < bounds.min or found.max() > bounds.max:
        return None
    words = found.astype(np.int8)
    made = recorded("constant", (), value=words) if words.shape else None
    return Factors(from_numpy(words) if made is None else made)


def _less(context: RaisingContext, op: ir.Operation) -> Factors | None:
    """Returns bytes with the zero points that a program subtracts."""
    found = _bytes_of(context, op.operands[0])
    if found is None or found.zeros is not None:
        return None
    zeros = _zeros(context, op.operands[1], found.values.dtype)
    return None if zeros is None else found._replace(zeros=zeros)


def _zeros(context: RaisingContext, value: ir.Value, dtype: Dtype) -> Zeros | None:
    """Returns zero points from an array that has them for each element; None for other arrays.

    They must be bytes, so that padding can be filled with them.
    """
    known = context.constant(value)
    if known is not None:
        return _known_zeros(known, dtype)
    if not isinstance(value, ir.OpResult) or value.owner.name not in _SPREADING:
        return None
    source, places = value.owner.operands[0], integers(value.owner, "broadcast_dimensions")
    known = context.constant(source)
    if known is None and not _was(source, dtype):
        return None
    if known is not None and _known_zeros(known, dtype) is None:
        return None
    if not places:
        return Zeros(context.value(source))
    is_whole = len(places) == 1 and source.type.shape[0] == value.type.shape[places[0]]
    return Zeros(context.value(source), places[0]) if is_whole else None


def _known_zeros(known: HostArray, dtype: Dtype) -> Zeros | None:
    bounds = np.iinfo(dtype)
    if not known.size or known.min() < bounds.min or known.max() > bounds.max:
        return None
    if (known == known.flat[0]).all():
        return Zeros(from_numpy(np.array(known.flat[0], np.int32)))
    for axis in range(known.ndim):
        line = known[tuple(slice(None) if d == axis else 0 for d in range(known.ndim))]
        shape = [-1 if d == axis else 1 for d in range(known.ndim)]
        if (known == line.reshape(shape)).all():
            return Zeros(from_numpy(line.astype(np.int32)), axis)
    return None


def _was(value: ir.Value, dtype: Dtype) -> bool:
    """Tells whether integers were bytes of a dtype."""
    while isinstance(value, ir.OpResult):
        op = value.owner
        if op.name in _CONVERSIONS:
            return _byte_dtype(op.operands[0]) == dtype
        if op.name != "stablehlo.reshape":
            return False
        value = op.operands[0]
    return False


def _moved(context: RaisingContext, op: ir.Operation) -> Factors | None:
    """Returns the bytes of integers that were moved after they had been widened."""
    found = _bytes_of(context, op.operands[0])
    if found is None:
        return None
    zeros = found.zeros
    if zeros is not None and zeros.axis is not None:
        if op.name == "stablehlo.transpose":
            axis = integers(op, "permutation").index(zeros.axis)
        elif op.name in _SPREADING:
            axis = integers(op, "broadcast_dimensions")[zeros.axis]
        else:
            return None
        zeros = zeros._replace(axis=axis)
    rest = [context.value(x) for x in list(op.operands)[1:]]
    made: Param = RULES[op.name](context, op, found.values, *rest)
    return Factors(made, zeros)
