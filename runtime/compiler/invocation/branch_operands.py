"""Keeps references and numbers that branches pass and that IREE's bytecode would lose.

The facts (IREE 3.12 and 3.13), both about the moves between registers that a branch becomes:

* A branch may pass one reference to several arguments of a block, as after a condition with several
  results in one allocation. If one of these arguments has the register in which the reference
  already is, the bytecode moves the reference out of this register into another argument's
  register. The argument is null from then on. A null buffer ends the program ("indirect buffer
  reference slot 0 is out range"); a null fence lets the program go on before its operands are
  ready.
* A number of 64 bits takes two registers of 32. The moves are ordered so that no register is
  overwritten before it is read, but as if the second half of a pair were no register. Where a block
  takes numbers of both sizes, one that is still needed may be lost.

So no reference is passed twice to one block: the second and later occurrences are replaced by a
copy, the result of an operation with the same value (it selects the reference if it is not null,
and null otherwise). Such a copy is made after the control flow has chosen the block, because a copy
that is made earlier and not passed on is never released, and its buffer stays in memory for good.
Numbers of 32 bits are passed as 64 bits to blocks that also take numbers of 64 bits. Elsewhere:
running the compiler (`invoker.py`).
"""

from __future__ import annotations

from iree.compiler import ir

_BRANCHES = frozenset(("vm.br", "vm.cond_br"))
_NARROW, _WIDE = frozenset(("i32", "f32")), frozenset(("i64", "f64"))


class _Entries:  # no dataclass: the module of these takes a helper 4 ms to load
    """How control reaches a block: branches, with the places of the block's first values."""

    def __init__(self) -> None:
        self.branches: list[tuple[ir.Operation, int]] = []
        self.only_branches = True


def repair_branches(module: ir.Operation) -> int:
    """Rewrites the branches of a VM module in place.

    Returns:
        How many operands were replaced.
    """
    branches: list[ir.Operation] = []
    others: list[ir.Operation] = []

    def collect(operation: ir.Operation) -> ir.WalkResult:
        if operation.name in _BRANCHES:
            branches.append(operation)
        elif len(operation.successors):
            others.append(operation)
        return ir.WalkResult.ADVANCE

    module.walk(collect)
    replaced = sum(map(_part_references, branches))
    if replaced:
        branches.clear()
        others.clear()
        module.walk(collect)
    return replaced + _pass_one_width(branches, others)


# References --------------------------------------------------------------------------------------


def _part_references(branch: ir.Operation) -> int:
    if branch.name == "vm.br":
        return _part_passed(branch)
    condition, *passed = branch.operands
    edges: list[tuple[ir.Block, list[ir.Value]]] = []
    replaced = 0
    for block in branch.successors:
        values, passed = passed[: len(block.arguments)], passed[len(block.arguments) :]
        references = [x for x in values if _is_reference(x.type)]
        if len(set(references)) < len(references):
            # A copy that is made before the choice, and not passed on, is never released.
            edge = branch.block.create_after()
            with ir.InsertionPoint(edge), branch.location:
                jump = ir.Operation.create("vm.br", operands=values, successors=[block])
            replaced += _part_passed(jump)
            edges.append((edge, []))
        else:
            edges.append((block, values))
    if replaced:
        _rebuild_choice(branch, condition, edges)
    return replaced


def _rebuild_choice(
    branch: ir.Operation, condition: ir.Value, edges: list[tuple[ir.Block, list[ir.Value]]]
) -> None:
    sizes = [1, *(len(values) for _, values in edges)]
    with ir.InsertionPoint(branch), branch.location:
        ir.Operation.create(
            "vm.cond_br",
            operands=[condition, *(x for _, values in edges for x in values)],
            successors=[block for block, _ in edges],
            attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get(sizes)},
        )
    branch.erase()


def _part_passed(branch: ir.Operation) -> int:
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
    # The bindings have no classes for the VM's types.
    return str(type_).startswith("!vm.ref<")


def _copy(value: ir.Value, before: ir.Operation) -> ir.Value:
    with ir.InsertionPoint(before), before.location:
        flag = ir.IntegerType.get_signless(32)
        is_set = ir.Operation.create("vm.cmp.nz.ref", [flag], [value]).result
        null = ir.Operation.create("vm.const.ref.zero", [value.type]).result
        return ir.Operation.create("vm.select.ref", [value.type], [is_set, value, null]).result


# Numbers -----------------------------------------------------------------------------------------


def _pass_one_width(branches: list[ir.Operation], others: list[ir.Operation]) -> int:
    """Widens numbers of 32 bits that are passed together with numbers of 64 bits."""
    entries: dict[ir.Block, _Entries] = {}
    for branch in branches:
        first = 1 if branch.name == "vm.cond_br" else 0
        for block in branch.successors:
            entries.setdefault(block, _Entries()).branches.append((branch, first))
            first += len(block.arguments)
    for operation in others:
        for block in operation.successors:
            entries.setdefault(block, _Entries()).only_branches = False
    widened = 0
    for block, entry in entries.items():
        kinds = [str(x.type) for x in block.arguments]
        if entry.only_branches and not _WIDE.isdisjoint(kinds):
            for index, kind in enumerate(kinds):
                if kind in _NARROW:
                    widened += _widen(block, index, entry)
    return widened


def _widen(block: ir.Block, index: int, entry: _Entries) -> int:
    """Passes an argument of a block as an integer of 64 bits."""
    argument = block.arguments[index]
    kind = argument.type
    is_float = isinstance(kind, ir.FloatType)
    narrow, wide = (ir.IntegerType.get_signless(n, context=kind.context) for n in (32, 64))
    for branch, first in entry.branches:
        with ir.InsertionPoint(branch), branch.location:
            value = branch.operands[first + index]
            if is_float:
                value = _build("bitcast.f32.i32", narrow, value)
            branch.operands[first + index] = _build("ext.i32.i64.u", wide, value)
    argument.set_type(wide)
    with ir.InsertionPoint.at_block_begin(block), argument.location:
        restored = low = _build("trunc.i64.i32", narrow, argument)
        if is_float:
            restored = _build("bitcast.i32.f32", kind, low)
    argument.replace_all_uses_except(restored, low.owner.operation)
    return len(entry.branches)


def _build(name: str, kind: ir.Type, operand: ir.Value) -> ir.Value:
    return ir.Operation.create(f"vm.{name}", [kind], [operand]).result
