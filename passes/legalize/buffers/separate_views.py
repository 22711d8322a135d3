"""`separate-views`: no loop that is fused with a reduction reads its result along two axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple, TypeAlias

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.base import Pass
from axir.passes.legalize.attributes import dimension_numbers
from axir.passes.legalize.regions import VIEWS
from axir.passes.legalize.rewriting import ELEMENTWISE, find_operations

Axes: TypeAlias = tuple[frozenset[int], ...]
# An operand: the number of its operation in the function, and its place there.
Edge: TypeAlias = tuple[int, int]

_WITH_BLOCKS = frozenset(("func.func", "stablehlo.while", "stablehlo.if", "stablehlo.case"))
_LOOPS = ELEMENTWISE - VIEWS - {"stablehlo.slice"}
# These fold to their operand if it has their shape. Otherwise they are not fused with producers.
_SLICES = frozenset(
    f"stablehlo.{name}" for name in ("concatenate", "dynamic_slice", "pad", "reverse", "slice")
)
# Operations for which IREE makes no loops that others are fused into.
_NO_LOOPS = (
    _SLICES
    | _WITH_BLOCKS
    | frozenset(
        f"stablehlo.{name}"
        for name in "constant dynamic_update_slice gather iota optimization_barrier return".split()
    )
    | frozenset(("flow.dispatch", "func.return", "tensor.empty"))
)


class Way(NamedTuple):
    """How a result of an operation reaches a value that may be fused with the operation.

    Attributes:
        axes: For each axis of the value, the axes of the result that vary along it.
        cuts: Operands that every path passes; the last ones before the axes changed.
        edges: All operands that have been among the cuts.
    """

    axes: Axes
    cuts: frozenset[Edge]
    edges: frozenset[Edge]


class SeparateViews(Pass):
    """Puts an optimization barrier before one of two views of a result that meet again.

    The fact: IREE fuses a reduction, product, convolution or other loops with the elementwise
    operations that read the result, and distributes the loops that both have in common. Where the
    result `s` is read along two axes, as in `s[:, None] + s[None, :]`, it treats both axes as the
    same loop: only the diagonal is computed, and the rest of the memory keeps its old contents. (It
    merges the maps from the loops of the producer to the loops of the consumer, `(d0) -> (d0, 0)`
    and `(d0) -> (0, d0)`. It does not fuse where the maps contradict each other, as for a matrix
    and its transpose.)

    1. Number each result of an operation if other operations may be fused into its loops. Follow it
       through elementwise operations and views, and through reductions along other axes. Keep for
       each value the axes along which the result varies, and the operands that it passes.
    2. Every other operation ends the way of a result: IREE fuses nothing across it. The result is
       then "behind" the value.
    3. Where an operation reads one result along two axes, put a barrier on one of the two ways, at
       the last operand before its axes changed. Prefer an operand that is not on the other way.
       From there on the result is behind the barrier, so the other uses stay fused.
    4. Put barriers on the operands of calls, because IREE inlines the called functions.

    Before::

        %0 = stablehlo.reduce(%x init: %zero) … : tensor<4xf32>
        %1 = stablehlo.broadcast_in_dim %0, dims = [0]
        %2 = stablehlo.broadcast_in_dim %0, dims = [1]
        %3 = stablehlo.add %1, %2 : tensor<4x4xf32>

    After::

        %0 = stablehlo.reduce(%x init: %zero) … : tensor<4xf32>
        %1 = stablehlo.broadcast_in_dim %0, dims = [0]
        %b = stablehlo.optimization_barrier %0
        %2 = stablehlo.broadcast_in_dim %b, dims = [1]
        %3 = stablehlo.add %1, %2 : tensor<4x4xf32>

    Precondition: the passes that make elementwise operations have run.
    """

    name: ClassVar[str] = "separate-views"

    def run(self, module: ir.Module) -> None:
        """Inserts the barriers."""
        for function in find_operations(module.operation, ("func.func",)):
            search = _Search(_operations(function))
            for number, place in sorted(search.barriers()):
                operation = search.operations[number]
                with ir.InsertionPoint(operation), operation.location:
                    barrier = hlo.optimization_barrier(operation.operands[place])
                    operation.operands[place] = barrier[0]


class _Search:
    """The search through one function; values without an entry depend on no numbered result."""

    def __init__(self, operations: Sequence[ir.Operation]) -> None:
        self.operations = operations
        self._ways: dict[ir.Value, dict[int, Way]] = {}
        # Bit sets of the results that a value depends on and is never fused with.
        self._behind: dict[ir.Value, int] = {}
        self._widened: set[ir.Value] = set()
        self._cuts: set[Edge] = set()
        self._count = 0

    def barriers(self) -> set[Edge]:
        """Returns the operands that need a barrier."""
        for number, operation in enumerate(self.operations):
            operands = list(operation.operands)
            behind = 0
            for operand in operands:
                behind |= self._behind.get(operand, 0)
            is_fused = any(operand in self._ways for operand in operands)
            ways: dict[int, Way] = {}
            if is_fused:
                ways, behind = self._pass(number, operation, operands, behind)
            self._keep(operation, ways, behind)
        return self._cuts

    def _keep(self, operation: ir.Operation, ways: dict[int, Way], behind: int) -> None:
        name = operation.name
        is_root = name not in _NO_LOOPS and name not in VIEWS and not _is_elementwise(name)
        if is_root:
            self._count += 1
        for result in operation.results:
            own = dict(ways)
            if is_root and isinstance(result.type, ir.RankedTensorType):
                own[self._count] = Way(_own_axes(result), frozenset(), frozenset())
            if own:
                self._ways[result] = own
            if behind:
                self._behind[result] = behind

    def _pass(
        self, number: int, operation: ir.Operation, operands: list[ir.Value], behind: int
    ) -> tuple[dict[int, Way], int]:
        """Returns the ways through an operation, and the set of results behind it."""
        merged: dict[int, Way] = {}
        for place, operand in enumerate(operands):
            for root, way in self._ways.get(operand, {}).items():
                if behind >> root & 1:
                    continue
                axes = _axes_after(operation, place, way.axes)
                if axes is None:
                    if operation.name == "func.call":
                        self._cuts.add((number, place))
                    behind |= 1 << root
                    continue
                moved = self._moved(number, place, operation, way._replace(axes=axes))
                other = merged.get(root)
                if other is None:
                    merged[root] = moved
                elif _meet(other.axes, moved.axes):
                    self._cut(other, moved)
                    behind |= 1 << root
                else:
                    merged[root] = _union(other, moved)
        return {root: way for root, way in merged.items() if not behind >> root & 1}, behind

    def _moved(self, number: int, place: int, operation: ir.Operation, way: Way) -> Way:
        operand = operation.operands[place]
        is_view = operation.name in VIEWS
        if is_view and (
            operand in self._widened or hlo.size_of(operation.results[0]) > hlo.size_of(operand)
        ):
            self._widened.add(operation.results[0])
        # A barrier belongs before a broadcast, because the array is larger behind it.
        if way.cuts and not (is_view and operand not in self._widened):
            return way
        cuts = frozenset(((number, place),))
        return Way(way.axes, cuts, way.edges | cuts)

    def _cut(self, first: Way, second: Way) -> None:
        is_shared = second.cuts & first.edges and not first.cuts & second.edges
        self._cuts |= first.cuts if is_shared else second.cuts


def _operations(function: ir.Operation) -> list[ir.Operation]:
    """Returns all operations on arrays in the order of the program."""
    found: list[ir.Operation] = []

    def visit(operation: ir.Operation) -> ir.WalkResult:
        found.append(operation)
        has_blocks = operation.name in _WITH_BLOCKS
        return ir.WalkResult.ADVANCE if has_blocks else ir.WalkResult.SKIP

    function.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _axes_after(operation: ir.Operation, place: int, axes: Axes) -> Axes | None:
    """Returns the axes of a result that an operand's axes become; None if nothing is fused."""
    name = operation.name
    if name == "stablehlo.reduce":
        reduced = frozenset(operation.attributes["dimensions"])
        if any(axes[axis] for axis in reduced if axis < len(axes)):
            return None
        return tuple(kept for axis, kept in enumerate(axes) if axis not in reduced)
    if name == "stablehlo.dot_general":
        return _axes_of_product(operation, place, axes)
    rank = len(hlo.shape_of(operation.results[0])) if len(operation.results) else 0
    if name == "stablehlo.broadcast_in_dim":
        spread = [frozenset[int]()] * rank
        for axis, target in enumerate(operation.attributes["broadcast_dimensions"]):
            spread[target] = axes[axis]
        return tuple(spread)
    if name == "stablehlo.transpose":
        return tuple(axes[axis] for axis in operation.attributes["permutation"])
    if name == "stablehlo.reshape":
        return _axes_of_reshape(operation, axes)
    if name in _SLICES:
        return axes if operation.operands[place].type == operation.results[0].type else None
    if not _is_elementwise(name):
        return None
    # Scalars have fewer axes; bitcasts between widths add or drop the last one.
    return (*axes, *(frozenset[int](),) * rank)[:rank]


