"""What carries bytes among the processes of a mesh; one for each mesh, used by one thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from axir.dialect.core.annotations import HostArray

from .member import Patience


class Transport(Protocol):
    """What carries bytes among some processes, each of which calls the same in the same order.

    Attributes:
        processes: Which they are, ascending.
    """

    processes: tuple[int, ...]

    def all_gather(self, part: HostArray, patience: Patience) -> HostArray:
        """Returns what all processes pass, in their order.

        Args:
            part: Bytes, the same number in each process.
            patience: What is asked while this one waits.

        Returns:
            Bytes of shape `(processes, bytes)`, which the next call may overwrite.
        """
        ...

    def all_to_all(
        self, parts: Sequence[HostArray], sizes: Sequence[int], patience: Patience
    ) -> list[HostArray]:
        """Returns what each process has for this one, in their order.

        Args:
            parts: Bytes for each process.
            sizes: How many bytes come from each.
            patience: What is asked while this one waits.
        """
        ...
