"""The parts of the report, in the order of their worth, and how long each may take."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator
from dataclasses import dataclass

from .items import Item
from .rows import Row

__all__ = ["PARTS", "Part", "Row"]


@dataclass(frozen=True)
class Part:
    """A part of the report.

    Attributes:
        name: Its name on the command line.
        title: The title above its rows.
        source: The module and the function that yields its items.
        limit: Most seconds for all of it.
        patience: Most seconds for an item.
        stage: Parts of one stage run side by side.
        needs_device: Whether its items get the device.
        column: For measuring parts, the measured library.
    """

    name: str
    title: str
    source: tuple[str, str]
    limit: float
    patience: float
    stage: int
    needs_device: bool = True
    column: str = ""

    def items(self, is_tiny: bool) -> Iterator[Item]:
        """Yields its items."""
        module, function = self.source
        source = importlib.import_module(f"{__package__}.{module}")
        number = self.name.rpartition("-")[2]
        make = getattr(source, function)
        if number.isdecimal():
            make = functools.partial(make, int(number) - 1)
        return make(is_tiny)


def _parts() -> Iterator[Part]:
    yield Part("machine", "The machine", ("machine", "machine"), 60, 40, 0, needs_device=False)
    yield Part("device", "The device", ("machine", "device"), 60, 40, 1)
    for number in (1, 2, 3):
        title = f"The op table, batch {number} of 3"
        yield Part(f"ops-{number}", title, ("ops", "batch"), 150, 40, 2)
    yield Part("programs", "Programs with gradients", ("programs", "programs"), 90, 30, 3)
    yield Part("behavior", "Memory, calls, the demo", ("behavior", "behavior"), 90, 60, 3)
    yield Part("times", "Times", ("times", "by_axir"), 120, 40, 4, column="axir")
    yield Part("torch", "Times of PyTorch", ("times", "by_torch"), 60, 30, 5, False, "PyTorch")
    yield Part("jax", "Times of JAX", ("times", "by_jax"), 60, 30, 6, False, "JAX")
    yield Part("tests", "Tests", ("behavior", "tests"), 120, 100, 7, needs_device=False)


PARTS = {part.name: part for part in _parts()}
