"""How a program becomes a kernel: its operands and results, and the division of its rows.

Elsewhere: the code of the kernel (`code.py`).
"""

from __future__ import annotations

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.copies import uniform_number

from .programs import Program, operands_of
from .reductions import REDUCE, accumulated, is_end
from .spaces import Leaf, counted_axis, is_full, leaf_of, owner_of

_MOST_WORKGROUPS = 8
_BYTES_PER_WORKGROUP = 1 << 18
# Sums of so many numbers one after the other are accurate enough.
_ROWS_PER_PART = 1 << 10


class Plan:
    """The properties of a kernel that are known before its code is written."""

    def __init__(self, program: Program):
        self.program = program
        self.space = program.space
        self.leaves: dict[ir.Value, Leaf] = {}
        for made in program.members:
            for x in operands_of(made):
                self._note(x)
        size = sum(hlo.bytes_of(leaf.value) for leaf in self.leaves.values() if leaf.has_columns)
        self.workgroups = max(1, min(_MOST_WORKGROUPS, size // _BYTES_PER_WORKGROUP))
        rows = self.space.rows // self.space.batches
        even = -(-self.workgroups // self.space.batches)
        self.parts = min(max(even, rows // _ROWS_PER_PART), rows)

    def _note(self, value: ir.Value) -> None:
        if value in self.leaves or owner_of(value) in self.program.inside:
            return
        if uniform_number(value) is None and counted_axis(value, self.space) is None:
            self.leaves[value] = leaf_of(value, self.space)

    def operand(self, leaf: Leaf) -> ir.Value:
        """Returns an input array in the shape in which it is read."""
        count = hlo.size_of(leaf.value)
        if not leaf.has_columns:
            return hlo.reshape(leaf.value, (count,))
        return hlo.reshape(leaf.value, (count // self.space.columns, self.space.columns))

    def memory_type(self, value: ir.Value) -> ir.Type:
        """Returns the type of the memory of an output."""
        element = hlo.element_type_of(value)
        if is_end(value.owner):
            count = self.space.batches * self.parts
            kept = accumulated(element) if len(value.owner.results) == 1 else element
            return hlo.tensor_type((count, self.space.columns), kept)
        if value.owner.name != REDUCE and is_full(value.owner, self.space):
            return hlo.tensor_type((self.space.rows, self.space.columns), element)
        return hlo.tensor_type((self.space.rows,), element)
