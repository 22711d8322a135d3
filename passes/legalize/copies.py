"""Kernel code that goes through rows in vectors, and kernels that copy or fill.

Elsewhere: kernels that compute (`indices/scatter_by_kernel.py`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from iree.compiler import ir

from axir.dialect.builders import scalars
from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.kernels import Memory, dispatch, loop, when
from axir.dialect.builders.scalars import Scalar, broadcast, index
from axir.passes.legalize.rewriting import renewed

_VECTOR_BYTES = 64
_MOST_WORKGROUPS = 8
# IREE fills wider numbers by kernels, and makes one kernel for all equal arrays; the host has no
# floats of 16 bits.
_FILLED_WIDTH = 32
# A workgroup's share of a copy.
_SHARE_BYTES = 1 << 18


@dataclasses.dataclass(frozen=True)
class Columns:
    """The columns of rows in memory, divided among the workgroups.

    Attributes:
        extent: How many columns there are.
        memory: An array of the elements' type.
        workgroup: The number of the workgroup.
        workgroups: How many there are.
    """

    extent: int
    memory: Memory
    workgroup: Scalar
    workgroups: int

    def each(self, step: Callable[[Scalar, int], None]) -> None:
        """Runs `step(column, width)` for the share, in whole vectors and then in smaller ones."""
        lanes = vector_lanes(self.memory)
        whole = self.extent // lanes
        first, end = index(0), index(whole * lanes)
        if self.workgroups > 1:
            share = -(-whole // self.workgroups) * lanes
            first = self.workgroup * share
            following = first + share
            end = (following < end).choose(following, end)
        if whole:
            loop(first, end, (), lambda i: step(i, lanes), stride=lanes)

        def rest() -> None:
            for offset, width in rest_of_row(self.extent, lanes):
                step(index(offset), width)

        if self.extent % lanes and self.workgroups > 1:
            when(self.workgroup == self.workgroups - 1)(rest)
        else:
            rest()


def vector_lanes(memory: Memory) -> int:
    """Returns how many numbers of an array fit into a vector of the largest size."""
    return _VECTOR_BYTES * 8 // memory.value.type.element_type.width


def rest_of_row(extent: int, lanes: int) -> list[tuple[int, int]]:
    """Returns the offset and width of smaller vectors that cover the rest behind whole vectors.

    >>> rest_of_row(37, 16)
    [(32, 4), (36, 1)]
    """
    parts = []
    offset = extent - extent % lanes
    while offset < extent:
        width = 1 << ((extent - offset).bit_length() - 1)
        parts.append((offset, width))
        offset += width
    return parts


def begin(target: Memory, source: Memory | Scalar, columns: Columns) -> None:
    """Writes a number, or the elements of an array of the same shape, into a workgroup's share of
    all rows.
    """

    def nest(place: tuple[Scalar, ...]) -> None:
        number = len(place)
        if number == len(target.shape):
            _move(target, source, place, 1)
        elif number == len(target.shape) - 1 and columns.extent == target.shape[-1]:
            columns.each(lambda i, width: _move(target, source, (*place, i), width))
        else:
            loop(0, target.shape[number], (), lambda i: nest((*place, i)))

    nest(())


def _move(target: Memory, source: Memory | Scalar, place: tuple[Scalar, ...], width: int) -> None:
    if width == 1:
        target[place] = source if isinstance(source, Scalar) else source[place]
    elif isinstance(source, Scalar):
        target.write(place, broadcast(source, width))
    else:
        target.write(place, source.read(place, width))


def is_worth_a_kernel(operand: ir.Value) -> bool:
    """Tells whether an array is real, and large enough for several threads."""
    kind = operand.type
    if hlo.is_complex(operand) or not kind.has_static_shape:
        return False
    return hlo.bytes_of(operand) >= 2 * _SHARE_BYTES


def copied(operand: ir.Value, fill: float | None) -> ir.Value:
    """Returns a copy of an array, or an array of its size filled with a number, in new memory."""
    count, element = hlo.size_of(operand), hlo.element_type_of(operand)
    flat = hlo.tensor_type((count,), element)
    size = count * hlo.element_bytes(element)
    workgroups = max(1, min(_MOST_WORKGROUPS, size // _SHARE_BYTES))

    def kernel(workgroup: Scalar, *arrays: Memory) -> None:
        target = arrays[-1]
        source = arrays[0] if fill is None else target.constant(fill)
        begin(target, source, Columns(count, target, workgroup, workgroups))

    operands = [hlo.reshape(operand, (count,))] if fill is None else []
    [copy] = dispatch(kernel, operands, [flat], workgroups=workgroups, name="copy")
    return hlo.reshape(copy, hlo.shape_of(operand))


def uniform_number(value: ir.Value) -> float | None:
    """Returns the number that all elements of an array of real numbers are, if that is known."""
    if hlo.is_complex(value):
        return None
    while not isinstance(value, ir.BlockArgument) and value.owner.name in (
        "stablehlo.broadcast_in_dim",
        "stablehlo.reshape",
    ):
        value = value.owner.operands[0]
    if isinstance(value, ir.BlockArgument):
        return None
    if value.owner.name == "stablehlo.negate":
        number = uniform_number(value.owner.operands[0])
        return None if number is None else -number
    if value.owner.name != "stablehlo.constant":
        return None
    dense = value.owner.attributes["value"]
    if not dense.is_splat:
        return None
    return dense.get_splat_value().value


def made_alone(value: ir.Value) -> ir.Value:
    """Returns the same numbers in new memory that no other array shares.

    An array filled with one 32-bit number becomes a fill with a number that is opaque to the
    compiler. A kernel copies any other array (`renewed`).
    """
    element = hlo.element_type_of(value)
    is_filled = not hlo.is_complex(value) and not hlo.is_unsigned(value)
    number = uniform_number(value) if is_filled and element.width == _FILLED_WIDTH else None
    if number is None:
        return renewed(value)
    known = scalars.constant(number, element).value
    hidden = ir.Operation.create("util.optimization_barrier", [element], [known]).result
    return ir.Operation.create("flow.tensor.splat", [value.type], [hidden]).result
