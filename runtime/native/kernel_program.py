"""Programs that are kernels only, as plain data, and functions of the host between the kernels.

Elsewhere: making a `KernelProgram` from a module, and its machine code (`runtime/compiler/`);
calling it (`programs.py`).
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import marshal
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from axir.dialect.core.annotations import HostArray
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.function_rules import HostCall
from axir.dialect.program.rules import HostArrays
from axir.runtime.errors import HostCallError

# The origin of an array, with its number: an argument of the program, a constant, an array that the
# program makes.
ARGUMENT, CONSTANT, RESULT = range(3)
Origin = tuple[int, int]
# Memory: the number of an array that the code takes, and a byte in it from which on.
Place = tuple[int, int]
# A kernel, its number of workgroups, and the memory of its bindings. The other kinds are: a copy:
# its number of bytes, its target and its source; a host function: its number, the memory of its
# operands, and the memory of its results; a jump: the number of the next step, either from the end
# of a loop to its begin, or conditional on the truth value at a place being false; a choice: the
# number of jumps that follow it, and the place of a 32-bit number that selects one; an exchange:
# pairs of slots, in which the first slot gets the address of the second one.
Step = tuple[str, int, tuple[Place, ...]]
COPY, HOST_CALL, JUMP, AGAIN = "", "host call", "jump", "again"
UNLESS, CHOOSE, EXCHANGE = "unless", "choose", "exchange"
KINDS = (COPY, JUMP, AGAIN, UNLESS, CHOOSE, EXCHANGE, HOST_CALL)
"""Steps that are no kernels."""
JUMPS = (JUMP, AGAIN, UNLESS)
"""Those whose number is that of a step."""


@dataclass(frozen=True)
class KernelProgram:
    """A program of kernels.

    Attributes:
        object_files: The machine code of its kernels; none if nothing is computed.
        arguments: Numbers of the arguments that the code takes, in order.
        constants: Names of dtypes, shapes and bytes of the constants, which it takes next.
        results: Names of dtypes and shapes of the arrays that it makes, which it takes then.
        space: Bytes of memory for its own use, which it takes last, if it is not 0.
        returns: Where the results of the program are from, in order.
        steps: The steps to run, in order, from the first one on.
        may_last: Whether it may run for long.
        libraries: Object files that programs share: the function that Python calls, and the
            functions that the machine code calls.
        slots: Places that steps exchange: they count as arrays, behind the last one.
        suits_one_thread: Whether two threads of IREE's do not make it faster.
    """

    object_files: tuple[bytes, ...]
    arguments: tuple[int, ...]
    constants: tuple[tuple[str, tuple[int, ...], bytes], ...]
    results: tuple[tuple[str, tuple[int, ...]], ...]
    space: int
    returns: tuple[Origin, ...]
    steps: tuple[Step, ...] = ()
    may_last: bool = False
    libraries: tuple[bytes, ...] = ()
    slots: tuple[Place, ...] = ()
    suits_one_thread: bool = False

    @property
    def stops(self) -> bool:
        """Tells whether its code returns before it is done, and is called again."""
        return any(name in (HOST_CALL, AGAIN) for name, _, _ in self.steps)

    def to_bytes(self) -> bytes:
        """Returns the program as the cache keeps it."""
        return marshal.dumps(tuple(getattr(self, x.name) for x in dataclasses.fields(self)))

    @staticmethod
    def from_bytes(content: bytes) -> KernelProgram:
        """Returns the program that was kept."""
        return KernelProgram(*marshal.loads(content))


class Entry(Protocol):
    """Code as a function of Python."""

    def __call__(self, *arrays: HostArray) -> HostArray | None:
        """Runs the code on arrays; returns None, and does nothing, if it cannot."""


class HostStep:
    """A host function.

    Args:
        call: The function.
        places: The memory of its operands, and of its results behind them.
        read_only: The number of arrays of a call that are never written to: the first ones.
    """

    def __init__(self, call: HostCall, places: Sequence[Place], read_only: int):
        self._call = call
        count = len(call.operand_types)
        self._operands = list(zip(places[:count], call.operand_types, strict=True))
        self._results = list(zip(places[count:], call.result_types, strict=True))
        self._read_only = read_only

    def run(self, arrays: Sequence[HostArray], control: HostArray) -> None:
        """Calls the function, and writes its results to the memory of a call.

        Args:
            arrays: The arrays of the call.
            control: Two words, and the addresses of the arrays and slots.
        """
        operands = []
        for place, kind in self._operands:
            x = _view(arrays, control, place, kind)
            if place[0] >= self._read_only:
                x = x.copy()  # the function may keep it, and a later step writes here
            x.flags.writeable = False
            operands.append(x)
        results = checked_results(self._call, self._call.function(*operands))
        for (place, kind), result in zip(self._results, results, strict=True):
            _view(arrays, control, place, kind)[...] = result


# Seconds of calls after which IREE's compilation begins: a fifth of its time for most programs.
_ENOUGH = 0.1


class Overtaking:
    """The handover from a running program to a faster one, which takes long to compile.

    Attributes:
        is_due: Whether the faster program is ready, so that calls in a loop need not end.
        has_happened: Whether a call has ended for it.
        waiting: The function that begins its compilation, until that has begun.
    """

    def __init__(self) -> None:
        self.is_due = False
        self.has_happened = False
        self.waiting: list[Callable[[], None]] = []
        self._seconds = 0.0

    def spend(self, seconds: float) -> None:
        """Notes how long a call took."""
        self._seconds += seconds
        self.consider()

    def consider(self, seconds: float = 0.0) -> None:
        """Begins to compile the faster program if all calls together have taken long enough.

        Its compilation costs more than a few calls ever gain.

        Args:
            seconds: The time so far of a call that is under way.
        """
        if self.waiting and self._seconds + seconds >= _ENOUGH:
            # Another thread may have taken it; if no thread can start, the program goes on.
            with contextlib.suppress(IndexError, RuntimeError):
                self.waiting.pop()()


class OvertakenError(Exception):
    """A call has stopped before its end, without effects: a faster program is ready."""


def with_stops(
    entry: Entry, steps: Sequence[HostStep], slots: int, overtaking: Overtaking
) -> Entry:
    """Returns one function of code that stops for host functions, and for Python's signals.

    Args:
        entry: The code; takes one more array of words (`invocation/native_entry.py`).
        steps: The host functions: a call with some is not run a second time.
        slots: The number of slots of the code.
        overtaking: Tells when calls raise OvertakenError.
    """

    def run(*arrays: HostArray) -> HostArray | None:
        start = time.perf_counter()
        control = np.zeros(2 + len(arrays) + slots, np.uint64)
        if entry(*arrays, control) is None:
            return None
        while True:
            going_on, turn = control[:2].tolist()
            if turn:
                steps[turn - 1].run(arrays, control)
            elif not going_on:
                return control
            elif overtaking.is_due and not steps:
                overtaking.has_happened = True
                raise OvertakenError
            else:  # about once a second
                overtaking.consider(time.perf_counter() - start)
            entry(*arrays, control)

    return run


def only_host_steps(steps: Sequence[HostStep]) -> Entry:
    """Returns a sequence of host functions as one function."""

    def run(*arrays: HostArray) -> HostArray | None:
        if not all(map(_is_usable, arrays)):
            return None
        for step in steps:
            step.run(arrays, _NOTHING)
        return _NOTHING

    return run


_NOTHING = np.empty(0)


def usable(x: HostArray) -> HostArray:
    """Returns an array as kernels read it: aligned, in the order of C, and no subclass's."""
    return np.require(np.asarray(x), requirements=["C", "A"])


