"""Imports passes while this process waits for a helper.

A pass is imported when it is first needed, since most programs need few, and those that come from
the disk cache none. Where something is compiled, more will be: while a thread waits for that, the
interpreter has nothing else to do. As soon as no thread waits any more, the imports pause: they
would take the interpreter from the program. Elsewhere: which passes there are
(`axir.passes.framework.registry`).
"""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from axir.passes.framework.registry import PASSES

from .code_fingerprint import invocation_fingerprint

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
