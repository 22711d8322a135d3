"""`Background`: makes a value in a separate thread while other threads go on.

Elsewhere: the values (`compiled_function.py`).
"""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, NamedTuple, TypeVar

from axir.dialect.core.annotations import OptionValue
from axir.dialect.core.config import config
from axir.dialect.core.errors import user_line
from axir.dialect.core.state import on_behalf_of
from axir.runtime.compiler.helpers import MAX_HELPERS, helpers
from axir.runtime.device.process_state import call_in_forked_child

_T = TypeVar("_T")
_threads: weakref.WeakSet[threading.Thread] = weakref.WeakSet()
_AT_ONCE = max(1, MAX_HELPERS - 1)
_turns = threading.Semaphore(_AT_ONCE)


@contextmanager
def few_at_once() -> Iterator[None]:
    """Limits compilations that no thread waits for, so that waiting threads find a free helper."""
    with _turns:
        yield


def wait_for_all() -> None:
    """Waits until no value is being made any more."""
    for thread in list(_threads):
        thread.join()


class Caller(NamedTuple):
    """The caller that a value is made for.

    Attributes:
        options: The options that are set only in the caller's thread.
        line: The user's line there.
    """

    options: dict[str, OptionValue]
    line: str | None

    @classmethod
    def here(cls) -> Caller:
        """Returns the caller that this thread is, or works for."""
        return cls(config.overrides, user_line())


class Background(Generic[_T]):
    """The making of a value under the options of a thread.

    Args:
        make: Makes the value.
        caller: The caller that the value is made for; by default the caller of the thread that
            begins it.

    Attributes:
        value: The value, once `is_done`; None if making it failed.
        failure: The exception, once `is_done`, or None.
        is_done: Whether the making has ended.

    >>> making = Background(lambda: 6 * 7)
    >>> making.wait()
    >>> making.value
    42
    """

    def __init__(self, make: Callable[[], _T], caller: Caller | None = None):
        self.value: _T | None = None
        self.failure: Exception | None = None
        self.is_done = False
        self._process = os.getpid()
        self._thread = threading.Thread(
            target=self._run,
            args=(make, caller or Caller.here()),
            name="axir-compile",
            daemon=True,
        )
        _threads.add(self._thread)
        self._thread.start()

    def _run(self, make: Callable[[], _T], caller: Caller) -> None:
        try:
            with config(**caller.options), on_behalf_of(caller.line):
                self.value = make()
        except Exception as error:
            self.failure = error
        self.is_done = True

    @property
    def is_lost(self) -> bool:
        """Whether this is a forked child, and the thread stayed in the parent."""
        return not self.is_done and self._process != os.getpid()

    def wait(self) -> None:
        """Returns when the value is made, or making it has failed."""
        self._thread.join()


def _end() -> None:
    # A thread that the interpreter ends within MLIR would end the process with an error.
    running = [thread for thread in _threads if thread.is_alive()]
    if running:
        helpers.close()
    for thread in running:
        thread.join()


def _begin_in_forked_child() -> None:
    global _turns
    _threads.clear()
    _turns = threading.Semaphore(_AT_ONCE)


atexit.register(_end)
call_in_forked_child(_begin_in_forked_child)
