"""Shared code of the StableHLO builders: types, constants, attributes, verified operations."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import TypeAlias

import ml_dtypes  # noqa: F401  (registers bfloat16 with NumPy, so that np.dtype("bfloat16") is known)
import numpy as np
from iree.compiler import ir

from axir.dialect.core.annotations import NestedNumbers, Returning, UserObject
from axir.dialect.core.attributes import dense
from axir.dialect.core.context import context
from axir.dialect.core.errors import AxirError
from axir.dialect.core.symbolic_dims import is_open
from axir.dialect.core.types import ShapedArray, element_type, numpy_dtype, type_of_mlir

# An `ir.Type`, or anything `numpy.dtype` accepts.
ElementType: TypeAlias = UserObject
# From block arguments to one value or a sequence of values.
Body: TypeAlias = Returning[ir.Value | Sequence[ir.Value]]


class StableHLOError(AxirError):
    """A StableHLO operation was built from operands or attributes that do not fit together."""


def element_type_of(value: ir.Value) -> ir.Type:
    """Returns the element type of a tensor value, e.g. `f32`."""
    return value.type.element_type


def shape_of(value: ir.Value) -> tuple[int, ...]:
    """Returns the shape of a tensor value; symbolic dimensions where they are not known."""
    kind = value.type
    return tuple(kind.shape) if kind.has_static_shape else type_of_mlir(kind).shape


def size_of(value: ir.Value) -> int:
    """Returns how many elements a tensor value has."""
    return math.prod(shape_of(value))


def element_bytes(element: ir.Type) -> int:
    """Returns the bytes of an element in memory; a complex number has two parts."""
    if isinstance(element, ir.ComplexType):
        return 2 * element_bytes(element.element_type)
    return -(-element.width // 8)


def bytes_of(value: ir.Value) -> int:
    """Returns how many bytes a tensor value takes in memory."""
    return size_of(value) * element_bytes(value.type.element_type)


def as_element_type(element: ElementType) -> ir.Type:
    """Returns an MLIR element type from itself, or from anything that `np.dtype` accepts."""
    return element if isinstance(element, ir.Type) else element_type(np.dtype(element))


def tensor_type(shape: Sequence[int], element: ElementType) -> ir.RankedTensorType:
    """Returns the ranked tensor type of a shape and an element type."""
    if is_open(shape):
        return ShapedArray(shape, numpy_dtype(as_element_type(element))).mlir
    return ir.RankedTensorType.get(list(shape), as_element_type(element))


def is_complex(value: ir.Value) -> bool:
    """Tells whether a value is a tensor of complex numbers."""
    return isinstance(element_type_of(value), ir.ComplexType)


def is_float(value: ir.Value) -> bool:
    """Tells whether a value is a tensor of real floating point numbers."""
    return isinstance(element_type_of(value), ir.FloatType)


def is_integer(value: ir.Value) -> bool:
    """Tells whether a value is a tensor of integers or booleans."""
    return isinstance(element_type_of(value), ir.IntegerType)


def is_unsigned(value: ir.Value) -> bool:
    """Tells whether a value is a tensor of unsigned integers; booleans (`i1`) are not."""
    element = element_type_of(value)
    return isinstance(element, ir.IntegerType) and element.is_unsigned


@functools.lru_cache(maxsize=4096)
def attribute(text: str) -> ir.Attribute:
    """Returns an attribute from its MLIR text, e.g. `#stablehlo<precision HIGHEST>`.

    Cached: parsing takes 20 us, and the process has one context, which never frees attributes.
    """
    return ir.Attribute.parse(text, context())


def integers(values: Sequence[int]) -> ir.Attribute:
    """`array<i64: …>`, the attribute that holds dimensions and sizes."""
    return ir.DenseI64ArrayAttr.get([int(value) for value in values])


def booleans(values: Sequence[bool]) -> ir.Attribute:
    """`array<i1: …>`."""
    return ir.DenseBoolArrayAttr.get([bool(value) for value in values])


def integer(value: int, bits: int = 64) -> ir.Attribute:
    """Returns a signless integer attribute."""
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(bits), int(value))


def precision_config(precision: str | Sequence[str] | None, count: int = 2) -> ir.Attribute:
    """`precision_config` of a contraction: DEFAULT, HIGH or HIGHEST, for all operands or each."""
    names = (
        [precision or "DEFAULT"] * count if isinstance(precision, str | None) else list(precision)
    )
    return ir.ArrayAttr.get([attribute(f"#stablehlo<precision {name}>") for name in names])


def padding_pairs(padding: Sequence[Sequence[int]]) -> ir.Attribute:
    """`dense<[[low, high], …]> : tensor<n x 2 x i64>`."""
    pairs = np.asarray([list(map(int, pair)) for pair in padding], np.int64).reshape(
        len(padding), 2
    )
    return ir.DenseElementsAttr.get(pairs, type=tensor_type(pairs.shape, np.int64))


def build(
    builder: str,
    operation: str,
    operands: Sequence[ir.Value],
    result_types: Sequence[ir.Type] | None = None,
    attributes: dict[str, ir.Attribute] | None = None,
    bodies: Sequence[tuple[Sequence[ir.Type], Body]] = (),
) -> ir.Operation:
    """Creates one verified operation at the ambient insertion point.

    `result_types=None` asks MLIR's type inference. Each entry of `bodies` gives the block argument
    types of a region and the function that fills it: it is called with the block arguments and
    returns the results of the region.

    Raises `StableHLOError`, naming `builder`, when MLIR rejects the operation.
    """
    try:
        created = ir.Operation.create(
            operation,
            results=None if result_types is None else list(result_types),
            operands=list(operands),
            attributes=attributes,
            regions=len(bodies),
            infer_type=result_types is None,
        )
    except ir.MLIRError as error:
        raise _rejected(builder, operands, error) from None
    try:
        for region, (argument_types, body) in zip(created.regions, bodies, strict=True):
            fill_region(region, argument_types, body)
        created.verify()
    except ir.MLIRError as error:
        created.erase()
        raise _rejected(builder, operands, error) from None
    except BaseException:
        created.erase()
        raise
    return created


def fill_region(region: ir.Region, argument_types: Sequence[ir.Type], body: Body) -> None:
    """Appends the block of a region, filled by `body` and ended by `stablehlo.return`."""
    block = region.blocks.append(*argument_types)
    with ir.InsertionPoint(block):
        ir.Operation.create("stablehlo.return", operands=as_values(body(*block.arguments)))


def is_narrow_tensor(value_type: ir.Type) -> bool:
    """Tells whether a type is a tensor of elements of few bits, such as f8E5M2 and i4."""
    if not isinstance(value_type, ir.RankedTensorType):
        return False
    element = value_type.element_type
    if isinstance(element, ir.IntegerType):
        return 1 < element.width < 8
    return isinstance(element, ir.FloatType) and element.width <= 8


def as_values(values: ir.Value | Sequence[ir.Value]) -> list[ir.Value]:
    """Returns a list of values from one value or a sequence of values."""
    return [values] if isinstance(values, ir.Value) else list(values)


def _rejected(builder: str, operands: Sequence[ir.Value], error: ir.MLIRError) -> StableHLOError:
    """Returns the builder's error from MLIR's: its first message line, with the operand types."""
    messages = [diagnostic.message for diagnostic in error.error_diagnostics] or [str(error)]
    types = ", ".join(str(operand.type) for operand in operands)
    return StableHLOError(f"stablehlo.{builder}({types}): {'; '.join(messages)}")


def constant(value: NestedNumbers, element: ElementType | None = None) -> ir.Value:
    """Returns a constant tensor holding `value`, an array or scalar, converted to `element` if
    given.

    Uniform arrays become splats, so that a large constant of zeros stays one number.
    """
    array = np.asarray(value)
    if element is not None:
        array = array.astype(numpy_dtype(as_element_type(element)), copy=False)
    value = dense(array)
    return build("constant", "stablehlo.constant", (), [value.type], {"value": value}).result
