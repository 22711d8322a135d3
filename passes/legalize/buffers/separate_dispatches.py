"""`separate-dispatches`: IREE does not fuse pairs of operations that it then computes wrongly.

Here: the pass, which puts the barriers.
Elsewhere: the pairs, with IREE's error and a smallest module for each (`dispatch_rows.py`), and the
searches for pairs (`dispatch_searches.py`, `slice_searches.py`). Barriers that bound the size of a
dispatch (`limits.py`) and barriers between views
(`separate_views.py`) come earlier in the order, before `protect-inputs`.
"""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from iree.compiler import ir

from axir.passes.framework.base import Pass
from axir.passes.framework.errors import OptionValueError
from axir.passes.legalize.regions import CALL, REDUCTIONS
from axir.passes.legalize.rewriting import ELEMENTWISE, defining_operation

from .dispatch_rows import ROWS, Row
from .dispatch_searches import Cut, Operations


@dataclasses.dataclass(frozen=True)
class SeparateDispatches(Pass):
    """Puts optimization barriers between operations that IREE computes wrongly in one dispatch.

    The facts are rows of a table (`ROWS` in `dispatch_rows.py`, and `docs/passes.md`). A row has a
    name, the operations that it looks at, a search, IREE's error, the smallest module that shows
    the error, and the platforms with the error.

    1. Walk through the module once, and collect the operations of all rows of the platform.
    2. Run the search of each row with an operation in the module, in the order of the table. With
       `row`, run only the search of this row, on any platform.
    3. A search yields a value with one reader or with all its readers. Put the value behind an
       optimization barrier for these readers, before the search goes on. Values that a reader
       overwrites in place are copied first if they have other readers.

    Before::

        %0 = stablehlo.slice %x [0:4, 0:6:2]
        %1 = stablehlo.reverse %0, dims = [0]

    After::

        %0 = stablehlo.slice %x [0:4, 0:6:2]
        %b = stablehlo.optimization_barrier %0
        %1 = stablehlo.reverse %b, dims = [0]

    Precondition: `protect-inputs` has run, because it removes barriers, and the passes that make
    slices, pads and loops.
    """

    name: ClassVar[str] = "separate-dispatches"
    platform: str = "cpu"
    row: str = ""

    def run(self, module: ir.Module) -> None:
        """Inserts the barriers."""
        rows = self._rows()
        looked_at = frozenset[str]().union(*(row.operations for row in rows))
        operations = Operations(module.operation, looked_at | ELEMENTWISE | REDUCTIONS | {CALL})
        for row in rows:
            if not operations.names.isdisjoint(row.operations):
                for cut in row.find(operations):
                    _make(cut, operations)

    def _rows(self) -> list[Row]:
        """Returns the rows that run.

        Raises:
            OptionValueError: No row has the name in `row`.
        """
        if not self.row:
            return [row for row in ROWS if row.is_on(self.platform)]
        rows = [row for row in ROWS if row.name == self.row]
        if not rows:
            raise OptionValueError(
                f"the pass {self.name!r} has no row {self.row!r}.",
                f"Its rows are: {', '.join(row.name for row in ROWS)}.",
            )
        return rows


def _make(cut: Cut, operations: Operations) -> None:
    """Lets the readers of a value read it from memory; an operation without readers goes."""
    if cut.reader is not None:
        with ir.InsertionPoint(cut.reader), cut.reader.location:
            cut.reader.operands[cut.place] = cut.keep(cut.value)
        return
    maker = defining_operation(cut.value)
    assert maker is not None
    with ir.InsertionPoint.after(maker), maker.location:
        kept = cut.keep(cut.value)
    cut.value.replace_all_uses_except(kept, kept.owner.operation)
    if not any(list(result.uses) for result in maker.results):
        operations.erase(maker)
