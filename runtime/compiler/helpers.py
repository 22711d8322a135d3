"""Helper processes that run the compiler, so that its crash ends one of them and nothing else.

A helper is a bare Python that loads the folder `invocation/` and the compiler, but neither axir nor
the user's `__main__`. It stays for the next compilation. Threads compile side by side, in up to as
many helpers as there are processors. A helper runs in a new session, so the terminal's Ctrl-C does
not reach it; it ends when its standard input closes, which is when this process ends. Elsewhere:
the code that runs in a helper (`invocation/server.py`), and the choice of using one
(`compilation.py`).
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from axir.dialect.core.annotations import Foreign
from axir.runtime.compiler.invocation.stream_passes import WrongMemoryError
from axir.runtime.device.process_state import abandon, call_in_forked_child

from .diagnostics import CompilerEndedError
from .invocation.invoker import RejectedFlagsError
from .invocation.messages import receive, send
from .invocation.native import NativeUnavailableError
from .target import process_flags

# Loads the folder under a separate module name, with the parent's search path after Python's own.
_START = """
import sys
from importlib.util import module_from_spec, spec_from_file_location
folder, *search_path = sys.argv[1:]
sys.path += search_path
sys.modules["numpy"] = None  # the compiler's bindings load it if they can: half of the start
# What the wheel loads and a helper does not use: 10 ms, and 25 when the bindings first meet a `vm`.
for name in ("iree.compiler.tools", "iree.compiler.dialects.vm"):
    sys.modules[name] = type(sys)(name)
