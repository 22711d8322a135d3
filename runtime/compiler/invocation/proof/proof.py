"""`violations`: checks the initializers and the functions of a module."""

from __future__ import annotations

from .blocks import follow, length_there
from .contents import GLOBAL, Contents, Fact, Piece, UnprovableError
from .execution import Execution
from .matching import match, operations_of
from .reading import Operation, UnreadableError, read_operation
from .scalars import Scalars
from .state import Place, Violation
from .values import Values

__all__ = ["UnprovableError", "Violation", "violations"]


def violations(meant: list[str], made: list[str]) -> list[Violation]:
    """Compares a program with values to the same one with memory.

    Args:
        meant: The initializers and functions of the scheduled program with values, in MLIR's
            generic form.
        made: The same functions of the program with memory.

    Returns:
        The reads that may find something else than the program means, without repetition.

    Raises:
        UnprovableError: if the two programs do not correspond as far as can be seen, or do
            something that is not known here.
    """
    try:
        pairs = _paired([read_operation(x) for x in meant], [read_operation(x) for x in made])
    except UnreadableError as error:
        raise UnprovableError(f"a line that is not understood: {error}") from error
    found: list[Violation] = []
    globals_: dict[str, Contents] = {}
    for first, second in pairs:
        values = Values(first)
        scalars = Scalars(second.blocks)
        execution = Execution(
            values, match(values, second, scalars), scalars, globals_, found.append
        )
        follow(execution, second.blocks)
        _note_globals(values, execution, globals_, found)
    return list(dict.fromkeys(found))


def _paired(meant: list[Operation], made: list[Operation]) -> list[tuple[Operation, Operation]]:
    """Returns which function is which: by names, and initializers that store arrays by order."""
    initializers = [
        [x for x in side if x.name == "util.initializer" and _stores_arrays(x)]
        for side in (meant, made)
    ]
    functions = [
        {x.symbol("sym_name"): x for x in side if x.name == "util.func" and x.blocks}
        for side in (meant, made)
    ]
    if len(initializers[0]) != len(initializers[1]) or functions[0].keys() != functions[1].keys():
        raise UnprovableError("other functions")
    return [
        *zip(*initializers, strict=True),
        *((x, functions[1][name]) for name, x in functions[0].items()),
    ]


def _stores_arrays(initializer: Operation) -> bool:
    return any(
        x.name == "util.global.store" and ": (!stream.resource" in x.text
        for x in operations_of(initializer.blocks)
    )


def _note_globals(
    values: Values,
    execution: Execution,
    globals_: dict[str, Contents],
    found: list[Violation],
) -> None:
    """Checks that a function has stored in globals the values that it means to store."""
    held = execution.stored
    facts: dict[str, list[Fact]] = {name: [] for name in held}
    for operation in values.order:
        if operation.name != "util.global.store" or ": (!stream.resource" not in operation.text:
            continue
        name = operation.symbol("global")
        pieces = values.pieces(operation.operands[0])
        places = [x for holder, place in held.items() for x in _found_in(holder, place, pieces)]
        if not places:
            text = f"{name} does not hold what is stored there"
            found.append(Violation("value", text, operation.name))
        for holder, start, end in places:
            facts[holder].append(Fact(start, end, GLOBAL + name, start))
    for holder, known in facts.items():
        globals_[holder] = Contents(tuple(known))


def _found_in(holder: str, place: Place, pieces: tuple[Piece, ...]) -> list[tuple[str, int, int]]:

    contents = place.buffer.contents
    real = next((x for x in pieces if x.atom is not None), None)
    places = [place.offset]
    if real is not None:
        places += [x.base + real.offset - real.start for x in contents.facts if x.atom == real.atom]
    found = []
    for at in dict.fromkeys(places):
        length = length_there(place.buffer, at, pieces)
        if length:
            found.append((holder, at - place.offset, at - place.offset + length))
    return found
