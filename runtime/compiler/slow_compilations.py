"""Tells the user that a compilation takes long.

Elsewhere: running the compiler (`compilation.py`).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer

from axir.dialect.core.config import config

from .invocation.invoker import BYTECODE_MAGIC

_LOGGER = logging.getLogger(__name__)
# Lines of a module that define locations.
_LOCATION = b"#loc"


@contextmanager
def announced_if_slow(name: str, source: bytes) -> Iterator[None]:
    """Logs a warning, once, if the block takes `axir_slow_compile_seconds` or longer.

    Args:
        name: the program's name.
        source: its module, as text or bytecode.
    """
    seconds = config.axir_slow_compile_seconds
    if not seconds:
        yield
        return
    timer = Timer(seconds, _announce, (name, source, seconds))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _announce(name: str, source: bytes, seconds: int) -> None:
    _LOGGER.warning(
        "compiling %r takes more than %d s: it is %s of StableHLO. Its next compilation comes from "
        "the disk cache. The option axir_slow_compile_seconds sets after how long this is said.",
        name,
        seconds,
        _size(source),
    )


def _size(source: bytes) -> str:
    if source.startswith(BYTECODE_MAGIC):
        return f"{len(source):,} bytes"
    count = sum(not line.startswith(_LOCATION) for line in source.splitlines())
    return f"{count:,} lines"
