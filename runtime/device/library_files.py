"""Removes the files that IREE creates to load machine code, and leaves behind.

The system's loader reads libraries only from files. For each program that it loads, IREE 3.13 makes
an empty file with a unique name. It writes the library to another file, named after the first, and
removes that one once the library is loaded; it leaves the empty file behind, open. A process was
refused its thousandth program ("unable to open file"), and folders for temporary files filled with
names.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

_OPEN_FILES = Path("/proc/self/fd")
_NAME = re.compile(r"/iree_dylib_\w{6}$")


def close_library_files() -> None:
    """Closes and removes the files that loading has left open in this process.

    IREE neither reads nor closes these files again, so they may be removed while another thread
    loads. If the system does not list a process's files under `/proc`, they stay.
    """
    try:
        descriptors = os.listdir(_OPEN_FILES)
    except OSError:
        return
    for descriptor in descriptors:
        # A listed file may have been closed since, by this function in another thread.
        with suppress(OSError):
            path = os.readlink(_OPEN_FILES / descriptor)
            if _NAME.search(path):
                # Whoever removes the name owns the number, which means another file once closed.
                os.unlink(path)
                os.close(int(descriptor))
