"""Faster importing. Elsewhere: the imports (`__init__.py`)."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def paused_collection() -> Iterator[None]:
    """Stops the search for garbage for as long as modules are imported.

    Objects made by imports live until the process ends, and the collector's repeated scans of them
    take a tenth of the time of importing. Objects made in the meantime are moved to the oldest
    generation afterwards: in the youngest generation they would all be scanned soon after.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if not gc.get_freeze_count():  # else the program has objects there that are to stay
            gc.freeze()
            gc.unfreeze()  # to the oldest generation
        if was_enabled:
            gc.enable()
