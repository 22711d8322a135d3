"""`KernelProgram`: a program that is kernels only, as plain data.

Elsewhere: making one from a module, and its machine code (`runtime/compiler/`); calling it
(`programs.py`).
"""

from __future__ import annotations

import dataclasses
import marshal
from dataclasses import dataclass

# The origin of an array, with its number: an argument of the program, a constant, an array that the
# program makes.
ARGUMENT, CONSTANT, RESULT = range(3)
Origin = tuple[int, int]
# Memory: the number of an array that the code takes, and a byte in it from which on.
Place = tuple[int, int]
# A kernel, its number of workgroups, and the memory of its bindings. The other kinds are: a copy:
# its number of bytes, its target and its source; a host function: its number, the memory of its
# operands, and the memory of its results; a jump: the number of the next step, either from the end
# of a loop to its begin, or conditional on the truth value at a place being false; a choice: the
# number of jumps that follow it, and the place of a 32-bit number that selects one; an exchange:
# pairs of slots, in which the first slot gets the address of the second one.
Step = tuple[str, int, tuple[Place, ...]]
COPY, HOST_CALL, JUMP, AGAIN = "", "host call", "jump", "again"
UNLESS, CHOOSE, EXCHANGE = "unless", "choose", "exchange"
KINDS = (COPY, JUMP, AGAIN, UNLESS, CHOOSE, EXCHANGE, HOST_CALL)
"""Steps that are no kernels."""
JUMPS = (JUMP, AGAIN, UNLESS)
"""Those whose number is that of a step."""


@dataclass(frozen=True)
class KernelProgram:
    """A program of kernels.

    Attributes:
        object_files: The machine code of its kernels; none if nothing is computed.
        arguments: Numbers of the arguments that the code takes, in order.
        constants: Names of dtypes, shapes and bytes of the constants, which it takes next.
        results: Names of dtypes and shapes of the arrays that it makes, which it takes then.
        space: Bytes of memory for its own use, which it takes last, if it is not 0.
        returns: Where the results of the program are from, in order.
        steps: The steps to run, in order, from the first one on.
        may_last: Whether it may run for long.
        libraries: Object files that programs share: the function that Python calls, and the
            functions that the machine code calls.
        slots: Places that steps exchange: they count as arrays, behind the last one.
        suits_one_thread: Whether two threads of IREE's do not make it faster.
    """

    object_files: tuple[bytes, ...]
    arguments: tuple[int, ...]
    constants: tuple[tuple[str, tuple[int, ...], bytes], ...]
    results: tuple[tuple[str, tuple[int, ...]], ...]
    space: int
    returns: tuple[Origin, ...]
    steps: tuple[Step, ...] = ()
    may_last: bool = False
    libraries: tuple[bytes, ...] = ()
    slots: tuple[Place, ...] = ()
    suits_one_thread: bool = False

    @property
    def stops(self) -> bool:
        """Tells whether its code returns before it is done, and is called again."""
        return any(name in (HOST_CALL, AGAIN) for name, _, _ in self.steps)

    def to_bytes(self) -> bytes:
        """Returns the program as the cache keeps it."""
        return marshal.dumps(tuple(getattr(self, x.name) for x in dataclasses.fields(self)))

    @staticmethod
    def from_bytes(content: bytes) -> KernelProgram:
        """Returns the program that was kept."""
        return KernelProgram(*marshal.loads(content))
