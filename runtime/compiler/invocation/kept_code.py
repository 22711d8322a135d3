"""Code that all programs share, cached in the folder of this package's byte code.

Like byte code, it depends on the sources here, the version of llvmlite and the processor, and is
made once for a machine. It does not belong to a user's programs, which may have an empty or a
private cache. A folder that cannot be written to costs a compilation and nothing else. Files that
no process has read for weeks belong to another version; they are deleted when a file is added.
Elsewhere: the code (`native.py`), and the cache of programs (`runtime/compiler/cache.py`).
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
# A file that has not been read for so long is deleted; a read is recorded once a day.
_KEPT_SECONDS = 4 * 7 * 24 * 3600
_DAY_SECONDS = 24 * 3600


def kept_code(name: str, source: bytes, make: Callable[[], bytes]) -> bytes:
    """Returns the code made from a source, from the disk if it has been made before.

    Args:
        name: The begin of the file's name, which makes a listing of the folder readable.
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
        with contextlib.suppress(OSError):  # the folder is read-only
            _write(path, hashlib.sha256(code).digest() + code)
            _delete_unread(folder)
    return code


def _note_reading(path: str) -> None:
    """Updates a file's time of modification, unless it is recent."""
    with contextlib.suppress(OSError):  # read-only folder, or file deleted elsewhere
        if time.time() - os.stat(path).st_mtime > _DAY_SECONDS:
            os.utime(path)


def _delete_unread(folder: str) -> None:
    """Deletes files that no process has read for weeks.

    A process that is reading one has it open, and reads on; a later one makes it again.
    """
    with os.scandir(folder) as entries:
        found = [entry.path for entry in entries if entry.name.endswith(_SUFFIX)]
    for path in found:
        with contextlib.suppress(OSError):  # another process was faster
            if time.time() - os.stat(path).st_mtime > _KEPT_SECONDS:
                os.unlink(path)


def _write(path: str, content: bytes) -> None:
    """Writes a file such that a concurrent reader finds all of it or none."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    folder, name = os.path.split(path)
    # If this process dies, the half-written file is deleted later, with other unread files.
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
