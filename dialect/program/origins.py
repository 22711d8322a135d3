"""The origins of arrays that were computed, not recorded, while a function was traced.

A trace holds such an array as a constant. Some code must know its origin, such as the proof that a
function treats rows one by one. That code lets the thread keep origins while it traces
(`keeping_origins`).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import NamedTuple

from axir.dialect.core.annotations import Params
from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.context import current_location
from axir.dialect.core.state import state

from .equation import Equation, Literal, MadeEquation, Var
from .operation import Operation
from .rules import Operand, Results


class Origin(NamedTuple):
    """The op that computed an array.

    Attributes:
        equation: The op, of literals.
        place: Which of its results the array is.
    """

    equation: Equation
    place: int


# By id, as long as the array lives: arrays are unhashable.
_origins: dict[int, tuple[weakref.ref[ConcreteArray], Origin | None]] = {}


def keep_origin(
    primitive: Operation, operands: Sequence[Operand], params: Params, results: Results
) -> None:
    """Keeps the op that computed arrays, as long as the arrays live."""
    values = list(results) if primitive.multiple_results else [results]
    made = [x for x in values if type(x) is ConcreteArray]
    if len(made) < len(values):
        return
    equation = MadeEquation(
        [Literal(x) for x in operands],
        [Var(x.type) for x in made],
        primitive,
        params,
        current_location(),
    )
    for place, x in enumerate(made):
        _keep(x, Origin(equation, place))


def note_computed(array: ConcreteArray) -> ConcreteArray:
    """Notes that an array was computed, but not by an op; returns the array."""
    if state.shows_captures:
        _keep(array, None)
    return array


def _keep(array: ConcreteArray, origin: Origin | None) -> None:
    _origins[id(array)] = weakref.ref(array, _forgetting(id(array))), origin


def _forgetting(key: int) -> Callable[[weakref.ref[ConcreteArray]], None]:
    def forget(_: weakref.ref[ConcreteArray]) -> None:
        _origins.pop(key, None)

    return forget


def origin_of(array: ConcreteArray) -> Origin | None:
    """Returns the op that computed an array, if it was kept."""
    found = _origins.get(id(array))
    return found[1] if found is not None and found[0]() is array else None


def is_computed(array: ConcreteArray) -> bool:
    """Tells whether an array is noted as computed."""
    found = _origins.get(id(array))
    return found is not None and found[0]() is array
