"""Programs and loops that compute with the parts of complex numbers.

Here: `pair-complex-programs` with the calls of host functions, and `split-complex-loops`.
Elsewhere: the operations on parts (`complex_parts.py`), single operations
(`complex_operations.py`).
"""

from __future__ import annotations

import logging
from typing import ClassVar

from iree.compiler import ir, passmanager

from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.base import Pass
from axir.passes.legalize.regions import host_function, operations_of, operations_within
from axir.passes.legalize.rewriting import find_operations, operations_in_order, replace

from .complex_parts import (
    CONTROL_FLOW,
    Parts,
    find_unsplittable,
    has_complex,
    split,
    split_in_block,
)
from .pairs_in_memory import REINTERPRETATION, halves, joined, of_pairs, pairs_of

_VIEWS = ("stablehlo.slice", "stablehlo.reshape", "stablehlo.real", "stablehlo.imag")

_LOGGER = logging.getLogger(__name__)
# Functions that would make more operations stay functions, and the program stays complex.
_MOST_OPERATIONS = 100_000


class PairComplexPrograms(Pass):
    """Writes complex numbers of public functions, their arguments and results, as pairs of reals.

    The fact: kernels have no complex numbers. In memory a complex number is its real part followed
    by its imaginary part. So an array of them is a real array with one more axis of extent 2.

    1. Inline the functions that take or return complex numbers.
    2. Take the functions in which every complex operation has a rule (`complex_parts.py`).
    3. Write each operation out on the parts.
    4. Give complex arguments and results a last axis of extent 2, also for host functions. The
       parts of an argument are slices of it; a result is joined from its parts.

    Before::

        func.func @main(%z: tensor<3xcomplex<f32>>) -> tensor<3xcomplex<f32>> {
          %0 = stablehlo.multiply %z, %z
          return %0
        }

    After::

        func.func @main(%z: tensor<3x2xf32>) -> tensor<3x2xf32> {
          %a = stablehlo.slice %z [0:3, 0:1] ...
          return %joined
        }

    Precondition: as for `split-complex-loops`. Callers pass the same memory as before.
    """

    name: ClassVar[str] = "pair-complex-programs"

    def run(self, module: ir.Module) -> None:
        """Rewrites the functions of the module."""
        _write_out_calls(module)
        pair_host_calls(module)
        for function in [x.operation for x in module.body.operations]:
            if function.name != "func.func" or "sym_visibility" in function.attributes:
                continue
            [operations] = operations_of(function)
            if not any(map(has_complex, operations)):
                continue
            reasons = list(filter(None, map(find_unsplittable, operations[:-1])))
            if reasons:
                _LOGGER.info("the program at %s stays complex: %s", function.location, reasons[0])
                continue
            with function.location:
                _pair(function, operations)


def _write_out_calls(module: ir.Module) -> None:
    """Inlines functions if some of them have complex arguments or results."""
    calls = find_operations(module.operation, ("func.call",))
    is_complex = any(has_complex(call) and host_function(call) is None for call in calls)
    if is_complex and _written_out_size(module) <= _MOST_OPERATIONS:
        # Without simplification, which would move constants out of formulas.
        pipeline = "builtin.module(inline{default-pipeline=})"
        passmanager.PassManager.parse(pipeline).run(module.operation)


def _written_out_size(module: ir.Module) -> int:
    """Returns the number of operations of functions after inlining."""
    functions = {
        ir.StringAttr(x.attributes["sym_name"]).value: list(operations_within(x))
        for x in (y.operation for y in module.body.operations)
        if x.name == "func.func"
    }
    sizes: dict[str, int] = {}

    def size(name: str) -> int:
        if name not in sizes:
            inner = functions.get(name, [])
            called = [ir.FlatSymbolRefAttr(x.attributes["callee"]).value for x in _calls(inner)]
            sizes[name] = len(inner) + sum(map(size, called))
        return sizes[name]

    return max(map(size, functions), default=0)


def _calls(operations: list[ir.Operation]) -> list[ir.Operation]:
    return [x for x in operations if x.name == "func.call"]


def _pair(function: ir.Operation, operations: list[ir.Operation]) -> None:
    *body, returned = operations
    block = function.regions[0].blocks[0]
    parts = Parts(operations[0])
    arguments = [x for x in block.arguments if hlo.is_complex(x)]
    for argument in arguments:
        parts.of(argument)
    for operation in body:
        split_in_block(operation, parts)
    ends: dict[int, ir.Value] = {}
    with ir.InsertionPoint(returned), returned.location:
        for number, x in enumerate(returned.operands):
            if hlo.is_complex(x) and x not in arguments:
                ends[number] = joined(*parts.of(x))
    for number, x in ends.items():
        returned.operands[number] = x
    parts.finish()
    for argument in arguments:
        _give_axis(argument)
    kind = ir.FunctionType.get(
        [x.type for x in block.arguments], [x.type for x in returned.operands]
    )
    function.attributes["function_type"] = ir.TypeAttr.get(kind)
    _drop_unused(block)


