"""The state at one place of a program: buffers, their contents, and the work that is done.

Work of a device is an event, and events are bits: a time point stands for the events that are done
when it is reached, and the host has a set of the events it has waited for. Elsewhere: the effects
of operations (`execution.py`, `commands.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from .contents import Contents, Fact

# The end of buffers, for accesses to a whole buffer.
END = 1 << 62


class Violation(NamedTuple):
    """A read that may see another value than the program means, or memory that may be gone.

    Attributes:
        kind: `value`, `race`, `overlap`, `freed` or `result`.
        text: The violation, in a sentence.
        operation: The operation to which it happens.
        other: The other operation that is involved, if known.
    """

    kind: str
    text: str
    operation: str
    other: str = ""

    def __str__(self) -> str:
        return f"{self.operation} {self.text}"


class Buffer:
    """A piece of memory.

    Attributes:
        contents: The known facts about its bytes.
        accesses: The events that read or write its parts, by first byte, last byte, and whether
            they write.
        is_freed: Whether it may have been freed.
        exported: The parts that belong to the caller already.
    """

    __slots__ = ("accesses", "contents", "exported", "is_freed")

    def __init__(self, contents: Contents | None = None) -> None:
        self.contents = contents or Contents()
        self.accesses: dict[tuple[int, int, bool], int] = {}
        self.is_freed = False
        self.exported: tuple[tuple[int, int], ...] = ()


class Place(NamedTuple):
    """Where a value of the host program points to."""

    buffer: Buffer
    offset: int
    is_argument: bool = False


class State:
    """Buffers and time points by the names of values, and the events that the host waited for."""

    __slots__ = ("done", "host", "next_event", "numbers", "places")

    def __init__(self) -> None:
        self.places: dict[str, Place] = {}
        self.done: dict[str, int] = {}
        self.numbers: dict[str, int] = {}
        self.host = 0
        self.next_event = 1

    def event(self) -> int:
        """Returns a new event."""
        event = self.next_event
        self.next_event <<= 1
        return event

    def before(self, time_points: Iterable[str]) -> int:
        """Returns the events that are done when time points are reached, given the host's waits."""
        mask = self.host
        for name in time_points:
            mask |= self.done.get(name, 0)
        return mask

    def key(self, names: Sequence[str]) -> tuple[tuple[int, int], ...]:
        """Returns which of some values point into the same buffer, and where."""
        numbers: dict[Buffer, int] = {}
        found = []
        for name in names:
            place = self.places.get(name)
            if place is not None:
                found.append((numbers.setdefault(place.buffer, len(numbers)), place.offset))
        return tuple(found)

    def buffers(self) -> list[Buffer]:
        """Returns all buffers once, in the order of the values that point to them."""
        return list(dict.fromkeys(place.buffer for place in self.places.values()))

    def entered(
        self,
        arrays: dict[str, str],
        points: dict[str, str],
        translate: Callable[[Buffer, tuple[int, ...]], tuple[Fact, ...]],
    ) -> State:
        """Returns the state at the begin of a block.

        Args:
            arrays: The values that the block may use, and their names here.
            points: The same for time points.
            translate: Restates the facts about a buffer in the names of the block; its second
                argument is the offsets at which values point into the buffer.
        """
        state = State()
        copies: dict[Buffer, Buffer] = {}
        used: dict[Buffer, list[int]] = {}
        for old in arrays.values():
            place = self.places[old]
            used.setdefault(place.buffer, []).append(place.offset)
        pending: dict[frozenset[str], int] = {}
        for new, old in arrays.items():
            place = self.places[old]
            if place.buffer not in copies:
                facts = translate(place.buffer, tuple(used[place.buffer]))
                copy = copies[place.buffer] = Buffer(Contents(facts))
                copy.is_freed = place.buffer.is_freed
                copy.exported = place.buffer.exported
                self._pass_on(place.buffer, copy, points, pending, state)
            state.places[new] = Place(
                copies[place.buffer], place.offset, new != old or place.is_argument
            )
        for signature, event in pending.items():
            for name in signature:
                state.done[name] = state.done.get(name, 0) | event
        for name in points:
            state.done.setdefault(name, 0)
        return state

    def _pass_on(
        self,
        buffer: Buffer,
        copy: Buffer,
        points: dict[str, str],
        pending: dict[frozenset[str], int],
        state: State,
    ) -> None:
        """Keeps the accesses that the host has not waited for, as events of the new state."""
        for access, event in buffer.accesses.items():
            if not event & ~self.host:
                continue
            signature = frozenset(
                new for new, old in points.items() if not event & ~self.done.get(old, 0)
            )
            if signature not in pending:
                pending[signature] = state.event()
            copy.accesses[access] = pending[signature]

    def joined(self, other: State) -> State | None:
        """Returns the facts common to two states with the same key; None if they are this one's."""
        changed = False
        merged = State()
        merged.numbers = self.numbers
        copies: dict[Buffer, Buffer] = {}
        pending: dict[frozenset[str], int] = {}
        for name, place in self.places.items():
            buffer, second = place.buffer, other.places[name].buffer
            if buffer not in copies:
                copy = copies[buffer] = Buffer(buffer.contents.meet(second.contents))
                copy.is_freed = buffer.is_freed or second.is_freed
                copy.exported = tuple(dict.fromkeys((*buffer.exported, *second.exported)))
                changed |= (
                    copy.contents.facts != buffer.contents.facts
                    or copy.is_freed != buffer.is_freed
                    or copy.exported != buffer.exported
                )
                changed |= self._join_accesses(buffer, second, copy, other, (pending, merged))
            merged.places[name] = place._replace(buffer=copies[buffer])
        for signature, event in pending.items():
            for name in signature:
                merged.done[name] = merged.done.get(name, 0) | event
        for name in self.done:
            merged.done.setdefault(name, 0)
        return merged if changed else None

    def _join_accesses(
        self,
        first: Buffer,
        second: Buffer,
        copy: Buffer,
        other: State,
        made: tuple[dict[frozenset[str], int], State],
    ) -> bool:
        pending, state = made
        changed = False
        for access in dict.fromkeys((*first.accesses, *second.accesses)):
            mine = self._signature(first.accesses.get(access, 0))
            both = mine & other._signature(second.accesses.get(access, 0))
            changed |= access not in first.accesses or both != mine
            if both not in pending:
                pending[both] = state.event()
            copy.accesses[access] = pending[both]
        return changed

    def _signature(self, event: int) -> frozenset[str]:
        return frozenset(name for name, mask in self.done.items() if not event & ~mask)
