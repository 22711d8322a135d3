"""`Successor`: the faster program that is made while a first one serves, and takes over from it.

IREE takes longer than who calls a program wants to wait, and its code is faster than what was there
at first. So it begins when calls have taken long enough to be worth it, or when somebody asks.
Elsewhere: the first program (`native_executable.py`), and when calls have taken long enough
(`runtime/native/host_steps.py`).
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
from axir.runtime.device.fork_safety import call_in_forked_child
from axir.runtime.errors import CompileError

from .background import Background, Caller, few_at_once
from .executable import Executable, Program
from .native_executable import NativeExecutable

_LOGGER = logging.getLogger(__name__)
# All for which a program serves already, so that somebody may ask for them.
_successors: weakref.WeakSet[Successor] = weakref.WeakSet()


class Owner(Protocol):
    """What is called, and runs one program after the other."""

    function: Function
    device: Device

    def forget_quick_calls(self) -> None:
        """Lets the next call be a general one, which asks whether a successor is lost."""

    def go_on_with(self, executable: Executable) -> None:
        """Runs another program from now on."""


class Successor:
    """A faster program that there will be. Making it does not keep its owner alive.

    Args:
        owner: Who is to run it.
        compile_it: Makes its code.
        host_calls: Functions of the host that it calls, by number.
        caller: On whose behalf: whoever needs it first may be another thread, with other options.
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
        """Begins to make it, unless that is done or under way."""
        if self._making is None or self._making.is_lost:
            self._making = Background(self._take_over, self._caller)

    def begin_when_worth(self, served: NativeExecutable) -> None:
        """Begins when calls of the program that serves have taken long enough, or somebody asks."""
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
        """Lets the next call be one that begins anew what a thread of the parent was making."""
        owner = self._owner()
        if owner is not None and self.is_lost:
            owner.forget_quick_calls()

    def _take_over(self) -> None:
        """Has calls run IREE's program as soon as it is there; it computes the same."""
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
    """Begins to make all faster programs there will be, as if programs had been called often."""
    for successor in list(_successors):
        successor.begin()


def _begin_in_forked_child() -> None:
    for successor in list(_successors):
        successor.begin_in_forked_child()


call_in_forked_child(_begin_in_forked_child)
