"""Transpositions of operands of contractions: absorbed by the contraction, or stored by rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.base import Pass
from axir.passes.legalize.attributes import DimensionNumbers, dimension_numbers
from axir.passes.legalize.rewriting import RewritePass, find_operations, replace

_DOT = "stablehlo.dot_general"
_TRANSPOSE = "stablehlo.transpose"
_KINDS = ("batching", "contracting")


class AbsorbTransposes(Pass):
    """Removes transpositions before and after a contraction.

    A `dot_general` names the dimensions that it contracts, so its operands need no transpose
    beforehand. The gradient of `x @ w` with respect to `w` is traced as (gᵀ x)ᵀ, which transposes
    the result in memory; xᵀ g is equal and needs no transpose.

    1. Visit every operand of a `dot_general` that is a transposition, and read its operand instead:
       dimension d becomes permutation[d]. The dimensions which remain in the result must keep their
       order.
    2. Visit every transposition that is the only user of a `dot_general`. The result of the
       contraction has the batch dimensions, then the free dimensions of lhs, then the free
       dimensions of rhs. If the permutation keeps the first group and exchanges the other two,
       contract rhs with lhs.

    Before::

        %0 = stablehlo.transpose %g, dims = [1, 0] : (tensor<6x5xf32>) -> tensor<5x6xf32>
        %1 = stablehlo.dot_general %0, %x, contracting_dims = [1] x [0] : … -> tensor<5x7xf32>
        %2 = stablehlo.transpose %1, dims = [1, 0] : (tensor<5x7xf32>) -> tensor<7x5xf32>

    After::

        %2 = stablehlo.dot_general %x, %g, contracting_dims = [0] x [0] : … -> tensor<7x5xf32>

    Measured: a training step of an MLP 784-512-512-10, batch 128, takes 14% less time and 10% to
    30% less time to compile. The values do not change.
    """

    name: ClassVar[str] = "absorb-transposes"

    def run(self, module: ir.Module) -> None:
        """Removes the transpositions around each contraction."""
        for dot in find_operations(module.operation, (_DOT,)):
            for index in range(2):
                _absorb_operand(dot, index)
        for transpose in find_operations(module.operation, (_TRANSPOSE,)):
            if _is_made_by(transpose.operands[0], _DOT):
                _absorb_result(transpose.operands[0].owner.operation, transpose)


def _is_made_by(value: ir.Value, name: str) -> bool:
    return not isinstance(value, ir.BlockArgument) and value.owner.name == name


def _numbers(dot: ir.Operation) -> DimensionNumbers:
    return dimension_numbers(dot.attributes["dot_dimension_numbers"])


def _numbers_attribute(numbers: DimensionNumbers) -> ir.Attribute:
    lists = (
        f"{side}_{kind}_dimensions = {list(numbers[f'{side}_{kind}_dimensions'])}"
        for kind in _KINDS
        for side in ("lhs", "rhs")
    )
    return hlo.attribute(f"#stablehlo.dot<{', '.join(lists)}>")


def _absorb_operand(dot: ir.Operation, index: int) -> None:
    operand = dot.operands[index]
    if not _is_made_by(operand, _TRANSPOSE):
        return
    transpose = operand.owner.operation
    permutation = list(transpose.attributes["permutation"])
    side = ("lhs", "rhs")[index]
    numbers = _numbers(dot)
    names = [f"{side}_{kind}_dimensions" for kind in _KINDS]
    used = {axis for name in names for axis in numbers[name]}
    free = [permutation[axis] for axis in range(len(permutation)) if axis not in used]
    if free != sorted(free):
        return
    moved = DimensionNumbers(numbers)
    for name in names:
        moved[name] = tuple(permutation[axis] for axis in numbers[name])
    dot.operands[index] = transpose.operands[0]
    dot.attributes["dot_dimension_numbers"] = _numbers_attribute(moved)
    if not any(True for _ in transpose.results[0].uses):
        transpose.erase()


def _absorb_result(dot: ir.Operation, transpose: ir.Operation) -> None:
    is_only_use = len(list(dot.results[0].uses)) == 1
    if is_only_use and _exchanges_operands(dot, list(transpose.attributes["permutation"])):
        with ir.InsertionPoint(transpose), dot.location:
            exchanged = _exchange(dot, transpose.results[0].type)
        replace(transpose, exchanged)
        dot.erase()


def _exchanges_operands(dot: ir.Operation, permutation: Sequence[int]) -> bool:
    """Tells whether a permutation of the result moves rhs's free dimensions before lhs's."""
    numbers = _numbers(dot)
    batch = len(numbers["lhs_batching_dimensions"])
    rank = len(dot.operands[0].type.shape)
    middle = rank - len(numbers["lhs_contracting_dimensions"])  # where rhs's dimensions begin
    axes = range(len(permutation))
    return list(permutation) == [*axes[:batch], *axes[middle:], *axes[batch:middle]]


def _exchange(dot: ir.Operation, result_type: ir.Type) -> ir.Value:
    numbers = _numbers(dot)
    exchanged = DimensionNumbers()
    for kind in _KINDS:
        exchanged[f"lhs_{kind}_dimensions"] = numbers[f"rhs_{kind}_dimensions"]
        exchanged[f"rhs_{kind}_dimensions"] = numbers[f"lhs_{kind}_dimensions"]
    attributes = {name: dot.attributes[name] for name in dot.attributes}
    attributes["dot_dimension_numbers"] = _numbers_attribute(exchanged)
    if "precision_config" in attributes:
        precisions = list(ir.ArrayAttr(attributes["precision_config"]))
        attributes["precision_config"] = ir.ArrayAttr.get(precisions[::-1])
    lhs, rhs = dot.operands
    return hlo.build("dot_general", _DOT, (rhs, lhs), [result_type], attributes).result


class TransposeRhs(RewritePass):
    """Transposes the right operand of x yᵀ in memory before the contraction.

    The fact: a tile of a matrix product is a row of the left operand's elements times rows of the
    right operand. If the right operand's last dimension is contracted, IREE collects each of these
    rows from a column, again for every row of the left operand. The transposition costs less, even
    for 4 rows. (Transposed left operands are not a problem.)

    1. Take contractions of real floating-point numbers where both operands keep a dimension, and
       the last dimension of rhs is contracted.
    2. Transpose rhs to batch, contracted and remaining dimensions, in this order. An optimization
       barrier keeps IREE from undoing it.

    Before::

        %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [1]
            : (tensor<128x512xf32>, tensor<256x512xf32>) -> tensor<128x256xf32>

    After::

        %1 = stablehlo.transpose %y, dims = [1, 0] : (tensor<256x512xf32>) -> tensor<512x256xf32>
        %2 = stablehlo.optimization_barrier %1 : tensor<512x256xf32>
        %0 = stablehlo.dot_general %x, %2, contracting_dims = [1] x [0]
            : (tensor<128x512xf32>, tensor<512x256xf32>) -> tensor<128x256xf32>

    Measured, processor time relative to JAX before and after: 128x512 times 512x512 2.5 and 0.9,
    1024x64 times 64x1024 2.6 and 0.9, 32 products 256x64 times 64x256 (attention) 2.7 and 1.0,
    8x512 times 512x512 0.64 and 0.56.
    """

    name: ClassVar[str] = "transpose-rhs"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.dot_general",)

    def rewrite(self, operation: ir.Operation) -> ir.Value | None:
        """Builds the transposition and the contraction."""
        lhs, rhs = operation.operands
        numbers = dimension_numbers(operation.attributes["dot_dimension_numbers"])
        batch = numbers["rhs_batching_dimensions"]
        contracted = numbers["rhs_contracting_dimensions"]
        shape = hlo.shape_of(rhs)
        if not (hlo.is_float(lhs) and hlo.is_float(rhs)) or len(shape) - 1 not in contracted:
            return None
        shared = math.prod(shape[axis] for axis in batch + contracted)
        if min(hlo.size_of(lhs), math.prod(shape)) <= shared:
            return None
        free = [axis for axis in range(len(shape)) if axis not in batch + contracted]
        rows = hlo.optimization_barrier(hlo.transpose(rhs, [*batch, *contracted, *free]))[0]
        attributes = {name: operation.attributes[name] for name in operation.attributes}
        first = len(batch)
        attributes["dot_dimension_numbers"] = hlo.attribute(
            f"#stablehlo.dot<lhs_batching_dimensions = {list(numbers['lhs_batching_dimensions'])}, "
            f"rhs_batching_dimensions = {list(range(first))}, "
            f"lhs_contracting_dimensions = {list(numbers['lhs_contracting_dimensions'])}, "
            f"rhs_contracting_dimensions = {list(range(first, first + len(contracted)))}>"
        )
        result_types = [operation.results[0].type]
        name = "dot_general"
        return hlo.build(name, operation.name, (lhs, rows), result_types, attributes).result
