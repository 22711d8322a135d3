"""Compiled programs as files: whether one is whole.

A binary of IREE holds machine code, and one that is damaged ends the process that runs it. What
does not live here: loading it (`runtime/calls/executable.py`).
"""

from __future__ import annotations

import io
import zipfile
import zlib

from axir.runtime.errors import LoadError

_ZIP_MAGIC = b"PK\x03\x04"


def check_binary(binary: bytes, name: str) -> None:
    """Refuses a damaged binary.

    IREE writes binaries as zip archives, whose checksums cover everything; one that is only the
    table inside of such an archive is checked by IREE alone.

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
