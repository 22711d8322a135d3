"""Proves that each read of a program sees the value that the program means: `violations`.

The compiler is stopped twice in IREE's stream dialect. The first time, the program is scheduled and
arrays are values: an operation reads the results of other operations. The second time, it is the
same program with memory: ranges of buffers, which are allocated, written, read, reused and freed,
and time points that order the work. This folder executes the second program symbolically. It tracks
the contents of each byte, and checks that each read finds the bytes that the first program means,
and waits for them. `docs/iree.md` says what that does not prove.

`reading.py` reads both programs, `values.py` gives the meaning of values, `contents.py` and
`state.py` hold the facts about memory, `execution.py` runs operations, `blocks.py` follows
branches, `matching.py` pairs the operations of the two programs. Elsewhere: where the compiler
stops, and the reaction to a violation (`invoker.py`).
"""

from __future__ import annotations

from .proof import UnprovableError, Violation, violations

__all__ = ["UnprovableError", "Violation", "violations"]
