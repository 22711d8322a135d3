"""`use-window-results`: every result of a window reduction is needed."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.legalize.rewriting import RewritePass, hidden_truths


@dataclasses.dataclass(frozen=True)
class UseWindowResults(RewritePass):
    """Lets a used result of a window reduction of several arrays seem to depend on the unused ones.

    The fact: IREE fuses two `stablehlo.reduce_window` of several arrays each, of which some results
    are not used, into a loop that it then refuses ("write affecting operations on global resources
    are restricted to workgroup distributed contexts"). It does not when all results are used.

    1. Visit every window reduction of two or more arrays with unused and used results.
    2. Replace the uses of the first used one by a choice between it and an unused one, by a truth
       value that is true, which the compiler does not know.

    Before::

        %0:2 = "stablehlo.reduce_window"(%x, %y, …) …
        return %0#1

    After::

        %0:2 = "stablehlo.reduce_window"(%x, %y, …) …
        %1 = util.optimization_barrier %true : tensor<i1>
        %2 = stablehlo.select %1, %0#1, %0#0 : tensor<i1>, tensor<4xf32>
        return %2
    """

    name: ClassVar[str] = "use-window-results"
    operations: ClassVar[tuple[str, ...]] = ("stablehlo.reduce_window",)

    def rewrite(self, operation: ir.Operation) -> None:
        """Changes the uses of one result in place."""
        results = list(operation.results)
        unused = [result for result in results if not any(True for _ in result.uses)]
        used = [result for result in results if result not in unused]
        if not used or not unused:
            return
        original = chosen = used[0]
        selections = []
        with ir.InsertionPoint.after(operation):
            for truth, other in zip(hidden_truths(len(unused)), unused, strict=True):
                same_type = hlo.convert(other, hlo.element_type_of(original))
                chosen = hlo.select(truth, chosen, same_type)
                selections.append(chosen.owner.operation)
        original.replace_all_uses_except(chosen, selections[0])
