"""Takes a module through IREE's phase `stream`, and proves what becomes of its arrays.

Elsewhere: the proof (`proof/`), the passes (`stream_passes.py`), and what is done about a program
that is wrong (`axir.runtime.compiler.compilation`).
"""

from __future__ import annotations

from collections.abc import Callable

from iree.compiler import ir

from .proof import UnprovableError, violations
from .stream_passes import allocate, finish, host_text, schedule

# What a message begins with that is no error: a program of which nothing is known.
UNPROVEN = "not proven: "
_MOST_SHOWN = 3


class WrongMemoryError(Exception):
    """A program would read memory that does not hold what it means."""


def give_memory(
    module: ir.Operation, verifies: bool, keeps_copies: bool, report: Callable[[str], None]
) -> None:
    """Takes a module from the phase `flow` to the end of the phase `stream`, in place.

    Args:
        module: The module.
        verifies: Whether to look after each pass whether all operations are legal.
        keeps_copies: Whether all that works in place works on copies of its own.
        report: Called with why a program cannot be proven, if so.

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
