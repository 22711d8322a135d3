"""The test which loops may become kernels, and the reasons why others may not."""

from __future__ import annotations

import math

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.kernels.packing import MOST_BINDINGS
from axir.passes.legalize.regions import KERNEL, operations_of
from axir.passes.legalize.rewriting import operations_in_order
from axir.passes.legalize.windows.running_reductions import running_axis

from . import windows
from .elementwise import Code, can_compute, cost_of, formula_of, is_uniform
from .inlining import can_inline
from .views import VIEWS

_LARGEST_WORK = 1 << 23
_SMALL_WORK = 1 << 16
# Work that several threads would not do faster, because starting an operation takes as long.
_WORK_OF_EACH = 1 << 11
_MOST_OPERATIONS = 100_000
_GUESSED_PASSES = 8
_KERNEL_WORK = 16
_FREE = frozenset(
    "stablehlo.constant stablehlo.reshape stablehlo.return func.return tensor.empty "
    "stablehlo.optimization_barrier util.optimization_barrier flow.tensor.transfer".split()
)

_IN_REGION = ("stablehlo.constant", "stablehlo.return")
_WITH_REGION = frozenset(("stablehlo.reduce", "stablehlo.reduce_window", "stablehlo.scatter"))
_ENTERED = frozenset("func.call flow.dispatch stablehlo.while stablehlo.if stablehlo.case".split())