def _drop_unused(block: ir.Block) -> None:
    """Erases unused parts of pairs, because each would be a kernel."""
    for created in reversed([x.operation for x in block.operations]):
        if created.name in _VIEWS and not any(created.results[0].uses):
            created.erase()


def _give_axis(argument: ir.Value) -> None:
    """Makes an argument an array of pairs; its users that take a part now take a slice."""
    shape = argument.type.shape
    users = [use.owner.operation for use in argument.uses]
    argument.set_type(hlo.tensor_type((*shape, 2), argument.type.element_type.element_type))
    for user in users:
        if user.name == REINTERPRETATION:
            made = argument
        elif user.name in ("stablehlo.real", "stablehlo.imag"):
            with ir.InsertionPoint(user), user.location:
                made = halves(argument)[user.name == "stablehlo.imag"]
        else:
            continue
        user.results[0].replace_all_uses_with(made)
        user.erase()


def pair_host_calls(module: ir.Module) -> None:
    """Replaces complex arrays in calls of host functions by real arrays with an axis of two.

    Both are equal in memory.
    """
    functions = {
        ir.StringAttr(x.operation.attributes["sym_name"]).value: x.operation
        for x in module.body.operations
        if x.operation.name == "func.func"
    }
    for call in find_operations(module.operation, ("func.call",)):
        if host_function(call) is None or not has_complex(call):
            continue
        with ir.InsertionPoint(call), call.location:
            made = ir.Operation.create(
                call.name,
                results=[_paired(x.type) for x in call.results],
                operands=[pairs_of(x) if hlo.is_complex(x) else x for x in call.operands],
                attributes={name: call.attributes[name] for name in call.attributes},
            )
            results = [
                of_pairs(new) if hlo.is_complex(old) else new
                for old, new in zip(call.results, made.results, strict=True)
            ]
        symbol = ir.FlatSymbolRefAttr(call.attributes["callee"]).value
        kind = ir.FunctionType.get([x.type for x in made.operands], [x.type for x in made.results])
        functions[symbol].attributes["function_type"] = ir.TypeAttr.get(kind)
        replace(call, results)


def _paired(kind: ir.Type) -> ir.Type:
    if not isinstance(kind.element_type, ir.ComplexType):
        return kind
    return hlo.tensor_type((*kind.shape, 2), kind.element_type.element_type)


_WHILE = "stablehlo.while"


class SplitComplexLoops(Pass):
    """Computes with real and imaginary parts in loops, and lets these carry parts.

    The fact: kernels have no complex numbers, so a loop over complex numbers was ten dispatches per
    iteration. (An escape-time fractal of 100 x 200 points took five times JAX's time.)

    1. Visit each outermost loop. Every complex operation in it, including its inner loops and
       branches, must have a rule (`complex_parts.py`).
    2. Before the loop, take the parts of its initial values and of the outer values that it reads.
    3. Write each operation out on the parts; loops carry, and branches return, two tensors for each
       complex one.
    4. Join the parts of the results behind the loop.

    Before::

        %0 = stablehlo.while(%z = %a) : tensor<complex<f32>>
        cond { … } do {
          %1 = stablehlo.add %z, %c
          stablehlo.return %1
        }

    After::

        %0:2 = stablehlo.while(%re = %real_a, %im = %imag_a) : tensor<f32>, tensor<f32>
        cond { … } do {
          %1 = stablehlo.add %re, %real_c
          %2 = stablehlo.add %im, %imag_c
          stablehlo.return %1, %2
        }
        %3 = stablehlo.complex %0#0, %0#1

    Precondition: `expand-complex` and `split-complex-dot` have run.
    """

    name: ClassVar[str] = "split-complex-loops"

    def run(self, module: ir.Module) -> None:
        """Rewrites the outermost loops of the module."""
        loops = operations_in_order(module.operation, (_WHILE,))
        # All loops are chosen first: rewriting a loop erases the operations inside it.
        for loop in [x for x in loops if _is_outermost(x) and _holds_complex(x)]:
            reason = find_unsplittable(loop)
            if reason is not None:
                _LOGGER.info("the loop at %s stays complex: %s", loop.location, reason)
                continue
            with loop.location:
                _split_outermost(loop)


def _is_outermost(loop: ir.Operation) -> bool:
    parent = loop.parent
    while parent is not None and parent.name != "func.func":
        if parent.name not in CONTROL_FLOW[1:]:
            return False
        parent = parent.parent
    return True


def _holds_complex(loop: ir.Operation) -> bool:
    found = False

    def visit(operation: ir.Operation) -> ir.WalkResult:
        nonlocal found
        found = has_complex(operation)
        return ir.WalkResult.INTERRUPT if found else ir.WalkResult.ADVANCE

    loop.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _split_outermost(loop: ir.Operation) -> None:
    parts = Parts(loop)
    split(loop, parts)
    with ir.InsertionPoint(loop):
        for result in loop.results:
            if hlo.is_complex(result):
                result.replace_all_uses_with(hlo.complex(*parts.of(result)))
    parts.finish()
