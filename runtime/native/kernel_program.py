"""`KernelProgram`: a program that is one kernel, as plain data.

What does not live here: how a module becomes one (`runtime/compiler/kernel_source.py`), and how it
runs (`programs.py`).
"""

from __future__ import annotations

import dataclasses
import marshal
from dataclasses import dataclass

# Where an array is from, and which one of these: an argument of the program, a constant of its, a
# result of the kernel.
ARGUMENT, CONSTANT, RESULT = range(3)
Origin = tuple[int, int]


@dataclass(frozen=True)
class KernelProgram:
    """A program of one kernel.

    Attributes:
        object_file: The machine code; empty if nothing is computed.
        bindings: Where the arrays are from that the kernel takes, in order.
        constants: Names of dtypes, shapes and bytes of constants.
        results: Names of dtypes and shapes of what the kernel writes.
        returns: Where the results of the program are from, in order.
        has_loops: Whether it may run for long.
    """

    object_file: bytes
    bindings: tuple[Origin, ...]
    constants: tuple[tuple[str, tuple[int, ...], bytes], ...]
    results: tuple[tuple[str, tuple[int, ...]], ...]
    returns: tuple[Origin, ...]
    has_loops: bool = False

    def to_bytes(self) -> bytes:
        """Returns the program as the cache keeps it."""
        return marshal.dumps(tuple(getattr(self, x.name) for x in dataclasses.fields(self)))

    @staticmethod
    def from_bytes(content: bytes) -> KernelProgram:
        """Returns the program that was kept."""
        return KernelProgram(*marshal.loads(content))
