"""Operands of branches: references that are passed twice, and numbers of two sizes."""

from __future__ import annotations

from iree.compiler import ir

from axir.runtime.compiler.invocation.branch_operands import repair_branches

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
        assert repair_branches(module.operation) == 4
        assert module.operation.verify()
        for branch in _branches(module):
            references = [x for x in branch.operands if str(x.type) != "i32"]
            assert len(set(references)) == 4
            numbers = [x for x in branch.operands if str(x.type) == "i32"]
            assert len(set(numbers)) == 1


CHOICE = """
vm.module public @module {
  vm.func private @choose(%flag: i32, %a: !vm.ref<!hal.buffer>, %b: !vm.ref<!hal.buffer>) {
    vm.cond_br %flag, ^bb1(%a, %b : !vm.ref<!hal.buffer>, !vm.ref<!hal.buffer>),
        ^bb2(%a, %flag, %a : !vm.ref<!hal.buffer>, i32, !vm.ref<!hal.buffer>)
  ^bb1(%0: !vm.ref<!hal.buffer>, %1: !vm.ref<!hal.buffer>):
    vm.return
  ^bb2(%2: !vm.ref<!hal.buffer>, %3: i32, %4: !vm.ref<!hal.buffer>):
    vm.return
  }
}
"""


def test_copies_are_made_behind_the_choice_that_passes_them() -> None:
    with ir.Context():
        module = ir.Module.parse(CHOICE)
        assert repair_branches(module.operation) == 1
        assert module.operation.verify()
        function = module.body.operations[0].regions[0].blocks[0].operations[0]
        entry = function.regions[0].blocks[0].operations
        # The block that takes two arrays is branched to as before; the other one, through a new
        # block.
        assert [operation.operation.name for operation in entry] == ["vm.cond_br"]
        assert len(entry[0].operands) == 3
        (jump,) = _branches(module)
        assert len({jump.operands[0], jump.operands[2]}) == 2
        assert jump.operands[2].owner.operation.block == jump.block


def test_copies_are_chosen_from_the_value_itself() -> None:
    with ir.Context():
        module = ir.Module.parse(REPEATED)
        repair_branches(module.operation)
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
        assert repair_branches(module.operation) == 0
        assert str(module) == before


MIXED = """
vm.module public @module {
  vm.func private @exchange(%flag: i32, %size: i64, %step: f32) -> i64 {
    vm.br ^bb1(%flag, %size, %step : i32, i64, f32)
  ^bb1(%0: i32, %1: i64, %2: f32):
    vm.cond_br %0, ^bb1(%flag, %size, %2 : i32, i64, f32), ^bb2(%0, %0 : i32, i32)
  ^bb2(%3: i32, %4: i32):
    vm.return %1 : i64
  }
}
"""


def test_numbers_are_passed_in_one_size_beside_larger_ones() -> None:
    with ir.Context():
        module = ir.Module.parse(MIXED)
        assert repair_branches(module.operation) == 4
        assert module.operation.verify()
        function = module.body.operations[0].operation.regions[0].blocks[0].operations[0]
        _, loop, end = function.operation.regions[0].blocks
        assert [str(x.type) for x in loop.arguments] == ["i64", "i64", "i64"]
        assert [str(x.type) for x in end.arguments] == ["i32", "i32"]
        names = [operation.operation.name for operation in loop.operations]
        # The block reads the passed values, and passes them on in the same sizes.
        assert sorted(names[:3]) == ["vm.bitcast.i32.f32", "vm.trunc.i64.i32", "vm.trunc.i64.i32"]
        assert sorted(names[3:-1]) == ["vm.bitcast.f32.i32", "vm.ext.i32.i64.u", "vm.ext.i32.i64.u"]


def test_blocks_that_take_one_size_stay_as_they_are() -> None:
    text = MIXED.replace("i64", "i32")
    with ir.Context():
        module = ir.Module.parse(text)
        before = str(module)
        assert repair_branches(module.operation) == 0
        assert str(module) == before
