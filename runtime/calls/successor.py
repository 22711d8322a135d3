"""`Successor`: the faster program that is compiled while a first one runs, and then replaces it.

IREE takes longer to compile than a caller wants to wait, and its code is faster than the first
program's. So its compilation begins when calls have taken long enough to be worth it, or on
request.

`ProgramTrial` finds the faster one of both from the times of its calls. Elsewhere: the first
program (`native_executable.py`), when calls have taken long enough
(`runtime/native/kernel_program.py`), and the faster CPU driver of IREE's program
(`driver_trial.py`).
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Sequence
from typing import Protocol

from axir.dialect.program.costs import largest_operation
from axir.dialect.program.function import Function
from axir.dialect.program.function_rules import HostCall
from axir.runtime.compiler.helpers import helpers
from axir.runtime.device.devices import Device
from axir.runtime.device.process_state import call_in_forked_child
from axir.runtime.errors import CompileError

from .background import Background, Caller, few_at_once
from .executable import Executable, Program
from .native_executable import NativeExecutable

_LOGGER = logging.getLogger(__name__)
# All successors of programs that run already, so that they can be compiled on request.
_successors: weakref.WeakSet[Successor] = weakref.WeakSet()


class Owner(Protocol):
    """A function that is called, and runs one program after the other."""

    function: Function
    device: Device

    def forget_quick_calls(self) -> None:
        """Makes the next call take the general path, which checks for a lost successor."""

    def go_on_with(self, executable: Executable) -> None:
        """Runs another program from now on."""


class Successor:
    """A faster program to come. Making it does not keep its owner alive.

    Args:
        owner: The function that will run it.
        compile_it: Compiles its code.
        host_calls: Host functions that it calls, by number.
        caller: The caller that it is made for; the thread that begins it may have other options.
    """

    def __init__(
        self,
        owner: Owner,
        compile_it: Callable[[], bytes],
        host_calls: Sequence[HostCall],
        caller: Caller,
    ):
        self._owner = weakref.ref(owner)
        self._function, self._device = owner.function, owner.device
        self._compile_it = compile_it
        self._host_calls = host_calls
        self._caller = caller
        self._making: Background[None] | None = None

    @property
    def is_lost(self) -> bool:
        """Whether it was being made when the process forked, and this is the child."""
        return self._making is not None and self._making.is_lost

    def begin(self) -> None:
        """Begins to compile it, unless that has begun."""
        if self._making is None or self._making.is_lost:
            self._making = Background(self._take_over, self._caller)

    def begin_when_worth(self, served: NativeExecutable) -> None:
        """Begins when calls of the running program have taken long enough, or on request."""
        known = weakref.ref(self)

        def begin() -> None:
            successor = known()
            if successor is not None:
                successor.begin()

        served.begin_when_worth(begin)
        _successors.add(self)

    def wait(self) -> None:
        """Returns when it is no longer being made."""
        if self._making is not None:
            self._making.wait()

    def begin_in_forked_child(self) -> None:
        """Makes the next call restart a compilation that a thread of the parent had begun."""
        owner = self._owner()
        if owner is not None and self.is_lost:
            owner.forget_quick_calls()

    def _take_over(self) -> None:
        """Compiles IREE's program, and makes calls run it; it computes the same."""
        function = self._function
        try:
            with few_at_once():
                binary = self._compile_it()
            program = Program(binary, self._device, self._host_calls)
        except CompileError as error:
            if helpers.is_closed:  # the interpreter ends
                return
            _LOGGER.warning("%s stays as it is, for IREE fails: %s", function.name, error)
            return
        owner = self._owner()
        if owner is not None:
            owner.go_on_with(program.function("main", work=largest_operation(function)))


def begin_all_successors() -> None:
    """Begins to compile all successors, as if their programs had been called often."""
    for successor in list(_successors):
        successor.begin()


def _begin_in_forked_child() -> None:
    for successor in list(_successors):
        successor.begin_in_forked_child()


call_in_forked_child(_begin_in_forked_child)


# The native program has to gain clearly, since times scatter.
_WORTHWHILE_RATIO = 0.9
# Calls of the native program that are timed. It served before, so most were made then.
_CALLS = 4
# The first call warms up. If even so many times IREE's seconds do not explain it, IREE's is faster.
_CLEAR_LOSS_RATIO = 2.0


class ProgramTrial:
    """Finds whether the native program of a function or IREE's is faster.

    The cost model says only whether IREE's program may pay. Many small operations with sums and
    gathers between them run faster natively, where no queue stands between kernels. Both programs
    compute the same numbers.

    Args:
        native: The program that has served.
        follower: IREE's program, which serves from now on.
    """

    def __init__(self, native: NativeExecutable, follower: Executable):
        self._native = native
        self._follower = follower

    def next(self) -> tuple[Executable | NativeExecutable, bool]:
        """Returns the program for the next call, and whether the trial is over."""
        native, follower = self._native, self._follower
        if follower.quick is None:  # its driver is not yet found
            return follower, False
        if native.was_overtaken or native.seconds > _CLEAR_LOSS_RATIO * follower.seconds:
            return follower, True
        is_known = native.timed_calls >= _CALLS
        if is_known and native.seconds >= _WORTHWHILE_RATIO * follower.seconds:
            return follower, True
        native.serve_again(for_good=is_known)
        return native, is_known
