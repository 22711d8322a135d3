"""Imports passes while this process waits for a helper.

A pass is imported when it is first needed, since most programs need few, and those that come from
the disk cache none. Where something is compiled, more will be: its imports need not be waited for.
What does not live here: which passes there are (`axir.passes.framework.registry`).
"""

from __future__ import annotations

import importlib
import os
import threading

from axir.passes.framework.registry import PASSES, takes_jaxpr

# Besides: what contractions of several arrays need while they are traced.
_OTHERS = ("opt_einsum",)
# Those of most programs first.
_FIRST = ("fuse-whole-programs", "tile-products", "fuse-rows", "fuse-moves", "fuse-islands")
_threads: list[threading.Thread] = []


def import_passes_meanwhile() -> None:
    """Begins to import all passes on StableHLO in another thread, once for the process."""
    if not _threads:
        thread = threading.Thread(target=_import_passes, name="axir-imports", daemon=True)
        _threads.append(thread)
        thread.start()


def _import_passes() -> None:
    names = [PASSES[name] for name in (*_FIRST, *PASSES) if not takes_jaxpr(name)]
    for name in (*names, *_OTHERS):
        importlib.import_module(name)


def _finish() -> None:
    for thread in _threads:
        if thread.is_alive():
            thread.join()


# A child would wait for a module that the thread, which it does not have, is importing.
os.register_at_fork(before=_finish)
