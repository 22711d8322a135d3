"""`fuse-loops`: loops with small state become one kernel."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.kernels import Memory
from axir.passes.framework.base import Pass
from axir.passes.legalize.regions import captured_by, operations_of
from axir.passes.legalize.rewriting import replace

from . import control, inlining
from .elementwise import Code, write_out_functions
from .emitter import Emitter
from .factors import transpose_factors
from .fitness import Fitness
from .region_kernel import RULES, move_constants, region_kernel
from .values import Value

_LOGGER = logging.getLogger(__name__)


class FuseLoops(Pass):
    """Makes one kernel of each loop with short iterations, with all its operations.

    The fact: IREE runs one or more dispatches in each iteration of a StableHLO loop, 2 to 10
    microseconds each. A kernel keeps numbers in registers and arrays in the cache.

    1. Visit each loop, from the outermost on. Each operation in it, also in inner loops, branches
       and calls, must have a rule. The work of an iteration must be small enough for one thread.
    2. Transpose, in front of the loop, matrices that products in it read by columns.
    3. Build the kernel: its operands are the values that the loop uses, its results the final
       values of the loop.

    Before::

        %0:2 = stablehlo.while(%i = %zero, %x = %a) : tensor<i32>, tensor<f32>
        cond { … } do { … }

    After::

        stream.executable private @loop_0 { … scf.while … }
        %0:2 = flow.dispatch @loop_0::@loop_0(%zero, %a)
            : (tensor<i32>, tensor<f32>) -> (tensor<i32>, tensor<f32>)

    Precondition: functions of numbers have been expanded; gathers and scatters are still unchanged.
    """

    name: ClassVar[str] = "fuse-loops"

    def run(self, module: ir.Module) -> None:
        """Rewrites the functions of the module."""
        write_out_functions(module)
        code = Code(module)
        fitness = Fitness(code, frozenset(RULES))
        for function in list(code.functions.values()):
            _visit(function, code, fitness)
        inlining.erase_unused(module)


def _visit(parent: ir.Operation, code: Code, fitness: Fitness) -> None:
    for operations in operations_of(parent):
        for operation in operations:
            if operation.name == "stablehlo.while":
                reason = fitness.of_loop(operation)
                if reason is None:
                    with ir.InsertionPoint(operation), operation.location:
                        replace(operation, _fused(operation, code))
                    continue
                _LOGGER.info("the loop at %s is no kernel: %s", operation.location, reason)
            if len(operation.regions) and operation.name != "linalg.generic":
                _visit(operation, code, fitness)


def _fused(loop: ir.Operation, code: Code) -> list[ir.Value]:
    move_constants(loop, [loop])
    transpose_factors(loop, set(captured_by(loop)))
    last = operations_of(loop)[1][-1]
    changes = control.changed(last, list(loop.regions[1].blocks[0].arguments))
    inits = list(loop.operands)
    results = {
        number: result.type
        for number, result in enumerate(loop.results)
        if changes[number] and any(True for _ in result.uses)
    }

    def build(emitter: Emitter, places: Mapping[int, Memory]) -> dict[int, Value]:
        starts = [emitter.values[x] for x in inits]
        arrays = [None if hlo.size_of(x) == 1 else places.get(n) for n, x in enumerate(inits)]
        ends = control.run_loop(emitter, loop, starts, arrays)
        return {number: ends[number] for number in places}

    outside = list(dict.fromkeys([*inits, *captured_by(loop)]))
    made = region_kernel("loop", code, outside, results, build)
    return [made.get(number, init) for number, init in enumerate(inits)]
