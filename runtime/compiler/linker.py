"""The linker that the compiler calls for programs of the CPU.

Elsewhere: calling the compiler (`compilation.py`).
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import stat
import tempfile
from functools import cache
from pathlib import Path

from .cache import cache_directory
from .invocation.library import ctypes_dl, keeping_logging

_LOGGER = logging.getLogger(__name__)


@cache
def linker_flags() -> tuple[str, ...]:
    """Names the linker: the system's `ld` (0.15 s per program), else the wheel's (0.19 s)."""
    linker = shutil.which("ld") or str(_bundled_linker())
    return (f"--iree-llvmcpu-system-linker-path={linker}",)


def _bundled_linker() -> Path:
    """Writes a script that runs the wheel's linker the way IREE calls a system linker."""
    with keeping_logging():
        program = Path(ctypes_dl._probe_iree_compiler_dylib()).with_name("iree-lld")
    text = f'#!/bin/sh\nexec "{program}" -flavor gnu "$@"\n'
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    for folder in (cache_directory(), Path(tempfile.gettempdir()) / f"axir-{os.getuid()}"):
        script = folder / f"linker-{digest}.sh"
        try:
            if not (script.exists() and script.read_text() == text):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                temporary = folder / f"linker-{os.getpid()}.temporary"
                temporary.write_text(text)
                temporary.chmod(stat.S_IRWXU)
                temporary.replace(script)
            return script
        except OSError as error:
            _LOGGER.info("no linker script in %s: %s", folder, error)
    return program
