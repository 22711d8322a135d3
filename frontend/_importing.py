"""What makes importing quicker. What does not live here: what is imported (`__init__.py`)."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def paused_collection() -> Iterator[None]:
    """Stops the search for garbage for as long as modules are imported.

    All that importing makes stays; to look at it over and over takes a tenth of the time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
