"""The memory of a program: its free bytes, and the arrays that it exchanges.

Elsewhere: the places of arrays (`step_writer.py`).
"""

from __future__ import annotations

from axir.runtime.native.kernel_program import Place

_ALIGNMENT = 64


def rounded(size: int) -> int:
    """Returns a number of bytes, rounded up to the begin of the next array.

    >>> rounded(65)
    128
    """
    return -(-size // _ALIGNMENT) * _ALIGNMENT


class Space:
    """Memory for arrays that only a program sees; arrays reuse the places of earlier ones.

    Attributes:
        size: The bytes needed.
    """

    def __init__(self) -> None:
        self.size = 0
        self._free: list[tuple[int, int]] = []

    def take(self, size: int) -> int:
        """Returns a place with so many free bytes: the smallest free one, or the end."""
        fitting = [x for x in self._free if x[1] >= size]
        if not fitting:
            return self.take_new(size)
        start, length = min(fitting, key=lambda x: x[1])
        self._free.remove((start, length))
        if length > size:
            self._free.append((start + size, length - size))
        return start

    def take_new(self, size: int) -> int:
        """Returns a place of so many bytes that has held no array."""
        start, self.size = self.size, self.size + size
        return start

    def give_back(self, start: int, size: int) -> None:
        """Frees a place, and joins it with free neighbours."""
        for other in [x for x in self._free if x[0] + x[1] == start or start + size == x[0]]:
            self._free.remove(other)
            start, size = min(start, other[0]), size + other[1]
        self._free.append((start, size))


class Group:
    """Places of arrays that loops exchange.

    They are freed together, because the place of each array is not known after the exchanges.

    Args:
        space: The space that the places are in.
    """

    def __init__(self, space: Space):
        self._space = space
        self._places: list[tuple[int, int]] = []
        self._holders = 0
        self._other: Group | None = None

    @property
    def whole(self) -> Group:
        """The group that this one was merged into, or itself."""
        return self if self._other is None else self._other.whole

    def join(self, other: Group) -> None:
        """Merges another group into this one."""
        mine, others = self.whole, other.whole
        if mine is not others:
            mine._places += others._places
            mine._holders += others._holders
            others._other = mine

    def take_new(self, size: int) -> int:
        """Returns a place of so many bytes that has held no array."""
        start = self._space.take_new(size)
        self.add(start, size)
        return start

    def add(self, start: int, size: int) -> None:
        """Takes a place into the group."""
        self.whole._places.append((start, size))

    def hold(self) -> None:
        """Keeps the group for a loop, or an array."""
        self.whole._holders += 1

    def let_go(self) -> None:
        """Undoes `hold`; the last call frees the places."""
        group = self.whole
        group._holders -= 1
        if not group._holders:
            for start, size in group._places:
                self._space.give_back(start, size)
            group._places = []


class Slots:
    """Places that change: code finds the address of each in a list, and exchanges addresses.

    Args:
        first: The number of the first slot.

    Attributes:
        places: Their initial places.
        exchanged: The numbers of the slots that are exchanged.
    """

    def __init__(self, first: int):
        self.places: list[Place] = []
        self.exchanged: set[int] = set()
        self._sizes: list[int] = []
        self._first = first

    def add(self, place: Place, size: int) -> Place:
        """Makes a slot of a place of so many bytes, and returns its place from now on."""
        self.places.append(place)
        self._sizes.append(size)
        return self._first + len(self.places) - 1, 0

    def move(self, number: int, place: Place) -> None:
        """Gives a slot another initial place."""
        self.places[number - self._first] = place

    def size_of(self, number: int) -> int:
        """Returns the bytes of a slot."""
        return self._sizes[number - self._first]
