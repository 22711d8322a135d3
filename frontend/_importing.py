"""What makes importing quicker. Elsewhere: what is imported (`__init__.py`)."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def paused_collection() -> Iterator[None]:
    """Stops the search for garbage for as long as modules are imported.

    All that importing makes stays; to look at it over and over takes a tenth of the time. What was
    made meanwhile counts as old afterwards: as new it would all be looked at after the next object.
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
