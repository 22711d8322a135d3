"""Compiled programs as files: the linker that makes them, whether one is whole, and its CPUs.

A binary of IREE holds machine code, and one that is damaged ends the process that runs it.
Elsewhere: loading it (`runtime/calls/executable.py`), calling the compiler (`compilation.py`).
"""

from __future__ import annotations

import hashlib
import io
import logging
import os
import re
import shutil
import stat
import tempfile
import zipfile
import zlib
from functools import cache
from pathlib import Path

from axir.dialect.core.errors import ParameterError
from axir.runtime.compiler.invocation.compiler_library import ctypes_dl, keeping_logging
from axir.runtime.errors import LoadError

from .architectures import architecture_of, host_architecture, lacking_features
from .cache import cache_directory

# IREE records a program's target in the binary, to name it in the error when no device fits.
_MACHINE = re.compile(rb'"llvm-cpu", "[^"]*", \{([^}]*)\}')
_ENTRY = re.compile(rb'(target_triple|cpu_features) = "([^"]*)"')
_ZIP_MAGIC = b"PK\x03\x04"


def check_binary(binary: bytes, name: str) -> None:
    """Refuses a damaged binary.

    IREE writes binaries as zip archives with a checksum for each file. A binary that is only the
    table inside such an archive has no checksum; IREE checks it when it loads it.

    Args:
        binary: the content of a `.vmfb` file.
        name: what to call it in the error.

    Raises:
        LoadError: the checksums differ, or the archive is not whole.
    """
    file = io.BytesIO(binary)
    if not binary.startswith(_ZIP_MAGIC) and not zipfile.is_zipfile(file):
        return
    try:
        with zipfile.ZipFile(file) as archive:
            damaged = archive.testzip()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, RuntimeError, zlib.error):
        damaged = name
    if damaged is not None:
        raise LoadError(
            f"The compiled program {name} is damaged: its content does not have the checksum that "
            "was written with it.",
            "It is cut off or changed: copy it again, or compile it again.",
        )


def check_machine(binary: bytes, name: str) -> None:
    """Refuses a program with code that this CPU cannot run: such code would end the process.

    Args:
        binary: the content of a `.vmfb` file.
        name: what to call it in the error.

    Raises:
        LoadError: it is for another architecture, or for CPUs with features that this one lacks.
    """
    found = _MACHINE.search(binary)
    if found is None:  # for a GPU, or without any code
        return
    entries = {key: value.decode() for key, value in _ENTRY.findall(found[1])}
    try:
        architecture = architecture_of(entries.get(b"target_triple", ""))
    except ParameterError:
        return  # IREE checks this when it loads the program
    if architecture != host_architecture():
        raise LoadError(
            f"The compiled program {name} is for CPUs of another kind: {architecture}. This "
            f"machine's is {host_architecture()}.",
            "Run it there, or compile the module for this machine.",
        )
    lacking = lacking_features(entries.get(b"cpu_features", ""))
    if lacking:
        raise LoadError(
            f"The compiled program {name} is for another CPU: it needs {' '.join(lacking)}, which "
            "this machine's CPU lacks.",
            "Compile the module for this machine, with --target-cpu host or generic.",
        )


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
