"""`KernelProgram`: a program that is kernels only, as plain data.

Elsewhere: how a module becomes one, and who makes machine code of it (`runtime/compiler/`), and
calls (`programs.py`).
"""

from __future__ import annotations

import dataclasses
import marshal
from dataclasses import dataclass

# Where an array is from, and which one of these: an argument of the program, a constant of its, an
# array that the program makes.
ARGUMENT, CONSTANT, RESULT = range(3)
Origin = tuple[int, int]
# Memory: the number of an array that the code takes, and a byte in it from which on.
Place = tuple[int, int]
# A kernel, how many workgroups of it run, and the memory of its bindings. Or one of these:
# a copy: how many bytes, where they go and where they come from;
# a function of the host: its number, the memory of its operands, and that of its results;
# a jump to the step of a number, from the end of a loop to its begin, or where a truth value does
# not hold, which lies in a place;
# a choice among so many jumps that follow, by a number, of 32 bits, that lies in a place;
# an exchange: pairs of slots, of which the first one has the address of the second one from now on.
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
        steps: What runs, in order, from the first one on.
        may_last: Whether it may run for long.
        libraries: Object files of what programs share: the function that Python calls, and those
            that the machine code calls.
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
