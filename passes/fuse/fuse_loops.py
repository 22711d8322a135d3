"""`fuse-loops`: loops with small state become one kernel."""

from __future__ import annotations

import dataclasses
import logging
import math
from typing import ClassVar

from iree.compiler import ir, passmanager

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.kernels import Memory, dispatch
from axir.passes.framework.base import Pass
from axir.passes.legalize.rewriting import operations_in_order, replace

from . import control, inlining, products, reductions, updates
from .code import Code
from .elementwise import splat
from .emitter import Emitter, Rule, signless
from .factors import transpose_factors
from .fitness import Fitness
from .regions import captured_by, operations_of, operations_within
from .values import Mapped, Number, Stored, Value

RULES: dict[str, Rule] = {
    **control.RULES,
    **inlining.RULES,
    **products.RULES,
    **reductions.RULES,
    **updates.RULES,
}

_ALWAYS = 1 << 30
_LOGGER = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class FuseLoops(Pass):
    """Makes one kernel of each loop whose passes are short, with all that happens in it.

    The fact: a loop of StableHLO costs IREE a dispatch or more in each pass, 2 to 10 microseconds
    each. A kernel keeps numbers in registers and arrays in the cache.

    1. Visit each loop, from the outermost on. What is in it, loops, branches and calls as well,
       must be operations that have a rule; the work of a pass must be small enough for one thread.
    2. Transpose, in front of the loop, matrices that products in it read by columns.
    3. Build the kernel: the values that the loop uses are its operands, the arrays and numbers that
       it ends with its results.

    Before::

        %0:2 = stablehlo.while(%i = %zero, %x = %a) : tensor<i32>, tensor<f32>
        cond { … } do { … }

    After::

        stream.executable private @loop_0 { … scf.while … }
        %0:2 = flow.dispatch @loop_0::@loop_0(%zero, %a)
            : (tensor<i32>, tensor<f32>) -> (tensor<i32>, tensor<f32>)

    Precondition: functions of numbers have been expanded; gathers and scatters are as they came.
    """

    name: ClassVar[str] = "fuse-loops"

    def run(self, module: ir.Module) -> None:
        """Rewrites the functions of the module."""
        _write_out(module)
        code = Code(module)
        fitness = Fitness(code, frozenset(RULES))
        for function in list(code.functions.values()):
            _visit(function, code, fitness)
        inlining.erase_unused(module)


def _write_out(module: ir.Module) -> None:
    """Replaces functions of CHLO, which IREE would do later, if there are any in loops."""
    for loop in operations_in_order(module.operation, ("stablehlo.while",)):
        if any(x.name.startswith("chlo.") for x in operations_within(loop)):
            pipeline = "builtin.module(func.func(chlo-legalize-to-stablehlo))"
            passmanager.PassManager.parse(pipeline).run(module.operation)
            return


def _visit(parent: ir.Operation, code: Code, fitness: Fitness) -> None:
    for operations in operations_of(parent):
        for operation in operations:
            if operation.name == "stablehlo.while":
                reason = fitness.reason_against(operation)
                if reason is None:
                    with ir.InsertionPoint(operation), operation.location:
                        replace(operation, _fused(operation, code))
                    continue
                _LOGGER.info("the loop at %s is no kernel: %s", operation.location, reason)
            if len(operation.regions) and operation.name != "linalg.generic":
                _visit(operation, code, fitness)


def _fused(created: ir.Operation, code: Code) -> list[ir.Value]:
    _hoist_constants(created)
    transpose_factors(created, set(captured_by(created)))
    _, body = operations_of(created)
    changes = control.changed(created, body[-1], list(created.regions[1].blocks[0].arguments))
    inits = list(created.operands)
    outside = list(dict.fromkeys([*inits, *captured_by(created)]))
    constants = [x for x in outside if _is_splat(x)]
    operands = [x for x in outside if x not in constants]
    wanted = [
        number
        for number, result in enumerate(created.results)
        if changes[number] and any(True for _ in result.uses)
    ]

    def kernel(*memories: Memory) -> None:
        emitter = Emitter(RULES, code)
        for x, memory in zip(operands, memories, strict=False):
            emitter.values[x] = _operand(memory)
        for x in constants:
            emitter.values[x] = _splat(x)
        places = dict(zip(wanted, memories[len(operands) :], strict=True))
        ends = control.run_loop(
            emitter,
            created,
            [emitter.values[x] for x in inits],
            [
                None
                if inits[number].type.rank == 0 or _size(inits[number]) == 1
                else places.get(number)
                for number in range(len(inits))
            ],
        )
        for number, memory in places.items():
            end = ends[number]
            if isinstance(end, Number):
                memory[(0,) * len(memory.shape)] = end.scalar

    results = dispatch(
        kernel,
        [_signless_array(x) for x in operands],
        [_signless_type(created.results[number].type) for number in wanted],
        name="loop",
    )
    found = dict(zip(wanted, results, strict=True))
    return [
        hlo.bitcast_convert(found[number], created.results[number].type.element_type)
        if number in found
        else init
        for number, init in enumerate(inits)
    ]


def _size(x: ir.Value) -> int:
    return math.prod(x.type.shape)


def _operand(memory: Memory) -> Value:
    stored = Stored(memory, is_own=False)
    if stored.size == 1:
        number = Number(stored.shape, memory[(0,) * len(stored.shape)])
        number.holders = _ALWAYS
        return number
    stored.holders = _ALWAYS
    return stored


def _splat(x: ir.Value) -> Value:
    number = splat(x.owner)
    shape = list(x.type.shape)
    single = Number(shape, number)
    value = single if _size(x) == 1 else Mapped(shape, number.type, lambda n: n, (single,), 0)
    value.holders = _ALWAYS
    return value


def _is_splat(x: ir.Value) -> bool:
    owner = x.owner
    if not isinstance(owner, ir.Operation) or owner.name != "stablehlo.constant":
        return False
    attribute = ir.DenseElementsAttr(owner.attributes["value"])
    return bool(attribute.is_splat)


def _signless_type(kind: ir.Type) -> ir.Type:
    return ir.RankedTensorType.get(kind.shape, signless(kind.element_type))


def _signless_array(x: ir.Value) -> ir.Value:
    element = x.type.element_type
    return hlo.bitcast_convert(x, signless(element)) if hlo.is_unsigned(x) else x


def _hoist_constants(created: ir.Operation) -> None:
    """Moves constants that differ from element to element in front of the loop."""
    for operation in list(operations_within(created)):
        if operation.name == "stablehlo.constant" and not _is_splat(operation.results[0]):
            operation.move_before(created)
