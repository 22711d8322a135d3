"""The session inside the process of one library: programs are made, timed and dropped."""

from __future__ import annotations

import gc
import importlib
import resource
import signal
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.harness.program import Program
from benchmarks.programs import PROGRAMS

SECONDS_OF_A_ROUND = 0.02


@dataclass(frozen=True)
class Prepared:
    """Data of the first calls of a program: seconds of the first, results, size of a round."""

    first: float
    values: list[np.ndarray]
    repeats: int
    once: float


@dataclass(frozen=True)
class FirstCall:
    """Data of a process that only called one program.

    Attributes:
        seconds: The first call, without the import of the library.
        peak: The largest memory the process held, in bytes, compiling included.
        calls: Increase of memory during later calls, in bytes; None if the system cannot reset a
            process's peak.
    """

    seconds: float
    peak: int
    calls: int | None


class Session:
    """A library, and the program that it runs at the moment."""

    def __init__(self, library: str) -> None:
        self.name = library
        self.library: ModuleType = importlib.import_module(library)
        if self.has_transformations:
            self.library.numpy.zeros(1)  # parts that load on first use
        self._run: Callable[[], Any] = lambda: None
        self._waits = True
        self._x64 = False

    @property
    def has_transformations(self) -> bool:
        return self.name in ("axir", "jax")

    def load(self, program: Program) -> None:
        """Makes the program and its arguments, and calls nothing."""
        self._x64 = program.x64 and self.has_transformations
        self._waits = program.compiled
        with self._precision():
            self._run = self._runner(program)

    def _runner(self, program: Program) -> Callable[[], Any]:
        lib = self.library
        if self.has_transformations:
            function, args = program.build(lib, program.size)
            args = lib.tree_util.tree_map(
                lambda leaf: (
                    lib.numpy.asarray(leaf) if isinstance(leaf, (np.ndarray, np.generic)) else leaf
                ),
                args,
            )
            lib.block_until_ready(args)
            if program.compiled:
                function = lib.jit(function)
        else:
            _, args = program.build(_reference_library(), program.size)
            function = program.numpy
            if self.name == "torch":
                args = [lib.as_tensor(arg) for arg in args]
                function = lambda *tensors: program.torch(lib, *tensors)  # noqa: E731
        return lambda: function(*args)

    def prepare(self, name: str) -> Prepared:
        """Loads a program, calls it until it is warm, and finds how many calls make a round."""
        self.load(PROGRAMS[name])
        with self._precision():
            start = time.perf_counter()
            result = self._wait(self._run())
            first = time.perf_counter() - start
            values = self._values(result)
            del result
            if self.name == "axir":
                self.library.extend.backend.wait_for_compilers()
            once = min(self._seconds(1) for _ in range(2))
            if once < 0.1:
                once = min(self._seconds(1) for _ in range(8))
        repeats = max(1, min(20_000, int(SECONDS_OF_A_ROUND / max(once, 1e-7))))
        return Prepared(first, values, repeats, once)

    def time(self, repeats: int) -> tuple[float, float]:
        """Returns the wall-clock and processor seconds of one call, as means of a round."""
        with self._precision():
            start = _processor_seconds()
            seconds = self._seconds(repeats)
            return seconds, (_processor_seconds() - start) / repeats

    def drop(self) -> int:
        """Forgets the program; returns the bytes that the process still holds."""
        self._run = lambda: None
        if self.has_transformations:
            self.library.clear_caches()
        gc.collect()
        return _memory("VmRSS")

    def first_call(self, name: str) -> FirstCall:
        """Returns the cost of a first call in this process, which has done nothing else."""
        self.load(PROGRAMS[name])
        with self._precision():
            start = time.perf_counter()
            self._wait(self._run())
            seconds = time.perf_counter() - start
            peak = _memory("VmHWM")
            gc.collect()
            forgotten = _forget_peak()
            before = _memory("VmRSS")
            for _ in range(3):
                self._wait(self._run())
        calls = max(0, _memory("VmHWM") - before) if forgotten else None
        return FirstCall(seconds, peak, calls)

    def _seconds(self, repeats: int) -> float:
        run, wait = self._run, self._wait
        start = time.perf_counter()
        if self._waits:
            for _ in range(repeats):
                wait(run())
        else:
            for _ in range(repeats - 1):
                run()
            wait(run())
        return (time.perf_counter() - start) / repeats

    def _wait(self, result: Any) -> Any:
        return self.library.block_until_ready(result) if self.has_transformations else result

    def _values(self, result: Any) -> list[np.ndarray]:
        leaves = [result] if not isinstance(result, (tuple, list)) else list(result)
        if self.has_transformations:
            leaves = self.library.tree_util.tree_leaves(result)
        return [np.asarray(leaf) for leaf in leaves if hasattr(leaf, "dtype")]

    def _precision(self) -> AbstractContextManager[object]:
        # Only programs that need it enter a context: a call within one costs more.
        return self.library.enable_x64(True) if self._x64 else nullcontext()


def _reference_library() -> ModuleType:
    # Programs ask for the library before they make their arguments; NumPy needs only these.
    return importlib.import_module("axir")


def _processor_seconds() -> float:
    """Returns what all threads used, and the processes that were started and have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def _memory(line: str) -> int:
    status = Path("/proc/self/status").read_text()
    (found,) = (text for text in status.splitlines() if text.startswith(line))
    return int(found.split()[1]) * 1024


def _forget_peak() -> bool:
    """Resets the peak to the current memory, and tells whether the system allows it."""
    try:
        Path("/proc/self/clear_refs").write_text("5")  # 5: only the peak of resident memory
    except OSError:
        return False
    return True


def serve(connection: Connection, library: str, make: Callable[[str], object] = Session) -> None:
    """Answers requests for methods of the session until its input ends.

    Args:
        connection: Where requests come from.
        library: The name of the library.
        make: Makes the session.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the client announces its end
    # Packages installed by pip, such as JAX, have stored bytecode. For a working copy each process
    # would compile it again if the environment forbids storing it.
    sys.dont_write_bytecode = False
    try:
        session = make(library)
    except ImportError as error:
        connection.send((False, f"{type(error).__name__}: {error}"))
        return
    connection.send((True, None))
    while True:
        try:
            method, args = connection.recv()
        except EOFError:
            return
        try:
            reply = (True, getattr(session, method)(*args))
        except Exception as error:
            reply = (False, f"{type(error).__name__}: {error}")
        try:
            connection.send(reply)
        except BrokenPipeError:  # the client was interrupted
            return
