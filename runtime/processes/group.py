"""`current()`: the processes that compute together, of which a process alone is the only one.

Elsewhere: how several processes find each other (`coordination.py`).
"""

from __future__ import annotations

from typing import Protocol

from axir.dialect.core.annotations import UserObject


class Group(Protocol):
    """Processes that compute together.

    Attributes:
        index: Which of them this is.
        count: How many there are.
        infos: What is known of each: how many CPU `devices` it has.
    """

    index: int
    count: int
    infos: list[dict[str, UserObject]]

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

    def __init__(self) -> None:
        self.index = 0
        self.count = 1
        self.infos: list[dict[str, UserObject]] = [{}]

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
