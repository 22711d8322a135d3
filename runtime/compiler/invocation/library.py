"""Loads IREE's compiler library without changing the process's logging.

The wheel calls `logging.debug`, which adds a handler to a root logger without handlers: the user's
`logging.basicConfig` would have no effect, and warnings would look different.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["Invocation", "Output", "Session", "Source", "ctypes_dl", "keeping_logging"]


@contextmanager
def keeping_logging() -> Iterator[None]:
    """Prevents code in the block from adding a handler to the root logger."""
    handler = logging.NullHandler()
    logging.root.addHandler(handler)
    try:
        yield
    finally:
        logging.root.removeHandler(handler)


with keeping_logging():
    from iree.compiler.api import Invocation, Output, Session, Source, ctypes_dl
