"""`store-positions`: masks beside a reduction read their positions from memory on Vulkan."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.base import Pass
from axir.passes.legalize.rewriting import (
    ELEMENTWISE,
    defining_operation,
    operations_in_order,
    replace,
)

_REDUCTIONS = frozenset(("stablehlo.dot_general", "stablehlo.reduce"))
_CALL, _CONSTANT, _IOTA = "func.call", "stablehlo.constant", "stablehlo.iota"


@dataclasses.dataclass(frozen=True)
class StorePositions(Pass):
    """Keeps positions along an axis in memory if a dispatch may compute them beside a reduction.

    The fact: a loop may read its own index and share a dispatch with a reduction that the threads
    of a subgroup compute together. IREE then keeps the indices in workgroup memory as type `index`,
    which SPIR-V does not have ("failed to legalize operation 'memref.alloc'"). Every mask beside a
    sum is such a loop; `lu` of 37 x 36 failed in this way.

    1. Group the values that IREE may compute in one dispatch: operands and results of elementwise
       operations, views, reductions, products and calls. Constants join no groups.
    2. Where an `iota` is in a group with a reduction, replace it by an `iota` of one axis behind a
       barrier, which is broadcast.

    Before::

        %0 = stablehlo.iota dim = 1 : tensor<8x64xi32>
        %1 = stablehlo.compare EQ, %0, %labels
        ...
        %sum = stablehlo.reduce(%chosen init: %zero) applies stablehlo.add across dimensions = [1]

    After::

        %2 = stablehlo.iota dim = 0 : tensor<64xi32>
        %3 = stablehlo.optimization_barrier %2
        %0 = stablehlo.broadcast_in_dim %3, dims = [1]

    Precondition: `protect-inputs` has run, which would remove the barriers.
    """

    name: ClassVar[str] = "store-positions"

    def run(self, module: ir.Module) -> None:
        """Stores the positions."""
        together = _Together()
        names = ELEMENTWISE | _REDUCTIONS | {_CALL}
        for operation in operations_in_order(module.operation, names):
            together.join(operation, operation.name in _REDUCTIONS or operation.name == _CALL)
        for operation in operations_in_order(module.operation, (_IOTA,)):
            result = operation.results[0]
            extent = result.type.shape[operation.attributes["iota_dimension"].value]
            if extent > 1 and together.has_reduction(result):
                with ir.InsertionPoint(operation), operation.location:
                    replace(operation, _stored(operation))


def _stored(operation: ir.Operation) -> ir.Value:
    shape = tuple(operation.results[0].type.shape)
    axis = operation.attributes["iota_dimension"].value
    (positions,) = hlo.optimization_barrier(
        hlo.iota((shape[axis],), 0, hlo.element_type_of(operation.results[0]))
    )
    return hlo.broadcast_in_dim(positions, shape, (axis,))


class _Together:
    """Sets of values that one dispatch may compute; some of them have a reduction."""

    def __init__(self) -> None:
        self._parents: dict[ir.Value, ir.Value] = {}
        self._reduced: set[ir.Value] = set()

    def join(self, operation: ir.Operation, is_reduction: bool) -> None:
        """Joins the sets of the operands and results of an operation."""
        values = [
            value
            for value in (*operation.operands, *operation.results)
            if (made_by := defining_operation(value)) is None or made_by.name != _CONSTANT
        ]
        roots = {self._root(value) for value in values}
        if not roots:
            return
        root = roots.pop()
        self._parents.update(dict.fromkeys(roots, root))
        if is_reduction or not self._reduced.isdisjoint(roots):
            self._reduced.add(root)

    def has_reduction(self, value: ir.Value) -> bool:
        """Tells whether a value is in one set with a reduction."""
        return self._root(value) in self._reduced

    def _root(self, value: ir.Value) -> ir.Value:
        root, passed = value, []
        while (parent := self._parents.get(root)) is not None:
            passed.append(root)
            root = parent
        self._parents.update(dict.fromkeys(passed, root))
        return root