def _is_elementwise(name: str) -> bool:
    return name in _LOOPS or (name.startswith("chlo.") and name != "chlo.top_k")


def _axes_of_product(operation: ir.Operation, place: int, axes: Axes) -> Axes | None:
    """Does so for products: only outer products are elementwise operations for IREE."""
    numbers = dimension_numbers(operation.attributes["dot_dimension_numbers"])
    if numbers["lhs_contracting_dimensions"]:
        return None
    side = ("lhs", "rhs")[place]
    batch = numbers[f"{side}_batching_dimensions"]
    free = [axis for axis in range(len(axes)) if axis not in batch]
    empty = (frozenset[int](),) * (len(hlo.shape_of(operation.results[0])) - len(axes))
    own = tuple(axes[axis] for axis in free)
    return tuple(axes[axis] for axis in batch) + (own + empty if place == 0 else empty + own)


def _axes_of_reshape(operation: ir.Operation, axes: Axes) -> Axes:
    """Handles reshapes: axes of extent 1 do not count; split or joined axes may vary along all."""
    before, after = (hlo.shape_of(x) for x in (operation.operands[0], operation.results[0]))
    kept = [axes[axis] for axis, extent in enumerate(before) if extent != 1]
    long = [axis for axis, extent in enumerate(after) if extent != 1]
    if [n for n in before if n != 1] != [after[axis] for axis in long]:
        kept = [frozenset[int]().union(*kept)] * len(long)
    spread = [frozenset[int]()] * len(after)
    for axis, own in zip(long, kept, strict=True):
        spread[axis] = own
    return tuple(spread)


def _meet(first: Axes, second: Axes) -> bool:
    """Tells whether one axis of a result varies along two axes."""
    if first == second:
        return False
    return any(
        here & there
        for p, here in enumerate(first)
        for q, there in enumerate(second)
        if p != q and here
    )


def _union(first: Way, second: Way) -> Way:
    axes = tuple(a | b for a, b in zip(first.axes, second.axes, strict=True))
    return Way(axes, first.cuts | second.cuts, first.edges | second.edges)


def _own_axes(result: ir.Value) -> Axes:
    shape = hlo.shape_of(result)
    return tuple(frozenset((axis,) if n > 1 else ()) for axis, n in enumerate(shape))
