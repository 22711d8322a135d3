"""IREE's compiler library, loaded in such a way that the process keeps its logging.

The wheel calls `logging.debug`, which gives a root logger without handlers one: what the user says
by `logging.basicConfig` would be without effect, and warnings would look otherwise.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["Invocation", "Output", "Session", "Source", "ctypes_dl", "keeping_logging"]


@contextmanager
def keeping_logging() -> Iterator[None]:
    """Lets nobody give the root logger a handler meanwhile."""
    handler = logging.NullHandler()
    logging.root.addHandler(handler)
    try:
        yield
    finally:
        logging.root.removeHandler(handler)


with keeping_logging():
    from iree.compiler.api import Invocation, Output, Session, Source, ctypes_dl
