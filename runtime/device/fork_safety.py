"""Fork safety: a forked child abandons the handles that it inherits.

IREE's compiler sessions, devices and contexts own threads. A fork copies the handles but not the
threads, so a child that used or destroyed an inherited handle would wait for a thread that does not
exist. The child therefore abandons all of them and makes new ones when it needs them. Memory is not
affected: a child reads the buffers that its parent made. The compiler runs in helper processes, and
a child starts a new one; if the option `axir_isolate_compiler` keeps the compiler in this process,
it sometimes hangs in the child of a parent that has compiled.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable

_hooks: list[Callable[[], None]] = []


def call_in_forked_child(hook: Callable[[], None]) -> None:
    """Registers a function that drops inherited handles in a forked child."""
    _hooks.append(hook)


def abandon(handles: object) -> None:
    """Keeps an object alive past the interpreter's end, so that it is never destroyed."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(handles))


def _run_hooks() -> None:
    for hook in _hooks:
        hook()


os.register_at_fork(after_in_child=_run_hooks)