spec = spec_from_file_location("axir_compiler", folder + "/__init__.py")
package = sys.modules["axir_compiler"] = module_from_spec(spec)
spec.loader.exec_module(package)
from axir_compiler.server import main
main()
"""
_FOLDER = Path(__file__).parent / "invocation"
# Compiler sessions keep some memory for good, so a helper's memory grows with each.
_COMPILATIONS_PER_HELPER = 1000
_TAIL_BYTES = 1 << 14
MAX_HELPERS = max(
    1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
)


class HelperStartError(Exception):
    """No helper process can be started here."""


class Helper:
    """A running helper process; serves one compilation at a time.

    Attributes:
        count: the number of compilations that it has served.
        process_flags: the flags of its compiler, once it has compiled.
        is_sound: whether it can be used for another compilation.
    """

    def __init__(self) -> None:
        self.count = 0
        self.process_flags: tuple[str, ...] | None = None
        self.is_sound = True
        self._is_ready = False
        command = _command()
        with contextlib.ExitStack() as cleanup:
            try:
                # A file without a folder; a pipe would have to be read.
                self._output = open(os.memfd_create("axir-compiler"), "rb", buffering=0)
                cleanup.callback(self._output.close)
                self._process = subprocess.Popen(
                    command,
                    bufsize=0,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=self._output,
                    start_new_session=True,
                )
            except OSError as error:
                raise HelperStartError(str(error)) from error
            cleanup.pop_all()

    @property
    def is_running(self) -> bool:
        """Whether the process still runs; the system may have killed it for lack of memory."""
        return self._process.poll() is None

    def compile(
        self,
        source: bytes,
        flags: tuple[str, ...],
        report: Callable[[str], None],
        option: bool | str = True,
    ) -> bytes | None:
        """Compiles as `Invoker.compile` does.

        Raises:
            RejectedFlagsError: the flags are not legal.
            WrongMemoryError: the program would read memory with wrong contents.
            CompilerEndedError: the compiler crashed, and the helper is gone.
            HelperStartError: the helper ended before it was ready.
        """
        return self._compile(report, flags, source, option)

    def compile_object(
        self, source: bytes, flags: tuple[str, ...], report: Callable[[str], None], prefix: str
    ) -> tuple[bytes, bytes] | None:
        """Compiles as `Invoker.compile_object` does; raises as `compile` does."""
        return self._compile(report, flags, source, prefix)

    def _compile(
        self,
        report: Callable[[str], None],
        flags: tuple[str, ...],
        source: bytes,
        option: bool | str,
    ) -> Foreign:
        self.count += 1
        self.process_flags = process_flags(flags)
        request = (self.process_flags, _working_directory(), flags, source, option)
        return self._binary(self._ask("compile", *request), report)

    def _binary(self, answers: Iterator[tuple], report: Callable[[str], None]) -> Foreign:
        """Returns the compiled result, after passing the diagnostics on."""
        for answer in answers:
            match answer:
                case ("error", text):
                    report(text)
                case ("rejected", text):
                    raise RejectedFlagsError(text)
                case ("wrong", text):
                    raise WrongMemoryError(text)
                case ("unavailable", text):
                    raise NativeUnavailableError(text)
                case ("binary", binary):
                    return binary
                case ("failed",):
                    # The failure may have damaged the compiler's memory.
                    self.is_sound = False
                    return None
        raise AssertionError("a helper answers or ends")

    def compile_kernels(
        self, kernels: bytes, is_quick: bool, report: Callable[[str], None]
    ) -> tuple[bytes, ...] | None:
        """Compiles as `NativeCompiler.compile` does.

        Raises:
            NativeUnavailableError: llvmlite is missing, or its version does not fit.
            CompilerEndedError: as for `compile`, like `HelperStartError`.
        """
        self.count += 1
        return self._binary(self._ask("native", kernels, is_quick), report)

    def compile_library(self, text: bytes, report: Callable[[str], None]) -> bytes | None:
        """Compiles as `NativeCompiler.compile_library` does; raises as `compile_kernels` does."""
        self.count += 1
        return self._binary(self._ask("library", text, False), report)

    def try_to_read(self, bytecode: bytes) -> None:
        """Lets the helper read bytecode; raises as `compile` does if that crashes."""
        next(self._ask("read", bytecode))

    def _ask(self, *request: Foreign) -> Iterator[tuple]:
        """Sends a request and yields the answers; raises when the helper ends."""
        requests: Foreign = self._process.stdin
        answers: Foreign = self._process.stdout
        with contextlib.suppress(OSError):  # it has ended, and reading answers will show that
            send(requests, *request)
        while (answer := receive(answers)) is not None:
            if answer == ("ready",):
                self._is_ready = True
            else:
                yield answer
        raise self._crash()

    def _crash(self) -> CompilerEndedError | HelperStartError:
        status = self._process.wait()
        size = os.fstat(self._output.fileno()).st_size
        start = max(0, size - _TAIL_BYTES)
        output = os.pread(self._output.fileno(), _TAIL_BYTES, start).decode(errors="replace")
        ending = _signal_name(-status) if status < 0 else f"exit status {status}"
        if not self._is_ready:
            return HelperStartError(f"the helper ended with {ending}: {output}")
        return CompilerEndedError(ending, output)

    def kill(self) -> None:
        """Ends the process, whatever it is doing, and waits until it is gone."""
        self._process.kill()
        self._process.wait()

    def end(self) -> None:
        """Ends the process and closes its pipes."""
        self.kill()
        self.forget()

    def forget(self) -> None:
        """Closes this process's ends of the pipes; a forked child does no more."""
        for stream in (self._process.stdin, self._process.stdout, self._output):
            assert stream is not None
            stream.close()


