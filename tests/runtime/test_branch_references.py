"""References that a branch passes on twice."""

from __future__ import annotations

from iree.compiler import ir

from axir.runtime.compiler.branch_references import part_repeated_references

REPEATED = """
vm.module public @module {
  vm.func private @choose(%flag: i32, %a: !vm.ref<!hal.buffer>, %b: !vm.ref<!hal.buffer>) {
    vm.cond_br %flag, ^bb1, ^bb2
  ^bb1:
    vm.br ^bb3(%a, %flag, %flag, %b, %a, %a : !vm.ref<!hal.buffer>, i32, i32,
        !vm.ref<!hal.buffer>, !vm.ref<!hal.buffer>, !vm.ref<!hal.buffer>)
  ^bb2:
    vm.br ^bb3(%b, %flag, %flag, %a, %b, %a : !vm.ref<!hal.buffer>, i32, i32,
        !vm.ref<!hal.buffer>, !vm.ref<!hal.buffer>, !vm.ref<!hal.buffer>)
  ^bb3(%0: !vm.ref<!hal.buffer>, %1: i32, %2: i32, %3: !vm.ref<!hal.buffer>,
       %4: !vm.ref<!hal.buffer>, %5: !vm.ref<!hal.buffer>):
    vm.return
  }
}
"""


def _branches(module: ir.Module) -> list[ir.Operation]:
    found = []

    def collect(operation: ir.Operation) -> ir.WalkResult:
        if operation.name == "vm.br":
            found.append(operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(collect)
    return found


def test_every_reference_is_passed_once() -> None:
    with ir.Context():
        module = ir.Module.parse(REPEATED)
        assert part_repeated_references(module.operation) == 4
        assert module.operation.verify()
        for branch in _branches(module):
            references = [x for x in branch.operands if str(x.type) != "i32"]
            assert len(set(references)) == 4
            numbers = [x for x in branch.operands if str(x.type) == "i32"]
            assert len(set(numbers)) == 1


def test_copies_are_chosen_from_the_value_itself() -> None:
    with ir.Context():
        module = ir.Module.parse(REPEATED)
        part_repeated_references(module.operation)
        a, *_, second, third = _branches(module)[0].operands
        for copy, original in ((second, a), (third, second)):
            choice = copy.owner
            assert choice.name == "vm.select.ref"
            flag, kept, other = choice.operands
            assert kept == original
            assert (flag.owner.name, flag.owner.operands[0]) == ("vm.cmp.nz.ref", original)
            assert other.owner.name == "vm.const.ref.zero"


def test_a_module_without_repetitions_stays_as_it_is() -> None:
    text = REPEATED.replace("%b, %a, %a :", "%b, %c, %d :").replace("%a, %b, %a :", "%a, %c, %d :")
    text = text.replace(
        "%b: !vm.ref<!hal.buffer>)",
        "%b: !vm.ref<!hal.buffer>, %c: !vm.ref<!hal.buffer>, %d: !vm.ref<!hal.buffer>)",
    )
    with ir.Context():
        module = ir.Module.parse(text)
        before = str(module)
        assert part_repeated_references(module.operation) == 0
        assert str(module) == before
