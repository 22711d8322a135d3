"""Reads the host functions of a module in the stream dialect, from MLIR's generic text.

The bindings take 10 us and more for each operation that Python looks at; the generic form of the
text has one shape for all operations. Elsewhere: the meaning of the operations (`values.py`,
`commands.py`).
"""

from __future__ import annotations

import re

_OPERATION = re.compile(
    r'\s*(?:(%[\w.$-]+)(?::(\d+))? = )?"([\w.]+)"\(([^()]*)\)(?:\[([^\]]*)\])?(.*)', re.S
)
_LABEL = re.compile(r"\s*(\^[\w.$-]+)(?:\((.*)\))?:")
_ARGUMENT = re.compile(r"(%[\w.$-]+): (![\w.]+(?:<[^>]*>)?|[^,!]+)")
_BEGINS = re.compile(r'\s*(?:%[\w.$:-]+ = )?"[\w.]+"\(|\s*\^|\s*\}\)|\s*\}, \{')
_SEGMENTS = re.compile(r"operandSegmentSizes = array<i32: ([\d, -]*)>")
_PLACE = re.compile(r" loc\((.*)\)\s*\Z", re.S)


class UnreadableError(ValueError):
    """The text is not MLIR's generic form."""


class Operation:
    """An operation with the names of its values.

    Attributes:
        name: Its name, such as `stream.cmd.copy`.
        results: The names of the results.
        operands: The names of the operands.
        successors: The labels of the blocks that it branches to.
        text: The properties, attributes and types behind the operands.
        regions: The blocks of each of its regions.
        place: Its location, as MLIR writes it, if the text has it.
    """

    __slots__ = ("name", "operands", "place", "regions", "results", "successors", "text")

    def __init__(
        self, name: str, results: list[str], operands: list[str], successors: list[str], text: str
    ) -> None:
        self.name = name
        self.results = results
        self.operands = operands
        self.successors = successors
        self.text = text
        self.regions: list[list[Block]] = []
        self.place = ""

    @property
    def blocks(self) -> list[Block]:
        """The blocks of the first region."""
        return self.regions[0] if self.regions else []

    def all_blocks(self) -> list[Block]:
        """Returns the blocks of all regions."""
        return [block for region in self.regions for block in region]

    def segments(self) -> list[list[str]]:
        """Returns the operands in the groups that the operation says they form."""
        found = _SEGMENTS.search(self.text)
        if found is None:
            return [self.operands]
        groups, start = [], 0
        for size in map(int, found[1].split(",")):
            groups.append(self.operands[start : start + size])
            start += size
        return groups

    def kinds(self) -> list[str]:
        """Returns the types of the operands."""
        start = self.text.rfind(" : (") + 4
        return _listed(self.text[start : self.text.index(")", start)])

    def result_kinds(self) -> list[str]:
        """Returns the types of the results."""
        start = self.text.rfind(" -> ") + 4
        end = self.text.find(" loc(", start)
        text = self.text[start:] if end < 0 else self.text[start:end]
        return _listed(text.strip("() "))

    def gives_array(self, index: int) -> bool:
        """Tells whether a result is an array of the device."""
        return self.result_kinds()[index].startswith("!stream.resource")

    def symbol(self, attribute: str) -> str:
        """Returns an attribute's symbol or string, empty if the attribute is absent."""
        found = re.search(rf'\b{attribute} = \[?(@[^,\]}}>]+|"[^"]*")', self.text)
        return "" if found is None else found[1]

    def numbers(self, attribute: str) -> list[int]:
        """Returns the integers of an array attribute."""
        found = re.search(rf"\b{attribute} = \[([^\]]*)\]", self.text)
        return [] if found is None else [int(x.split(":")[0]) for x in found[1].split(",") if x]


class Block:
    """A block: its label, its arguments with their types, and its operations."""

    __slots__ = ("arguments", "label", "operations", "types")

    def __init__(self, label: str, arguments: list[str], types: list[str]) -> None:
        self.label = label
        self.arguments = arguments
        self.types = types
        self.operations: list[Operation] = []


def read_operation(text: str) -> Operation:
    """Reads one operation with all that is in it.

    Raises:
        UnreadableError: if the text is not MLIR's generic form.
    """
    top = Block("", [], [])
    open_: list[Operation] = []
    current = top
    for line in _logical_lines(text):
        if line.lstrip().startswith("}"):
            if not open_:
                raise UnreadableError(line[:80])
            ended = open_[-1]
            if line.lstrip().startswith("}, {"):
                current = _region(ended)
                continue
            open_.pop()
            ended.text += line
            _end(ended, line)
            current = _last_block(open_, top)
            continue
        label = _LABEL.match(line)
        if label is not None and open_ and '"(' not in line.split(":", 1)[0]:
            current = _labelled(open_[-1], label)
            continue
        operation = _operation(line)
        current.operations.append(operation)
        if operation.text.rstrip().endswith("({"):
            open_.append(operation)
            current = _region(operation)
        else:
            _end(operation, operation.text)
    if open_ or len(top.operations) != 1:
        raise UnreadableError(text[:80])
    return top.operations[0]


def _logical_lines(text: str) -> list[str]:
    """Joins lines that MLIR breaks in the middle of an operation, as in long constants."""
    lines: list[str] = []
    for line in text.splitlines():
        if lines and _BEGINS.match(line) is None:
            lines[-1] += line
        else:
            lines.append(line)
    return lines


def _operation(line: str) -> Operation:
    match = _OPERATION.match(line)
    if match is None:
        raise UnreadableError(line[:80])
    result, count, name, operands, successors, rest = match.groups()
    if result is None:
        results = []
    elif count is None:
        results = [result]
    else:
        results = [f"{result}#{index}" for index in range(int(count))]
    return Operation(
        name,
        results,
        _listed(operands),
        _listed(successors or ""),
        rest,
    )


def _listed(text: str) -> list[str]:
    return text.split(", ") if text else []


def _end(operation: Operation, rest: str) -> None:
    place = _PLACE.search(rest)
    if place is not None:
        operation.place = place[1]


def _labelled(parent: Operation, label: re.Match[str]) -> Block:
    """Begins a block; the first label of a region names the block that has begun already."""
    found = _ARGUMENT.findall(label[2] or "")
    block = Block(label[1], [name for name, _ in found], [kind for _, kind in found])
    region = parent.regions[-1]
    if len(region) == 1 and not region[0].operations:
        region[0] = block
    else:
        region.append(block)
    return block


def _region(parent: Operation) -> Block:
    """Begins a region of an operation."""
    block = Block("^entry", [], [])
    parent.regions.append([block])
    return block


def _last_block(open_: list[Operation], top: Block) -> Block:
    return open_[-1].regions[-1][-1] if open_ else top
