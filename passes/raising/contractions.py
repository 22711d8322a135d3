"""Products of arrays in StableHLO: dots, einsums, convolutions, and Fourier transforms."""

from __future__ import annotations

from collections.abc import Sequence

from iree.compiler import ir

from axir.dialect.core.annotations import Dtype
from axir.dialect.ops.contraction.dot_general import dot_general
from axir.dialect.ops.contraction.ragged_dot import (
    RaggedDotDimensionNumbers,
    ragged_dot_general,
)
from axir.dialect.ops.convolution.conv_general_dilated import conv_general_dilated
from axir.dialect.ops.convolution.types import ConvDimensionNumbers
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.fft.fourier_transform import fft
from axir.dialect.ops.reductions.reduce import reduce_sum
from axir.dialect.ops.shape.rearranging import rev, transpose
from axir.dialect.program.rules import Value
from axir.passes.legalize.convolution_attributes import Convolution

from .attributes import DimensionNumbers, dimension_numbers, integers, text, word, words
from .dynamic_shapes import known
from .table import RaisingContext, raises, refusal, result_dtype

Precision = tuple[str, str] | None


def _precision(operation: ir.Operation) -> Precision:
    """Returns the precision of both operands; None if it is the default."""
    found = words(operation, "precision_config")
    if len(found) != 2 or found == ["DEFAULT", "DEFAULT"]:
        return None
    return found[0], found[1]


def _alike(lhs: Value, rhs: Value, wanted: Dtype) -> tuple[Value, Value, Dtype | None]:
    """Returns operands of one dtype, and the dtype of the result if it is another one."""
    if lhs.dtype != rhs.dtype:
        lhs, rhs = (convert_element_type(x, wanted) for x in (lhs, rhs))
    return lhs, rhs, None if lhs.dtype == wanted else wanted


@raises("stablehlo.dot_general")
def _dot_general(context: RaisingContext, operation: ir.Operation, lhs: Value, rhs: Value) -> Value:
    return product(operation, lhs, rhs, dot_dimensions(operation), result_dtype(operation))


@raises("stablehlo.dot")
def _dot(context: RaisingContext, operation: ir.Operation, lhs: Value, rhs: Value) -> Value:
    return product(operation, lhs, rhs, dot_dimensions(operation), result_dtype(operation))


def dot_dimensions(operation: ir.Operation) -> DimensionNumbers:
    """Returns which dimensions of a product are contracted, and which are those of a batch."""
    if operation.name == "stablehlo.dot_general":
        return dimension_numbers(operation.attributes["dot_dimension_numbers"])
    return DimensionNumbers(
        lhs_contracting_dimensions=(operation.operands[0].type.rank - 1,),
        rhs_contracting_dimensions=(0,),
    )


def product(
    operation: ir.Operation, lhs: Value, rhs: Value, numbers: DimensionNumbers, wanted: Dtype
) -> Value:
    """Returns a product of arrays of a dtype, with the precision that an operation asks for."""
    lhs, rhs, preferred = _alike(lhs, rhs, wanted)
    sides = ("lhs", "rhs")
    contracting = tuple(numbers[f"{side}_contracting_dimensions"] for side in sides)
    batching = tuple(numbers[f"{side}_batching_dimensions"] for side in sides)
    return dot_general(lhs, rhs, (contracting, batching), _precision(operation), preferred)


@raises("chlo.ragged_dot")
def _ragged_dot(
    context: RaisingContext, operation: ir.Operation, lhs: Value, rhs: Value, sizes: Value
) -> Value:
    numbers = dimension_numbers(operation.attributes["ragged_dot_dimension_numbers"])
    lhs, rhs, preferred = _alike(lhs, rhs, result_dtype(operation))
    contracting, batching = (
        tuple(numbers[f"{side}_{kind}_dimensions"] for side in ("lhs", "rhs"))
        for kind in ("contracting", "batching")
    )
    ragged = RaggedDotDimensionNumbers(
        (contracting, batching),
        numbers["lhs_ragged_dimensions"],
        numbers["rhs_group_dimensions"],
    )
    return ragged_dot_general(lhs, rhs, sizes, ragged, _precision(operation), preferred)


@raises("stablehlo.einsum", "stablehlo.unary_einsum")
def _einsum(context: RaisingContext, operation: ir.Operation, *values: Value) -> Value:
    inputs, _, output = text(operation, "einsum_config").replace(" ", "").partition("->")
    names = inputs.split(",")
    if any(len(set(n)) != len(n) or "." in n for n in (*names, output)):
        raise refusal(
            f"{operation.name} with {inputs}->{output} takes diagonals or unnamed dimensions.",
            "Write it with stablehlo.dot_general, which names each dimension once.",
        )
    reduced = [_without(x, n, [m for m in names if m is not n], output) for x, n in
               zip(values, names, strict=True)]  # fmt: skip
    found, value = reduced[0][0], reduced[0][1]
    if len(reduced) == 2:
        found, value = _contracted(operation, *reduced[0], *reduced[1], output)
    return transpose(value, tuple(found.index(name) for name in output))


def _without(x: Value, names: str, others: Sequence[str], output: str) -> tuple[str, Value]:
    """Sums over the dimensions that only this operand has."""
    kept = "".join(n for n in names if n in output or any(n in other for other in others))
    axes = tuple(i for i, n in enumerate(names) if n not in kept)
    return kept, reduce_sum(x, axes) if axes else x


def _contracted(
    operation: ir.Operation, left: str, lhs: Value, right: str, rhs: Value, output: str
) -> tuple[str, Value]:
    batch = [n for n in left if n in right and n in output]
    summed = [n for n in left if n in right and n not in output]
    numbers = DimensionNumbers(
        lhs_batching_dimensions=tuple(map(left.index, batch)),
        rhs_batching_dimensions=tuple(map(right.index, batch)),
        lhs_contracting_dimensions=tuple(map(left.index, summed)),
        rhs_contracting_dimensions=tuple(map(right.index, summed)),
    )
    rest = [n for n in left + right if n not in batch and n not in summed]
    found = product(operation, lhs, rhs, numbers, result_dtype(operation))
    return "".join([*batch, *rest]), found


@raises("stablehlo.convolution")
def _convolution(context: RaisingContext, operation: ir.Operation, lhs: Value, rhs: Value) -> Value:
    read = Convolution.read(operation)
    padding = [tuple(pair) for pair in read.padding]
    return convolved(operation, lhs, rhs, read, padding, result_dtype(operation))


@raises("stablehlo.dynamic_conv")
def _dynamic_conv(
    context: RaisingContext, operation: ir.Operation, lhs: Value, rhs: Value, padding: Value
) -> Value:
    pairs = [tuple(pair) for pair in known(context, operation, 2).tolist()]
    read = Convolution.read(operation)
    return convolved(operation, lhs, rhs, read, pairs, result_dtype(operation))


def convolved(
    operation: ir.Operation,
    lhs: Value,
    rhs: Value,
    read: Convolution,
    padding: Sequence[tuple[int, ...]],
    wanted: Dtype,
) -> Value:
    """Returns a convolution of a dtype by the attributes of an operation, but for the padding."""
    lhs, rhs, preferred = _alike(lhs, rhs, wanted)
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
        _precision(operation),
        preferred,
    )


@raises("stablehlo.fft")
def _fft(context: RaisingContext, operation: ir.Operation, x: Value) -> Value:
    kind = word(operation.attributes["fft_type"])
    return fft(x, kind, integers(operation, "fft_length"))
