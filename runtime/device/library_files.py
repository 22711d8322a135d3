"""The files by which IREE loads machine code, and does not give back.

The system's loader reads libraries from files alone. IREE 3.13 makes an empty file, whose name is
unique, for each program that it loads; writes the library to another one, named after it, which it
removes once it is loaded; and leaves the empty one behind, open. A process was refused its
thousandth program ("unable to open file"), and folders for temporary files filled with names.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

_OPEN_FILES = Path("/proc/self/fd")
_NAME = re.compile(r"/iree_dylib_\w{6}$")


def close_library_files() -> None:
    """Closes and removes what loading left open in this process.

    IREE neither reads nor closes these files again, so one may go while another thread loads. Where
    the system does not list a process's files under `/proc`, they stay.
    """
    try:
        descriptors = os.listdir(_OPEN_FILES)
    except OSError:
        return
    for descriptor in descriptors:
        # What is listed may have been closed since, by this very function in another thread.
        with suppress(OSError):
            path = os.readlink(_OPEN_FILES / descriptor)
            if _NAME.search(path):
                # Whoever removes the name owns the number, which means another file once closed.
                os.unlink(path)
                os.close(int(descriptor))
