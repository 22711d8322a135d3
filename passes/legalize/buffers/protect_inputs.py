"""`protect-inputs`: operations do not write their results over a caller's array."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.program.function_rules import HOST
from axir.passes.framework.base import Pass
from axir.passes.legalize.copies import copied, is_worth_a_kernel
from axir.passes.legalize.rewriting import (
    defining_operation,
    find_operations,
    renewed,
    replace,
)

from .storage import BARRIER, IN_PLACE, folded_sources, overwritten_places, sources

DONATION_ATTRIBUTES = (
    "axir.donated",
    "jax.buffer_donor",
    "tf.aliasing_output",
    "iree.abi.output",
)
"""Argument attributes by which a caller gives its array away. Ours is removed, IREE reads some."""

_HOST = f"{HOST}."
_SLICES = ("stablehlo.slice", "stablehlo.dynamic_slice")


@dataclasses.dataclass(frozen=True)
class ProtectInputs(Pass):
    """Copies a function's argument before an operation that would overwrite it.

    The fact: IREE computes a scatter, a dynamic_update_slice or a sort in place, and kernels may
    declare that they work in place. When the operand's last use is that operation and the operand
    is the caller's buffer, the caller's array changes, even if the function also returns it
    (iree-org/iree#16168). Among the ways to force a copy, `flow.tensor.transfer` to the same device
    is both correct and the fastest: 3 us for 256 KB. Optimization barriers, `flow.tensor.clone` and
    identity loops are optimized away.

    1. Visit every operation that works in place.
    2. Follow each overwritten operand backwards to arguments: through operations that may forward
       or fold to an operand, and through the results of loops, branches and calls.
    3. Let all uses of the arguments found, except donated ones (`axir.donated`,
       `jax.buffer_donor`, `tf.aliasing_output`, `iree.abi.output`), use a transfer instead. IREE
       does not transfer unsigned integers, so these are bitcast to signless integers and back. On
       CPUs a kernel copies large arrays, because a transfer runs on one thread.
    4. Remove the optimization barriers on the way, because a transfer next to one is optimized
       away.
    5. If the overwritten operand is a slice of such an argument and has other readers, let the
       operation overwrite a new array. (IREE transfers the argument once for each reader and keeps
       the slices apart. Then it removes the transfers, because no operation writes to them, and
       merges the two slices: the other reader found the overwritten elements.)
    6. Remove `axir.donated`, which only this pass reads.

    Before::

        %1 = stablehlo.dynamic_update_slice %arg0, %arg1, %c : …

    After::

        %0 = flow.tensor.transfer %arg0 : tensor<9xf32> to #hal.device.promise<@__device_0>
        %1 = stablehlo.dynamic_update_slice %0, %arg1, %c : …

    The results of host functions are treated as arguments, because others may read them.

    Arguments of a loop's body need no copy (IREE makes one before the loop). Arguments of a private
    function are treated as the caller's arrays. Precondition: passes that make the operations above
    have run.
    """

    name: ClassVar[str] = "protect-inputs"
    device: str = "__device_0"
    platform: str = "cpu"

    def run(self, module: ir.Module) -> None:
        """Inserts the transfers."""
        reached = _Storage()
        shared: list[tuple[ir.Operation, int]] = []
        for operation in find_operations(module.operation, IN_PLACE):
            for place in overwritten_places(operation):
                operand = operation.operands[place]
                if _trace_storage(operand, reached) and _is_shared_slice(operand):
                    shared.append((operation, place))
        functions = find_operations(module.operation, ("func.func",))
        donated = {
            (function.attributes["sym_name"].value, index)
            for function in functions
            for index in donated_arguments(function)
        }
        for argument in reached.arguments:
            function = argument.owner.owner
            if (function.attributes["sym_name"].value, argument.arg_number) not in donated:
                self._replace_by_copy(argument)
        for result in reached.host_results:
            self._replace_by_copy(result)
        for barrier in reached.barriers:
            replace(barrier, list(barrier.operands))
        for operation, place in shared:
            with ir.InsertionPoint(operation), operation.location:
                operation.operands[place] = renewed(operation.operands[place])
        for function in functions:
            _remove_own_attribute(function)

    def _replace_by_copy(self, value: ir.Value) -> None:
        """Replaces a function's argument, or a call's result, by a copy in all its uses."""
        uses = [(use.owner, use.operand_number) for use in value.uses]
        if isinstance(value, ir.BlockArgument):
            place = ir.InsertionPoint.at_block_begin(value.owner)
            location = value.owner.owner.location
        else:
            call = value.owner.operation
            place, location = ir.InsertionPoint.after(call), call.location
        with place, location:
            if self.platform == "cpu" and is_worth_a_kernel(value):
                copy = copied(value, None)
            else:
                copy = transfer(value, self.device)
        for owner, number in uses:
            owner.operands[number] = copy


@dataclasses.dataclass
class _Storage:
    """The arguments, host functions' results and barriers behind overwritten operands."""

    arguments: dict[ir.BlockArgument, None] = dataclasses.field(default_factory=dict)
    host_results: dict[ir.Value, None] = dataclasses.field(default_factory=dict)
    barriers: list[ir.Operation] = dataclasses.field(default_factory=list)
    seen: dict[ir.Value, bool] = dataclasses.field(default_factory=dict)


def transfer(value: ir.Value, device: str) -> ir.Value:
    """Copies a value to a device; IREE transfers no unsigned integers: they are bitcast."""
    if hlo.is_unsigned(value):
        element = hlo.element_type_of(value)
        bits = hlo.bitcast_convert(value, ir.IntegerType.get_signless(element.width))
        return hlo.bitcast_convert(transfer(bits, device), element)
    # Made here for the few programs that need it: it loads a dialect of IREE, which takes 20 ms.
    target = ir.Attribute.parse(f"#hal.device.promise<@{device}>")
    return ir.Operation.create(
        "flow.tensor.transfer",
        results=[value.type],
        operands=[value],
        attributes={"target": target},
    ).result


def _trace_storage(value: ir.Value, reached: _Storage) -> bool:
    """Collects the function arguments that a value may share storage with; tells if it found any.

    Barriers on the way to them are collected as well.
    """
    if value not in reached.seen:
        reached.seen[value] = _trace_unseen(value, reached)
    return reached.seen[value]


def _trace_unseen(value: ir.Value, reached: _Storage) -> bool:
    if isinstance(value, ir.BlockArgument):
        is_argument = value.owner.owner.operation.name == "func.func"
        if is_argument:
            reached.arguments[value] = None
        return is_argument
    operation = value.owner.operation
    if operation.name == "func.call" and operation.attributes["callee"].value.startswith(_HOST):
        reached.host_results[value] = None
        return True
    found = [_trace_storage(source, reached) for source in sources(operation, value)]
    if any(found) and operation.name == BARRIER and operation not in reached.barriers:
        reached.barriers.append(operation)
    return any(found)


def _is_shared_slice(value: ir.Value) -> bool:
    """Tells whether a value is, or may be folded to, part of an array that others read, too."""
    pending, seen = [(value, False)], set[ir.Value]()
    while pending:
        value, is_read = pending.pop()
        operation = defining_operation(value)
        if operation is None or value in seen:
            continue
        seen.add(value)
        is_read = is_read or sum(1 for _ in value.uses) > 1
        takes_part = operation.name in _SLICES and operation.operands[0].type != value.type
        if takes_part and (is_read or _has_twin(operation)):
            return True
        pending += [(source, is_read) for source in folded_sources(value)]
    return False


def _has_twin(operation: ir.Operation) -> bool:
    """Tells whether another slice takes the same part of the array."""
    others = (use.owner.operation for use in operation.operands[0].uses)
    return any(
        other != operation
        and other.name == operation.name
        and other.attributes == operation.attributes
        and list(other.operands) == list(operation.operands)
        for other in others
    )


def donated_arguments(function: ir.Operation) -> list[int]:
    """Returns the numbers of the arguments that a caller donates."""
    attributes = function.attributes
    if "arg_attrs" not in attributes:
        return []
    return [
        index
        for index, entries in enumerate(attributes["arg_attrs"])
        if any(name in entries for name in DONATION_ATTRIBUTES)
    ]


def is_given_away(value: ir.Value) -> bool:
    """Tells whether a value is a function argument that the caller donates."""
    if not isinstance(value, ir.BlockArgument):
        return False
    owner = value.owner.owner.operation
    return owner.name == "func.func" and value.arg_number in donated_arguments(owner)


def _remove_own_attribute(function: ir.Operation) -> None:
    """Removes `axir.donated`: IREE does not know the namespace, and would reject the module."""
    attributes = function.attributes
    if "arg_attrs" not in attributes:
        return
    own = DONATION_ATTRIBUTES[0]
    kept = [
        ir.DictAttr.get({entry.name: entry.attr for entry in entries if entry.name != own})
        for entries in attributes["arg_attrs"]
    ]
    function.attributes["arg_attrs"] = ir.ArrayAttr.get(kept)