def _is_usable(x: HostArray) -> bool:
    return type(x) is np.ndarray and x.flags.c_contiguous and x.flags.aligned


def _view(
    arrays: Sequence[HostArray], control: HostArray, place: Place, kind: ShapedArray
) -> HostArray:
    """Returns an array of some kind in the memory of a call."""
    number, start = place
    size = math.prod(kind.shape) * kind.dtype.itemsize
    if not size:
        return np.empty(kind.shape, kind.dtype)
    if number >= len(arrays):
        slot = (ctypes.c_char * size).from_address(int(control[2 + number]))
        return np.frombuffer(memoryview(slot), kind.dtype).reshape(kind.shape)
    return np.ndarray(kind.shape, kind.dtype, arrays[number], start)


def checked_results(call: HostCall, results: HostArrays) -> list[HostArray]:
    """Returns a function's results, after checking their number, shapes and dtypes."""
    expected = call.result_types
    arrays = [np.asarray(x) for x in results]
    if len(arrays) != len(expected) or any(
        x.shape != t.shape or x.dtype != t.dtype for x, t in zip(arrays, expected, strict=False)
    ):
        name = getattr(call.function, "__qualname__", repr(call.function))
        raise HostCallError(
            f"The host function {name!r} gave {_described(arrays)}, but was declared to give "
            f"({', '.join(map(str, expected))}).",
            "Make it return arrays of these shapes and dtypes.",
        )
    return arrays


def _described(arrays: Sequence[HostArray]) -> str:
    return f"({', '.join(f'{x.dtype}{list(x.shape)}' for x in arrays)})"
