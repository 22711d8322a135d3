"""The tables of traced functions, so that `clear_caches` finds them all."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import TypeVar

from axir.dialect.core.annotations import UserObject

_Table = TypeVar("_Table", bound=MutableMapping)
_tables: list[MutableMapping[UserObject, UserObject]] = []


def cleared_with_caches(table: _Table) -> _Table:
    """Returns a table, which `clear_tables` will empty from now on."""
    _tables.append(table)
    return table


def clear_tables() -> None:
    """Empties all tables."""
    for table in _tables:
        table.clear()
