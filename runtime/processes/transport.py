"""Carries bytes among the processes of a mesh: one transport for each mesh, used by one thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from axir.dialect.core.annotations import HostArray

from .member import Patience


class Transport(Protocol):
    """Carries bytes among some processes, which all make the same calls in the same order.

    Attributes:
        processes: Their numbers, ascending.
    """

    processes: tuple[int, ...]

    def all_gather(self, part: HostArray, patience: Patience) -> HostArray:
        """Returns what all processes pass, in their order.

        Args:
            part: Bytes, the same number in each process.
            patience: Called while this one waits; it raises if the others do not come.

        Returns:
            Bytes of shape `(processes, bytes)`, which the next call may overwrite.
        """
        ...

    def all_to_all(
        self, parts: Sequence[HostArray], sizes: Sequence[int], patience: Patience
    ) -> list[HostArray]:
        """Returns the bytes that each process has for this one, in their order.

        Args:
            parts: Bytes for each process.
            sizes: How many bytes come from each.
            patience: Called while this one waits; it raises if the others do not come.
        """
        ...
