"""Code that all programs share, kept where Python keeps the byte code of this folder.

Like byte code it is made of what stands here, of the version of llvmlite and of the processor, once
for a machine, and does not belong to the programs of a user: their cache may be empty, or theirs
alone. A folder that cannot be written to costs a compilation and nothing else. What nobody has read
for weeks, since it belongs to another version, goes when something is added. Elsewhere: the code
(`native.py`), and the programs that are kept (`runtime/compiler/cache.py`).
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import sys
import tempfile
import time
from collections.abc import Callable

_SUFFIX = ".code"
_DIGEST_BYTES = 32
# What has not been read for so long is deleted; that it is read is written down once a day.
_KEPT_SECONDS = 4 * 7 * 24 * 3600
_DAY_SECONDS = 24 * 3600


def kept_code(name: str, source: bytes, make: Callable[[], bytes]) -> bytes:
    """Returns what is made of a source, from the disk if it has been made before.

    Args:
        name: What a person who looks into the folder reads.
        source: All that the code depends on.
        make: Makes it.
    """
    try:
        folder = os.path.dirname(importlib.util.cache_from_source(__file__))
    except NotImplementedError:  # this Python keeps no byte code
        return make()
    path = os.path.join(folder, f"{name}-{hashlib.sha256(source).hexdigest()[:20]}{_SUFFIX}")
    with contextlib.suppress(OSError), open(path, "rb") as file:
        digest, code = file.read(_DIGEST_BYTES), file.read()
        if hashlib.sha256(code).digest() == digest:
            _note_reading(path)
            return code
    code = make()
    if not sys.dont_write_bytecode:
        with contextlib.suppress(OSError):  # nobody may write here
            _write(path, hashlib.sha256(code).digest() + code)
            _delete_unread(folder)
    return code


def _note_reading(path: str) -> None:
    """Has a file count as one that was written now, unless that is so already."""
    with contextlib.suppress(OSError):  # nobody may write here, or another process has deleted it
        if time.time() - os.stat(path).st_mtime > _DAY_SECONDS:
            os.utime(path)


def _delete_unread(folder: str) -> None:
    """Deletes files that nobody has read for weeks.

    Who reads one just now has it open, and reads on; who comes later makes it again.
    """
    with os.scandir(folder) as entries:
        found = [entry.path for entry in entries if entry.name.endswith(_SUFFIX)]
    for path in found:
        with contextlib.suppress(OSError):  # another process was faster
            if time.time() - os.stat(path).st_mtime > _KEPT_SECONDS:
                os.unlink(path)


def _write(path: str, content: bytes) -> None:
    """Writes a file so that who reads it meanwhile finds all of it or none."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    folder, name = os.path.split(path)
    # If this process dies, what is half written goes with what nobody reads.
    handle, temporary = tempfile.mkstemp(prefix=f"{name}-", suffix=_SUFFIX, dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        # As readable as byte code is, which mkstemp's files are not.
        os.chmod(temporary, os.stat(__file__).st_mode & 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
