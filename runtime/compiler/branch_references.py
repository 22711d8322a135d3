"""Keeps references that a branch passes on more than once: what IREE's bytecode would lose.

The fact (IREE 3.12 and 3.13): where a branch passes one reference to several arguments of a block,
as after a condition whose results lie in one allocation, and one of the arguments is given the
register in which the reference already is, the bytecode moves the reference out of this register
into that of another. The argument is null from then on. A null buffer ends the program ("indirect
buffer reference slot 0 is out range"); a null fence lets it go on before what it needs is there.

So that no reference is passed twice, the second and later occurrences are replaced by the result
of an operation whose value is the same: the choice between the reference, if it is not null, and
null. What does not live here: running the compiler (`session.py`).
"""

from __future__ import annotations

from iree.compiler import ir

_BRANCHES = frozenset(("vm.br", "vm.cond_br"))


def part_repeated_references(module: ir.Operation) -> int:
    """Replaces repeated references in the branches of a VM module, in place.

    Returns:
        How many operands were replaced.
    """
    branches: list[ir.Operation] = []

    def collect(operation: ir.Operation) -> ir.WalkResult:
        if operation.name in _BRANCHES:
            branches.append(operation)
        return ir.WalkResult.ADVANCE

    module.walk(collect)
    return sum(map(_part_operands, branches))


def _part_operands(branch: ir.Operation) -> int:
    # By reference, its latest copy: copies of the same value would be merged again.
    latest: dict[ir.Value, ir.Value] = {}
    replaced = 0
    for index, value in enumerate(branch.operands):
        if value not in latest:
            latest[value] = value
        elif _is_reference(value.type):
            copy = _copy(latest[value], branch)
            branch.operands[index] = latest[value] = copy
            replaced += 1
    return replaced


def _is_reference(type_: ir.Type) -> bool:
    # The bindings have no classes for types of the VM.
    return str(type_).startswith("!vm.ref<")


def _copy(value: ir.Value, before: ir.Operation) -> ir.Value:
    with ir.InsertionPoint(before), before.location:
        flag = ir.IntegerType.get_signless(32)
        is_set = ir.Operation.create("vm.cmp.nz.ref", [flag], [value]).result
        null = ir.Operation.create("vm.const.ref.zero", [value.type]).result
        return ir.Operation.create("vm.select.ref", [value.type], [is_set, value, null]).result
