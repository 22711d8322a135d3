"""Numbers of a host function: constants, and sums of a constant and something that is not known."""

from __future__ import annotations

import re

from .reading import Block, Operation

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
        for block in blocks:
            for operation in block.operations:
                self._read(operation)

    def _read(self, operation: Operation) -> None:
        name = operation.name
        if name == "arith.constant":
            found = _VALUE.search(operation.text)
            if found is not None:
                self._numbers[operation.results[0]] = int(found[1])
            text = _TEXT.search(operation.text)
            self._texts[operation.results[0]] = text[1] if text else operation.text
        elif name == "arith.addi":
            self._sums[operation.results[0]] = operation.operands

    def number(self, name: str) -> int | None:
        """Returns the number that a value always is, None if it is not known."""
        return self._numbers.get(name)

    def constant(self, name: str) -> str | None:
        """Returns the text of a constant, None if the value is none."""
        return self._texts.get(name)

    def base(self, name: str) -> int:
        """Returns the number that is added to what is not known of a value."""
        number = self._numbers.get(name)
        if number is not None:
            return number
        return sum(map(self.base, self._sums.get(name, ())))
