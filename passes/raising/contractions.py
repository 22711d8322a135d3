"""Products of arrays in StableHLO: dots, einsums, convolutions, and Fourier transforms."""

from __future__ import annotations

from collections.abc import Sequence

from iree.compiler import ir

from axir.dialect.ops.contraction.fourier_transform import fft
from axir.dialect.ops.contraction.ragged_dot import (
    RaggedDotDimensionNumbers,
    ragged_dot_general,
)
from axir.dialect.ops.reductions.reduce import reduce_sum
from axir.dialect.ops.shape.rearranging import transpose
from axir.dialect.program.rules import Value
from axir.passes.legalize.attributes import Convolution
from axir.passes.raising.dimensions.attributes import (
    DimensionNumbers,
    dimension_numbers,
    integers,
    text,
    word,
)

from .byte_products import convolution_of_widened, dot_of_widened
from .products import alike, convolved, dot_dimensions, precision_of, product
from .shapes import known
from .table import RaisingContext, raises, refusal, result_dtype


@raises("stablehlo.dot", "stablehlo.dot_general")
def _dot(context: RaisingContext, operation: ir.Operation, lhs: Value, rhs: Value) -> Value:
    of_bytes = dot_of_widened(context, operation)
    if of_bytes is not None:
        return of_bytes
    return product(operation, lhs, rhs, dot_dimensions(operation), result_dtype(operation))


@raises("chlo.ragged_dot")
def _ragged_dot(
    context: RaisingContext, operation: ir.Operation, lhs: Value, rhs: Value, sizes: Value
) -> Value:
    numbers = dimension_numbers(operation.attributes["ragged_dot_dimension_numbers"])
    lhs, rhs, preferred = alike(lhs, rhs, result_dtype(operation))
    contracting, batching = (
        tuple(numbers[f"{side}_{kind}_dimensions"] for side in ("lhs", "rhs"))
        for kind in ("contracting", "batching")
    )
    ragged = RaggedDotDimensionNumbers(
        (contracting, batching),
        numbers["lhs_ragged_dimensions"],
        numbers["rhs_group_dimensions"],
    )
    return ragged_dot_general(lhs, rhs, sizes, ragged, precision_of(operation), preferred)


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
    padding = [tuple(pair) for pair in Convolution.read(operation).padding]
    return _any_convolution(context, operation, lhs, rhs, padding)


@raises("stablehlo.dynamic_conv")
def _dynamic_conv(
    context: RaisingContext, operation: ir.Operation, lhs: Value, rhs: Value, padding: Value
) -> Value:
    pairs = [tuple(pair) for pair in known(context, operation, 2).tolist()]
    return _any_convolution(context, operation, lhs, rhs, pairs)


def _any_convolution(
    context: RaisingContext,
    operation: ir.Operation,
    lhs: Value,
    rhs: Value,
    padding: list[tuple[int, ...]],
) -> Value:
    of_bytes = convolution_of_widened(context, operation, padding)
    if of_bytes is not None:
        return of_bytes
    read = Convolution.read(operation)
    return convolved(operation, lhs, rhs, read, padding, result_dtype(operation))


@raises("stablehlo.fft")
def _fft(context: RaisingContext, operation: ir.Operation, x: Value) -> Value:
    kind = word(operation.attributes["fft_type"])
    return fft(x, kind, integers(operation, "fft_length"))
