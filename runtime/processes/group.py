"""`current()`: the processes that compute together, of which a process alone is the only one.

What does not live here: how several processes find each other (`coordination.py`).
"""

from __future__ import annotations

from typing import Protocol


class Group(Protocol):
    """Processes that compute together.

    Attributes:
        index: Which of them this is.
        count: How many there are.
    """

    index: int
    count: int

    def all_gather(self, content: bytes, name: str) -> list[bytes]:
        """Returns what all processes pass, in their order; each waits for all.

        Args:
            content: What this one has to say.
            name: What is agreed on. Calls with different names do not wait for each other, those
                with the same are told apart by their order.
        """
        ...


class Alone:
    """A process that computes alone."""

    index = 0
    count = 1

    def all_gather(self, content: bytes, name: str) -> list[bytes]:
        """Returns what is passed, the only thing there is."""
        return [content]


_current: Group = Alone()


def current() -> Group:
    """Returns the processes that compute together.

    >>> current().index, current().count
    (0, 1)
    """
    return _current


def become(group: Group) -> None:
    """Makes processes those that compute together."""
    global _current
    _current = group
