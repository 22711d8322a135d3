"""While this process waits for a compilation: passes are imported, and the user is told.

A pass is imported when it is first needed, since most programs need few, and those that come from
the disk cache none. Where something is compiled, more will be: while a thread waits for that, the
interpreter has nothing else to do. As soon as no thread waits any more, the imports pause: they
would take the interpreter from the program.

Elsewhere: which passes there are (`axir.passes.framework.registry`), running the compiler
(`compilation.py`).
"""

from __future__ import annotations

import importlib
import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer

from axir.dialect.core.config import config
from axir.passes.framework.registry import PASSES
from axir.runtime.compiler.invocation.invoker import BYTECODE_MAGIC

from .cache import invocation_fingerprint

# Those of many programs, the most frequent first. All of them take some 20 ms.
_NEEDED = (
    *("fuse-whole-programs", "fuse-islands", "tune-for-cpu", "limit-fusion", "limit-scalar-fusion"),
    *("copy-returned-inputs", "separate-views", "tile-products", "absorb-transposes", "fuse-rows"),
    *("fill-empty-dot", "widen-unsigned-dot", "negate-products", "multiply-in-double"),
    *("fuse-moves", "fuse-small-sums", "fuse-long-sums", "fuse-loops", "renew-loop-operands"),
    *("renew-fills", "saturate-conversions", "round-to-bfloat16", "keep-denormal-halves"),
    *("convert-by-single", "select-boolean-operands", "clamp-unsigned-operands", "expand-power"),
    *("expand-rounding", "fit-conv-windows", "convolve-bytes", "split-dilated-convolutions"),
    *("unroll-wide-windows", "unfold-convolutions", "tile-convolutions", "expand-fft"),
    "pair-complex-programs",
)
_threads: list[threading.Thread] = []
_state = threading.Lock()
_waiting = 0
_somebody_waits = threading.Event()
# Held while a module is imported.
_importing = threading.Lock()


@contextmanager
def passes_imported_meanwhile() -> Iterator[None]:
    """Imports all passes on StableHLO in another thread, one by one, while the block runs."""
    global _waiting
    with _state:
        _waiting += 1
        _somebody_waits.set()
        if not _threads:
            thread = threading.Thread(target=_import_passes, name="axir-imports", daemon=True)
            _threads.append(thread)
            thread.start()
    try:
        yield
    finally:
        with _state:
            _waiting -= 1
            if not _waiting:
                _somebody_waits.clear()


def _import_passes() -> None:
    for name in _NEEDED:
        _somebody_waits.wait()
        with _importing:
            importlib.import_module(PASSES[name])
    invocation_fingerprint()  # reads many files, once


def _pause() -> None:
    _importing.acquire()
    _state.acquire()


def _go_on() -> None:
    _state.release()
    _importing.release()


# The importing thread is missing in the child, which would wait for its module forever.
def _begin_in_forked_child() -> None:
    global _somebody_waits, _waiting
    _somebody_waits, _waiting = threading.Event(), 0
    _go_on()


os.register_at_fork(before=_pause, after_in_parent=_go_on, after_in_child=_begin_in_forked_child)


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
