"""Proves of a program that each read sees what the program means: `violations`.

The compiler is stopped twice in IREE's stream dialect. The first time the program is scheduled, and
an array is a value: what an operation reads is what another one has computed. The second time it is
the same program with memory: ranges of buffers, which are allocated, written, read, used again and
freed, and time points that say what waits for what. This folder runs the second one on what it
knows of each byte, and looks whether each read finds what it should by the first one, and waits for
it. `docs/iree.md` says what that does not prove.

`reading.py` reads both, `values.py` says what is meant, `contents.py` and `state.py` hold what is
known of memory, `execution.py` runs operations, `blocks.py` follows branches, `matching.py` says
which operation is which. Elsewhere: where the compiler stops, and what becomes of a violation
(`invoker.py`).
"""

from __future__ import annotations

from .proof import UnprovableError, Violation, violations

__all__ = ["UnprovableError", "Violation", "violations"]
