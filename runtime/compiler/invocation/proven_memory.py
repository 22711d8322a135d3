"""Takes a module through IREE's phase `stream`, and proves the resulting accesses to memory.

Elsewhere: the proof (`proof/`), the passes (`stream_passes.py`), and the reaction to a wrong
program (`axir.runtime.compiler.compilation`).
"""

from __future__ import annotations

from collections.abc import Callable

from iree.compiler import ir

from .proof import UnprovableError, violations
from .stream_passes import allocate, finish, host_text, schedule

# Prefix of a message that is not an error: nothing could be proven about a program.
UNPROVEN = "not proven: "
_MOST_SHOWN = 3


class WrongMemoryError(Exception):
    """A program would read memory that does not hold the values that the program means."""


def give_memory(
    module: ir.Operation, verifies: bool, keeps_copies: bool, report: Callable[[str], None]
) -> None:
    """Takes a module from the phase `flow` to the end of the phase `stream`, in place.

    Args:
        module: The module.
        verifies: Whether to verify all operations after each pass.
        keeps_copies: Whether each operation that works in place works on a copy.
        report: Called with the reason if a program cannot be proven.

    Raises:
        WrongMemoryError: if a read may find something else than the program means.
    """
    schedule(module, verifies, keeps_copies)
    meant = host_text(module)
    allocate(module, verifies)
    try:
        found = violations(meant, host_text(module))
        if found:
            found = violations(meant, host_text(module, has_places=True))
    except UnprovableError as error:
        report(f"{UNPROVEN}{error}")
    else:
        if found:
            more = [f"and {len(found) - _MOST_SHOWN} more"] if len(found) > _MOST_SHOWN else []
            raise WrongMemoryError("; ".join([*map(str, found[:_MOST_SHOWN]), *more]))
    finish(module, verifies)
