"""A fingerprint of axir's code: another version may compile a module to another program.

Elsewhere: the other parts of a program's key (`compilation.py`).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

# The packages that determine a program; the frontend only decides which program.
_ROOMS = ("dialect", "passes", "runtime")


@cache
def code_fingerprint() -> str:
    """Returns a digest of when each file of the code was changed last, and of their sizes."""
    base = Path(__file__).parents[2]
    lines = sorted(line for room in _ROOMS for line in _sources(f"{base}/{room}"))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


@cache
def invocation_fingerprint() -> str:
    """Returns a digest of the code that rewrites the compiler's intermediate and final results.

    It is part of a program's key in the disk cache, because other code makes another program.
    """
    folder = Path(__file__).parent / "invocation"
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _sources(folder: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            name = entry.name
            if name.endswith(".py"):
                status = entry.stat()
                yield f"{entry.path} {status.st_mtime_ns} {status.st_size}"
            elif "." not in name and name != "__pycache__":
                yield from _sources(entry.path)
