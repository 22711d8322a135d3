"""The helper process: compiles the requests on its standard input, until that closes.

It answers on its standard output: `ready` once, then for each request any number of `error`s and
one of `binary`, `failed`, `wrong`, `rejected`, `unavailable` and `read`. A compiler that crashes
ends this process and no other. When the parent ends in whatever way, the input closes and this
process ends, also in the middle of a compilation.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import os
import queue
import resource
import threading

from .compiler_library import try_to_read
from .invoker import MARK, Invoker, RejectedFlagsError
from .messages import receive, send
from .native import NativeCompiler, NativeUnavailableError
from .stream_passes import WrongMemoryError

# After so long without a compilation, the programs are loaded, and can use the freed memory.
_SECONDS_UNTIL_TIDY = 10.0
# If no request arrives within this time, code is compiled ahead: a request would not wait for it.
_SECONDS_UNTIL_READY = 0.05
# If memory runs out, the system shall end this process rather than the parent.
_OUT_OF_MEMORY_SCORE = 500


def main() -> None:
    """Serves the requests of the parent process."""
    requests = open(os.dup(0), "rb", buffering=0)
    answers = open(os.dup(1), "wb", buffering=0)
    # The compiler's and the linker's own input and output must not mix with the messages.
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    _be_expendable()
    pending: queue.SimpleQueue[tuple] = queue.SimpleQueue()
    threading.Thread(target=_read_requests, args=(requests, pending), daemon=True).start()
    send(answers, "ready")
    invoker: Invoker | None = None
    native: NativeCompiler | None = None
    if pending.empty():  # no request waits for this import
        with contextlib.suppress(NativeUnavailableError):  # said when one is needed
            native = NativeCompiler(has_process=True)
            native.prepare(pending.empty)
    while True:
        try:
            request = pending.get(timeout=_patience(invoker, native))
        except queue.Empty:
            if native is not None and not native.is_prepared:
                native.prepare(pending.empty)
                continue
            invoker = native = None
            _release_memory()
            continue
        if request[0] == "read":
            try_to_read(request[1])
            send(answers, "read")
        elif request[0] in ("native", "library"):
            native = _answer_natively(native, answers, *request)
        else:
            _, process_flags, *rest = request
            invoker = invoker or Invoker(process_flags)
            _answer(invoker, answers, *rest)


def _patience(invoker: Invoker | None, native: NativeCompiler | None) -> float | None:
    """Returns the seconds to wait for a request before there is other work to do."""
    if native is not None and not native.is_prepared:
        return _SECONDS_UNTIL_READY
    return None if invoker is None and native is None else _SECONDS_UNTIL_TIDY


def _answer_natively(
    native: NativeCompiler | None,
    answers: io.RawIOBase,
    kind: str,
    text: bytes,
    is_quick: bool,
) -> NativeCompiler | None:
    """Makes machine code without IREE; returns the compiler, None if llvmlite is unavailable."""

    def report(text: str) -> None:
        send(answers, "error", text)

    try:
        native = native or NativeCompiler(has_process=True)
        made: bytes | tuple[bytes, ...] | None
        if kind == "library":
            made = native.compile_library(text, report)
        else:
            made = native.compile(text, is_quick, report)
    except NativeUnavailableError as error:
        send(answers, "unavailable", str(error))
        return None
    send(answers, *(("failed",) if made is None else ("binary", made)))
    return native


def _answer(
    invoker: Invoker,
    answers: io.RawIOBase,
    folder: str | None,
    flags: tuple[str, ...],
    source: bytes,
    option: bool | str,
) -> None:
    os.lseek(2, 0, os.SEEK_SET)
    os.ftruncate(2, 0)
    if folder is not None:
        with contextlib.suppress(OSError):  # it may be gone; only relative paths need it
            os.chdir(folder)
    # The compiler may report errors from other threads.
    lock = threading.Lock()

    def report(text: str) -> None:
        with lock:
            send(answers, "error", text)

    try:
        made: bytes | tuple[bytes, bytes] | None
        if isinstance(option, str) and option != MARK:
            made = invoker.compile_object(source, flags, report, option)
        else:
            made = invoker.compile(source, flags, report, option)
    except RejectedFlagsError as error:
        send(answers, "rejected", str(error))
    except WrongMemoryError as error:
        send(answers, "wrong", str(error))
    else:
        send(answers, *(("failed",) if made is None else ("binary", made)))


def _read_requests(requests: io.RawIOBase, pending: queue.SimpleQueue[tuple]) -> None:
    while (request := receive(requests)) is not None:
        pending.put(request)
    os._exit(0)  # the parent has gone, so the compiler's work is of no use


def _be_expendable() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # The file exists only on Linux; writing fails if the parent's score is higher already.
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write(str(_OUT_OF_MEMORY_SCORE))


def _release_memory() -> None:
    with contextlib.suppress(AttributeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)
