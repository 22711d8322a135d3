"""Items of a part of the report; they are tried one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from axir.runtime import Device

from .rows import Row


def _nothing(device: Device) -> None:
    """Compiles nothing."""


@dataclass(frozen=True)
class Item:
    """One thing to try.

    Attributes:
        name: Its description.
        run: Tries it on a device and returns its rows. An exception becomes a row as well.
        prepare: Compiles its programs for a device that need not be there.
    """

    name: str
    run: Callable[[Device], list[Row]]
    prepare: Callable[[Device], object] = _nothing


Items = Callable[[bool], Iterator[Item]]
"""What yields a part's items; told whether they are to be tiny, for software devices."""
