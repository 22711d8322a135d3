"""Code that all programs share, kept where Python keeps the byte code of this folder.

Like byte code it is made of what stands here, of the version of llvmlite and of the processor, once
for a machine, and does not belong to the programs of a user: their cache may be empty, or theirs
alone. A folder that cannot be
written to costs a compilation and nothing else. What does not live here: the code
(`native.py`), and the programs that are kept (`runtime/compiler/cache.py`).
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import sys
import tempfile
from collections.abc import Callable

_SUFFIX = ".code"
_DIGEST_BYTES = 32


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
            return code
    code = make()
    if not sys.dont_write_bytecode:
        with contextlib.suppress(OSError):  # nobody may write here
            _write(path, hashlib.sha256(code).digest() + code)
    return code


def _write(path: str, content: bytes) -> None:
    """Writes a file so that who reads it meanwhile finds all of it or none."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(path))
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        # As readable as byte code is, which mkstemp's files are not.
        os.chmod(temporary, os.stat(__file__).st_mode & 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
