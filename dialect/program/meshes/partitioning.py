"""The interface of `partition` rules to the pass that cuts a program into devices' parts.

Elsewhere: the pass (`passes/partition/`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from axir.dialect.program.function import Function
from axir.dialect.program.rules import Value

from .layouts import Layout, MeshAxes


class Placed(NamedTuple):
    """The part of an array that a device holds.

    Attributes:
        value: The part.
        layout: How the array is cut.
        shape: Shape of the array.
    """

    value: Value
    layout: Layout
    shape: tuple[int, ...]


class Note(NamedTuple):
    """A remark about a partitioned program for its reader.

    Attributes:
        op: Name of the op in question.
        line: The user's line, if known.
        text: The decision, and its reason.
    """

    op: str
    line: str | None
    text: str


@dataclass(frozen=True)
class Partitioned:
    """A program as each device of a mesh runs it.

    Attributes:
        local: From the parts of the arguments (inputs, then captures of the program) to the parts
            of the results; it has no captures. Its collectives name the axes of the mesh.
        in_layouts: How each argument is cut.
        out_layouts: How each result is cut.
        notes: Values that are whole although operands are cut, with reasons.
    """

    local: Function
    in_layouts: tuple[Layout, ...]
    out_layouts: tuple[Layout, ...]
    notes: tuple[Note, ...]


class Partitioner(Protocol):
    """The services of the pass for a `partition` rule.

    Attributes:
        axes: The axes of the mesh along which arrays may be cut.
    """

    axes: MeshAxes

    def moved(self, operand: Placed, layout: Layout) -> Placed:
        """Returns the part that a device holds under another layout, which cuts evenly."""
        ...

    def function(
        self,
        function: Function,
        in_layouts: Sequence[Layout],
        out_layouts: Sequence[Layout | None] | None = None,
        axes: MeshAxes | None = None,
        is_trial: bool = False,
    ) -> Partitioned:
        """Partitions another function, such as a body; its notes are kept unless it is a trial.

        Args:
            function: The function.
            in_layouts: Layouts of its arguments.
            out_layouts: Layouts that the results must have. By default, and where it is None, a
                result keeps the layout that it gets.
            axes: The axes of the mesh; by default the surrounding program's.
            is_trial: Whether to find layouts only.
        """
        ...

    def wanted(self) -> list[Layout | None]:
        """Returns the layouts of the op's results that later ops want, where they are known."""
        ...

    def note(self, text: str) -> None:
        """Notes something about the op."""
        ...
