"""The tables of traced functions, so that `clear_caches` finds them all."""

from __future__ import annotations

from typing import Protocol, TypeVar


class Table(Protocol):
    """An object that can be emptied."""

    def clear(self) -> None:
        """Empties it."""
        ...


_Table = TypeVar("_Table", bound=Table)
_tables: list[Table] = []


def cleared_with_caches(table: _Table) -> _Table:
    """Returns a table, which `clear_tables` will empty from now on."""
    _tables.append(table)
    return table


def clear_tables() -> None:
    """Empties all tables."""
    for table in _tables:
        table.clear()