class HelperPool:
    """The helpers of this process.

    Args:
        limit: the most helpers at once.

    Attributes:
        is_closed: whether no new helpers may start.
    """

    def __init__(self, limit: int = MAX_HELPERS) -> None:
        self._limit = limit
        self.is_closed = False
        self._begin()

    def _begin(self) -> None:
        self._condition = threading.Condition()
        self._is_prepared = False
        self._idle: list[Helper] = []
        self._helpers: set[Helper] = set()

    def compile(
        self,
        source: bytes,
        flags: tuple[str, ...],
        report: Callable[[str], None],
        option: bool | str = True,
    ) -> bytes | None:
        """Compiles in a helper, and waits for one if all are busy; see `Helper.compile`."""
        with self._helper(process_flags(flags)) as helper:
            return helper.compile(source, flags, report, option)

    def compile_object(
        self,
        source: bytes,
        flags: tuple[str, ...],
        report: Callable[[str], None],
        prefix: str,
    ) -> tuple[bytes, bytes] | None:
        """Compiles kernels in a helper; see `Helper.compile_object`."""
        with self._helper(process_flags(flags)) as helper:
            return helper.compile_object(source, flags, report, prefix)

    def compile_kernels(
        self, kernels: bytes, is_quick: bool, report: Callable[[str], None]
    ) -> tuple[bytes, ...] | None:
        """Makes an object file in a helper; see `Helper.compile_kernels`."""
        with self._helper() as helper:
            return helper.compile_kernels(kernels, is_quick, report)

    def compile_library(self, text: bytes, report: Callable[[str], None]) -> bytes | None:
        """Makes an object file of LLVM IR in a helper; see `Helper.compile_library`."""
        with self._helper() as helper:
            return helper.compile_library(text, report)

    def try_to_read(self, bytecode: bytes) -> None:
        """Reads bytecode in a helper; see `Helper.try_to_read`."""
        with self._helper() as helper:
            helper.try_to_read(bytecode)

    def prepare(self) -> None:
        """Starts a helper on another processor ahead of the first request.

        This happens once: if the programs then come from the disk cache, `dismiss` ends the helper.
        """
        if self._is_prepared:
            return
        with self._condition:
            if self._is_prepared or self.is_closed or self._helpers or self._limit < 2:
                return
            self._is_prepared = True
            with contextlib.suppress(HelperStartError):  # said when one is needed
                self._idle.append(self._add())

    def dismiss(self) -> None:
        """Ends helpers that have received no request yet."""
        with self._condition:
            self._is_prepared = True
            unused = [helper for helper in self._idle if not helper.count]
            self._idle = [helper for helper in self._idle if helper.count]
            self._helpers.difference_update(unused)
        for helper in unused:
            # The system takes milliseconds to end a process; a thread waits for that.
            threading.Thread(target=helper.end).start()

    def close(self) -> None:
        """Ends all helpers for good."""
        with self._condition:
            self.is_closed = True
            idle, self._idle = self._idle, []
            self._helpers.difference_update(idle)
            busy = list(self._helpers)
        for helper in idle:
            helper.end()
        for helper in busy:
            helper.kill()  # and the thread that waits for it does the rest

    def forget(self) -> None:
        """Leaves the helpers to the parent of this forked process."""
        for helper in self._helpers:
            helper.forget()
        abandon(self._helpers)
        self._begin()

    def _take_idle(self, flags: tuple[str, ...] | None) -> Helper | None:
        """Returns an idle helper that can have these flags; ends another at the limit."""
        fitting = [x for x in self._idle if flags is None or x.process_flags in (None, flags)]
        fitting.sort(key=lambda x: x.process_flags is not None)  # the last one is taken
        while fitting:
            helper = fitting.pop()
            self._idle.remove(helper)
            if helper.is_running:
                return helper
            self._drop(helper)
        if self._idle and len(self._helpers) >= self._limit:
            self._drop(self._idle.pop(0))
        return None

    def _drop(self, helper: Helper) -> None:
        self._helpers.discard(helper)
        helper.end()

    def _add(self) -> Helper:
        helper = Helper()
        self._helpers.add(helper)
        return helper

    @contextmanager
    def _helper(self, flags: tuple[str, ...] | None = None) -> Iterator[Helper]:
        helper: Helper | None = None
        is_usable = False
        try:
            with self._condition:
                self._condition.wait_for(lambda: self._idle or len(self._helpers) < self._limit)
                if self.is_closed:
                    raise HelperStartError("the interpreter is ending")
                helper = self._take_idle(flags) or self._add()
            yield helper
            is_usable = helper.is_sound and helper.count < _COMPILATIONS_PER_HELPER
        finally:
            # Also after Ctrl-C: the answer to come would be taken for that to the next request.
            if helper is not None:
                self._put_back(helper, is_usable)

    def _put_back(self, helper: Helper, is_usable: bool) -> None:
        with self._condition:
            if is_usable and not self.is_closed:
                self._idle.append(helper)
            else:
                self._helpers.discard(helper)
            self._condition.notify()
        if not is_usable:
            helper.end()


helpers = HelperPool()
call_in_forked_child(helpers.forget)
atexit.register(helpers.close)


def _command() -> Sequence[str]:
    if getattr(sys, "frozen", False) or not sys.executable:
        raise HelperStartError("this program is no Python interpreter that could be started anew")
    search_path = [path for path in sys.path if os.path.isabs(path)]
    # Neither the environment nor the program's folder may change which modules are imported.
    return [sys.executable, "-I", "-S", "-c", _START, str(_FOLDER), *search_path]


def _working_directory() -> str | None:
    try:
        return os.getcwd()
    except OSError:  # the folder has been deleted
        return None


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
