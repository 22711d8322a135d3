"""`fuse-islands`: what lies between the kernels of a program becomes kernels, too."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders.kernels import Memory
from axir.passes.framework.base import Pass
from axir.passes.legalize.regions import captured_by, operations_of
from axir.passes.legalize.rewriting import operations_in_order

from .code import Code, write_out_functions
from .emitter import Emitter
from .fitness import Fitness
from .region_kernel import RULES, region_kernel
from .values import Value

_LOGGER = logging.getLogger(__name__)
_MOST_BINDINGS = 1000
_KERNEL = "flow.dispatch"
_ALIASES = (
    "stablehlo.reshape",
    "stablehlo.bitcast_convert",
    "stablehlo.optimization_barrier",
    "util.optimization_barrier",
)
# IREE adds up in another order than a kernel of ours does.
_SUMS = frozenset(
    f"stablehlo.{name}"
    for name in "reduce reduce_window scatter dot_general convolution select_and_scatter".split()
)


@dataclasses.dataclass(frozen=True)
class FuseIslands(Pass):
    """Makes kernels of what is left of a program beside its kernels, so that it is kernels only.

    The fact: after `tune-for-cpu` most of a program are kernels. What is left is elementwise: IREE
    compiles that, and looks at all kernels while it does. Without it a program is ready ten times
    as early (`runtime/native/`), and computes the same numbers.

    1. Take public functions of one block, all of whose operations are kernels or have a rule, and
       none of which adds up floats outside of a kernel: IREE does that in an order of its own.
    2. Group the operations between two kernels. What only reads an array as another one stays.
    3. Build a kernel of each group.

    Before::

        %0 = flow.dispatch @matrix_product_0::@matrix_product_0(%x, %w)
        %1 = stablehlo.add %0, %b
        %2 = stablehlo.tanh %1
        return %2

    After::

        %0 = flow.dispatch @matrix_product_0::@matrix_product_0(%x, %w)
        %1 = flow.dispatch @elementwise_0::@elementwise_0(%0, %b)
        return %1

    Precondition: `legalize-for-iree` and `tune-for-cpu` have run.
    """

    name: ClassVar[str] = "fuse-islands"

    def run(self, module: ir.Module) -> None:
        """Rewrites the functions of the module."""
        write_out_functions(module)
        code = Code(module)
        for function in list(code.functions.values()):
            if "sym_visibility" in function.attributes or not len(function.regions[0].blocks):
                continue
            reason = _reason_against(function, code)
            if reason is not None:
                _LOGGER.info("the program at %s is not kernels only: %s", function.location, reason)
                continue
            for island in _islands(operations_of(function)[0]):
                _fuse(island, code)


def _reason_against(function: ir.Operation, code: Code) -> str | None:
    blocks = operations_of(function)
    if len(blocks) > 1:
        return "it has branches"
    for operation in operations_in_order(function, _SUMS):
        if any(_is_float(x.type) for x in operation.results):
            return f"{operation.name} adds up in an order of its own"
    fitness = Fitness(code, frozenset(RULES), has_windows=True)
    return fitness.of_operations([x for x in blocks[0] if x.name != _KERNEL])


def _is_float(kind: ir.Type) -> bool:
    return isinstance(kind.element_type, (ir.FloatType, ir.ComplexType))


def _islands(operations: list[ir.Operation]) -> list[list[ir.Operation]]:
    """Returns the groups of operations between kernels."""
    islands: list[list[ir.Operation]] = [[]]
    inside: set[ir.Value] = set()
    for operation in operations[:-1]:
        if operation.name == _KERNEL:
            islands.append([])
            inside.clear()
        elif operation.name == "stablehlo.constant":
            continue
        elif operation.name in _ALIASES and inside.isdisjoint(operation.operands):
            continue
        else:
            islands[-1].append(operation)
            inside.update(operation.results)
    return list(filter(None, islands))


def _fuse(island: list[ir.Operation], code: Code) -> None:
    read: dict[ir.Value, None] = {}
    for operation in island:
        read.update(dict.fromkeys(operation.operands))
        if len(operation.regions) and operation.name != "linalg.generic":
            read.update(dict.fromkeys(captured_by(operation)))
    members = set(island)
    made_here = [result for operation in island for result in operation.results]
    ends = [x for x in made_here if any(_top(use.owner) not in members for use in x.uses)]
    outside = [x for x in read if x not in made_here]
    results = {number: x.type for number, x in enumerate(ends)}
    last = island[-1]
    with ir.InsertionPoint.after(last), last.location:
        end = ir.Operation.create(
            "stablehlo.optimization_barrier", results=[x.type for x in ends], operands=ends
        )

    def build(emitter: Emitter, places: Mapping[int, Memory]) -> dict[int, Value]:
        return dict(enumerate(emitter.block([*island, end], ())))

    with ir.InsertionPoint.after(end), last.location:
        made = region_kernel("elementwise", code, outside, results, build, _MOST_BINDINGS)
    end.erase()
    for number, x in enumerate(ends):
        x.replace_all_uses_with(made[number])
    for operation in reversed(island):
        operation.erase()


def _top(operation: ir.Operation) -> ir.Operation:
    """Returns the operation of the function that holds another one, or is it."""
    operation = operation.operation
    while operation.parent.name != "func.func":
        operation = operation.parent
    return operation
