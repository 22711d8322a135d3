"""Products of arrays by the attributes of operations, for rules of several files.

Elsewhere: the rules (`contractions.py`), and products of integers by their bytes
(`byte_products.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from iree.compiler import ir

from axir.dialect.core.annotations import Dtype
from axir.dialect.ops.contraction.dot_general import dot_general
from axir.dialect.ops.convolution.conv_general_dilated import conv_general_dilated
from axir.dialect.ops.convolution.types import ConvDimensionNumbers
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.shape.rearranging import rev
from axir.dialect.program.rules import Value
from axir.passes.legalize.attributes import Convolution
from axir.passes.raising.dimensions.attributes import DimensionNumbers, dimension_numbers, words

Precision = tuple[str, str] | None


def precision_of(operation: ir.Operation) -> Precision:
    """Returns the precision of both operands; None if it is the default."""
    found = words(operation, "precision_config")
    if len(found) != 2 or found == ["DEFAULT", "DEFAULT"]:
        return None
    return found[0], found[1]


def alike(lhs: Value, rhs: Value, wanted: Dtype) -> tuple[Value, Value, Dtype | None]:
    """Returns operands of one dtype, and the dtype of the result if it is another one."""
    if lhs.dtype != rhs.dtype:
        lhs, rhs = (convert_element_type(x, wanted) for x in (lhs, rhs))
    return lhs, rhs, None if lhs.dtype == wanted else wanted


def dot_dimensions(operation: ir.Operation) -> DimensionNumbers:
    """Returns which dimensions of a product are contracted, and which are batch dimensions."""
    if operation.name == "stablehlo.dot_general":
        return dimension_numbers(operation.attributes["dot_dimension_numbers"])
    return DimensionNumbers(
        lhs_contracting_dimensions=(operation.operands[0].type.rank - 1,),
        rhs_contracting_dimensions=(0,),
    )


def product(
    operation: ir.Operation, lhs: Value, rhs: Value, numbers: DimensionNumbers, wanted: Dtype
) -> Value:
    """Returns a product of arrays of a dtype, with the precision of an operation."""
    lhs, rhs, preferred = alike(lhs, rhs, wanted)
    sides = ("lhs", "rhs")
    contracting = tuple(numbers[f"{side}_contracting_dimensions"] for side in sides)
    batching = tuple(numbers[f"{side}_batching_dimensions"] for side in sides)
    return dot_general(lhs, rhs, (contracting, batching), precision_of(operation), preferred)


def convolved(
    operation: ir.Operation,
    lhs: Value,
    rhs: Value,
    read: Convolution,
    padding: Sequence[tuple[int, ...]],
    wanted: Dtype,
) -> Value:
    """Returns a convolution of a dtype by an operation's attributes, except for the padding."""
    lhs, rhs, preferred = alike(lhs, rhs, wanted)
    reversed_axes = tuple(
        axis for axis, is_reversed in zip(read.rhs[2:], read.reversal, strict=True) if is_reversed
    )
    return conv_general_dilated(
        lhs,
        rev(rhs, reversed_axes) if reversed_axes else rhs,
        tuple(read.strides),
        tuple(padding),
        tuple(read.lhs_dilation),
        tuple(read.rhs_dilation),
        ConvDimensionNumbers(read.lhs, read.rhs, read.result),
        read.feature_groups,
        read.batch_groups,
        precision_of(operation),
        preferred,
    )
