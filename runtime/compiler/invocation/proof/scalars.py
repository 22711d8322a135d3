"""Numbers of a host function: constants, and sums of a constant and an unknown number."""

from __future__ import annotations

import re

from .reading import Block, Operation


def passed_by(end: Operation) -> list[list[str]]:
    """Returns the operands that a branch passes to each of its successors."""
    return end.segments()[1:] if end.name == "cf.cond_br" else [end.operands][: len(end.successors)]


_VALUE = re.compile(r"value = (-?\d+) : ")
_TEXT = re.compile(r"value = ([^ ,}>]+(?: : [\w<>]+)?)")


class Scalars:
    """The numbers of one function.

    Args:
        blocks: The blocks of the function.
    """

    def __init__(self, blocks: list[Block]) -> None:
        self._numbers: dict[str, int] = {}
        self._texts: dict[str, str] = {}
        self._sums: dict[str, list[str]] = {}
        self._choices: dict[str, list[str]] = {}
        # The values passed for each argument of a block, on all ways into it.
        self._handed: dict[str, list[str]] = {}
        # The current numbers of blocks' arguments.
        self.bound: dict[str, int] = {}
        labelled = {block.label: block for block in blocks}
        for block in blocks:
            for operation in block.operations:
                self._read(operation)
            if block.operations:
                self._hand_on(block.operations[-1], labelled)

    def _hand_on(self, end: Operation, labelled: dict[str, Block]) -> None:
        for label, operands in zip(end.successors, passed_by(end), strict=True):
            for argument, value in zip(labelled[label].arguments, operands, strict=True):
                self._handed.setdefault(argument, []).append(value)

    def _read(self, operation: Operation) -> None:
        name = operation.name
        if name == "arith.constant":
            found = _VALUE.search(operation.text)
            if found is not None:
                self._numbers[operation.results[0]] = int(found[1])
            text = _TEXT.search(operation.text)
            self._texts[operation.results[0]] = text[1] if text else operation.text
        elif name == "arith.select":
            self._choices[operation.results[0]] = operation.operands
        elif name == "arith.addi":
            self._sums[operation.results[0]] = operation.operands

    def number(self, name: str) -> int | None:
        """Returns the number that a value is where the program is now, None if it is not known."""
        number = self.passed_number(name)
        if number is None and name in self._sums:
            terms = [self.number(x) for x in self._sums[name]]
            return None if None in terms else sum(filter(None, terms))
        return number

    def passed_number(self, name: str) -> int | None:
        """Returns the number of a value that is not a sum: a loop's sums have no bound."""
        number = self._numbers.get(name, self.bound.get(name))
        if number is None and name in self._handed:
            found = self._constants_handed(name, set())
            number = found.pop() if len(found) == 1 else None
            if number is not None:
                self._numbers[name] = number
        return number

    def choose(self, condition: str, which: int) -> bool:
        """Records the numbers that are selected if a condition is true (`which` is 0) or not (1).

        Returns:
            Whether that is consistent: an earlier branch of the same condition may have gone
            another way.
        """
        for name, operands in self._choices.items():
            if operands[0] == condition:
                number = self.passed_number(operands[1 + which])
                if number is not None:
                    if self.bound.get(name, number) != number:
                        return False
                    self.bound[name] = number
        return True

    def is_computed(self, name: str) -> bool:
        """Tells whether a value is neither a number nor made from numbers passed to a block."""
        if self.number(name) is not None:
            return False
        if name in self._sums:
            return any(map(self.is_computed, self._sums[name]))
        if name in self._choices:
            return any(map(self.is_computed, self._choices[name][1:]))
        return name not in self._handed or None in self._constants_handed(name, set())

    def _constants_handed(self, name: str, seen: set[str]) -> set[int | None]:
        """Returns the numbers that an argument of a block may be; None is one that is not known."""
        if name in seen:
            return set()
        seen.add(name)
        if name in self._choices:
            chosen = [self._constants_handed(x, seen) for x in self._choices[name][1:]]
            return set.union(*chosen)
        if name not in self._handed:
            return {self._numbers.get(name)}
        found: set[int | None] = set()
        for value in self._handed[name]:
            found |= self._constants_handed(value, seen)
        return found

    def constant(self, name: str) -> str | None:
        """Returns the text of a constant, None if the value is not a constant."""
        return self._texts.get(name)

    def base(self, name: str) -> int:
        """Returns the known summands of a value, added up."""
        number = self.number(name)
        if number is not None:
            return number
        return sum(map(self.base, self._sums.get(name, ())))