class Fitness:
    """Tells which loops a kernel can hold.

    Args:
        code: Functions and kernels of the module.
        rules: Names of operations that have a rule.
        has_windows: Whether the rules include windows of all kinds, for which IREE has code, too.
    """

    def __init__(self, code: Code, rules: frozenset[str], has_windows: bool = False):
        self._code = code
        self._rules = rules
        self._has_windows = has_windows
        self._count = 0
        self._known_types: set[ir.Type] = set()

    def of_loop(self, loop: ir.Operation) -> str | None:
        """Returns why a loop becomes no kernel; None if it becomes a kernel."""
        reason, work = self._judge([loop])
        work //= _GUESSED_PASSES
        if reason is None and work > _LARGEST_WORK:
            return f"a pass does {work:,} operations, more than one thread should"
        return reason

    def of_program(
        self, operations: list[ir.Operation], most_bindings: int = MOST_BINDINGS
    ) -> str | None:
        """Returns why operations become no kernel; None if they become a kernel."""
        results = [x for x in operations[-1].operands if not isinstance(x, ir.BlockArgument)]
        arrays = len(operations[-1].block.arguments) + len(results)
        if arrays > most_bindings:
            return f"it reads and writes {arrays} arrays, and a kernel binds {most_bindings}"
        reason, work = self._judge(operations)
        if reason is None and work > max(_SMALL_WORK, len(operations) * _WORK_OF_EACH):
            return f"it does {work:,} operations, more than one thread should"
        return reason

    def of_whole_program(self, operations: list[ir.Operation], most_bindings: int) -> str | None:
        """Returns why operations do not become the only kernel of a program.

        A loop is a kernel of one thread in any case: only the other operations could use several
        threads.
        """
        loops = [x for x in operations if x.name == "stablehlo.while"]
        for loop in loops:
            reason = self.of_loop(loop)
            if reason is not None:
                return reason
        return self.of_program([x for x in operations if x not in loops], most_bindings)

    def of_small(self, operations: list[ir.Operation], most: int) -> str | None:
        """Returns why operations are not a small kernel, with at most so much work."""
        reason, work = self._judge(operations)
        if reason is None and work > most:
            return f"it does {work:,} operations, more than one thread should"
        return reason

    def work_of(self, operation: ir.Operation) -> int | None:
        """Returns the work of an operation, None if it has no rule."""
        reason, work = self._judge([operation])
        return work if reason is None else None

    def of_operations(self, operations: list[ir.Operation]) -> str | None:
        """Returns why some operations have no rule, None if all have one."""
        return self._judge(operations)[0]

    def _judge(self, operations: list[ir.Operation]) -> tuple[str | None, int]:
        self._count = 0
        try:
            return None, self._work(operations)
        except _Unfit as reason:
            return str(reason), 0

    def _work(self, operations: list[ir.Operation]) -> int:
        return sum(map(self._work_of, operations))

    def _work_of(self, created: ir.Operation) -> int:
        self._count += 1
        if self._count > _MOST_OPERATIONS:
            raise _Unfit(f"it has more than {_MOST_OPERATIONS:,} operations")
        for value in (*created.operands, *created.results):
            if (kind := value.type) not in self._known_types:
                _check_type(kind)
                self._known_types.add(kind)
        name = created.name
        if name in _FREE:
            return 0
        if name in _ENTERED:
            return self._work_inside(created)
        if name not in self._rules and name not in VIEWS and not can_compute(created):
            raise _Unfit(f"there is no rule for {name}")
        if name in windows.RULES:
            return self._work_of_windows(created)
        if name in _WITH_REGION:
            return self._work_of_region(created)
        return _work_on_elements(created)

    def _work_inside(self, created: ir.Operation) -> int:
        """Returns the work of the operations in an operation's regions, or in its callee."""
        if created.name == "func.call":
            callee = self._code.functions[ir.FlatSymbolRefAttr(created.attributes["callee"]).value]
            if not len(callee.regions[0].blocks):
                raise _Unfit("it calls a function of the host")
            if any(map(_is_table, operations_in_order(callee, ("stablehlo.constant",)))):
                raise _Unfit("it calls a function with a table of numbers")
            return self._work(operations_of(callee)[0])
        if created.name == KERNEL:
            if not can_inline(created, self._code):
                raise _Unfit("it runs a kernel in several workgroups, or in place")
            return _KERNEL_WORK * sum(map(hlo.size_of, (*created.operands, *created.results)))
        works = list(map(self._work, operations_of(created)))
        return _GUESSED_PASSES * sum(works) if created.name == "stablehlo.while" else max(works)

    def _work_of_windows(self, created: ir.Operation) -> int:
        if created.name == "stablehlo.reduce_window":
            self._work_of_region(created)
            is_running = running_axis(created) is not None
        else:
            is_running = False
        if not (is_running or self._has_windows):
            raise _Unfit(
                f"there is no rule for {created.name} of windows that do not run along an axis"
            )
        return windows.work(created)

    def _work_of_region(self, created: ir.Operation) -> int:
        for inner in operations_of(created)[0]:
            if inner.name not in _IN_REGION and formula_of(inner) is None:
                raise _Unfit(f"there is no rule for {inner.name} in {created.name}")
        if created.name == "stablehlo.scatter" and len(created.operands) != 3:
            raise _Unfit("there is no rule for a scatter of several arrays")
        return hlo.size_of(created.operands[2 if created.name == "stablehlo.scatter" else 0])


def _is_table(constant: ir.Operation) -> bool:
    """Tells whether a kernel reads a constant from memory."""
    return not is_uniform(constant.results[0])


def _work_on_elements(created: ir.Operation) -> int:
    name = created.name
    if name == "stablehlo.dot_general":
        lhs, rhs = map(hlo.size_of, created.operands)
        return math.isqrt(lhs * rhs * hlo.size_of(created.results[0]))
    if name in VIEWS or name == "stablehlo.dynamic_update_slice":
        return hlo.size_of(created.results[0] if name in VIEWS else created.operands[1])
    size = max((hlo.size_of(x) for x in (*created.operands, *created.results)), default=1)
    return size * cost_of(name)


class _Unfit(Exception):
    """Raised for an operation that cannot become part of a kernel."""


def _check_type(kind: ir.Type) -> None:
    if not isinstance(kind, ir.RankedTensorType) or not kind.has_static_shape:
        raise _Unfit(f"it holds a {kind}")
    element = kind.element_type
    is_number = isinstance(
        element, (ir.IntegerType, ir.F16Type, ir.BF16Type, ir.F32Type, ir.F64Type)
    )
    if not is_number or element.width not in (1, 8, 16, 32, 64):
        raise _Unfit(f"it holds numbers of type {element}")
