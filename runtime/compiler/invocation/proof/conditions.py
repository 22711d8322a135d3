"""Rewrites conditions with regions as blocks and branches, as in the program with memory."""

from __future__ import annotations

from itertools import count

from .reading import Block, Operation
from .scalars import passed_by

_CONDITION, _YIELD = "scf.if", "scf.yield"


def without_conditions(blocks: list[Block]) -> list[Block]:
    """Returns blocks in which each condition is a branch to separate blocks.

    Regions that only yield values become no blocks: the branch passes the values on.
    """
    if not any(x.name == _CONDITION for block in blocks for x in block.operations):
        return blocks
    return _without_passing(_rewritten(blocks, count()))


def _without_passing(blocks: list[Block]) -> list[Block]:
    """Lets branches skip blocks that only pass their arguments on."""
    passing = {
        block.label: block
        for block in blocks[1:]
        if len(block.operations) == 1 and block.operations[0].name == "cf.br"
    }
    for block in blocks:
        end = block.operations[-1]
        if any(label in passing for label in end.successors):
            block.operations[-1] = _skipping(end, passing)
    return [block for block in blocks if block.label not in passing]


def _skipping(end: Operation, passing: dict[str, Block]) -> Operation:
    targets = []
    for label, operands in zip(end.successors, passed_by(end), strict=True):
        while label in passing:
            block = passing[label]
            named = dict(zip(block.arguments, operands, strict=True))
            operands = [named.get(x, x) for x in block.operations[0].operands]
            label = block.operations[0].successors[0]
        targets.append((label, operands))
    if end.name == "cf.br":
        ((label, operands),) = targets
        return Operation("cf.br", [], operands, [label], "")
    return _choice(end.operands[0], targets)


def _rewritten(blocks: list[Block], numbers: count[int]) -> list[Block]:
    made: list[Block] = []
    for block in blocks:
        current = Block(block.label, block.arguments, block.types)
        made.append(current)
        for operation in block.operations:
            if operation.name != _CONDITION:
                current.operations.append(operation)
                continue
            label = f"^if{next(numbers)}"
            following = Block(f"{label}_end", operation.results, operation.result_kinds())
            targets, inner = _branches(operation, label, following.label, numbers)
            current.operations.append(_choice(operation.operands[0], targets))
            made += [*inner, following]
            current = following
    return made


def _branches(
    condition: Operation, label: str, following: str, numbers: count[int]
) -> tuple[list[tuple[str, list[str]]], list[Block]]:
    """Returns the targets and operands of a condition's branch, and the blocks of its regions."""
    targets: list[tuple[str, list[str]]] = []
    made: list[Block] = []
    for index, region in enumerate(condition.regions):
        inner = _rewritten(region, numbers)
        operations = inner[-1].operations
        given = operations.pop().operands if operations else []
        if len(inner) == 1 and not operations:
            targets.append((following, given))
            continue
        inner[0].label = f"{label}_{index}"
        operations.append(Operation("cf.br", [], given, [following], ""))
        targets.append((inner[0].label, []))
        made += inner
    return targets, made


def _choice(condition: str, targets: list[tuple[str, list[str]]]) -> Operation:
    (first, then), (second, otherwise) = targets
    sizes = f"operandSegmentSizes = array<i32: 1, {len(then)}, {len(otherwise)}>"
    return Operation("cf.cond_br", [], [condition, *then, *otherwise], [first, second], sizes)
