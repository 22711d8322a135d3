"""Engines: they carry the parts of collectives from device to device while a program runs.

An engine serves one run of one program. Each device's thread calls `communicate` for every
collective that its program comes to, and `finish` at the end. `ThreadEngine` is the engine of
devices in one process, where all memory is shared: the last member of a group to arrive computes
for all. Devices that do not run the same collectives in the same order never wait forever: as soon
as all remaining devices wait, all of them get an error that says where each one is. Elsewhere: the
results of collectives (`combination.py`), and running programs (`program.py`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Protocol

from axir.dialect.core.annotations import HostArray
from axir.dialect.core.config import config
from axir.dialect.program.meshes.communication import Collective
from axir.runtime.errors import (
    CollectiveAbortedError,
    CollectiveTimeoutError,
    UnequalProgramsError,
)

from .combination import combined


class Engine(Protocol):
    """Carries the parts of one run of a program. Devices are positions in the mesh."""

    def communicate(self, collective: Collective, position: int, operand: HostArray) -> HostArray:
        """Takes a device's part and returns its result, a read-only array that others may share.

        Args:
            collective: The collective that all devices of the group run now.
            position: The position of this device.
            operand: Its part, of the collective's operand type; it is read until this returns.

        Raises:
            UnequalProgramsError: other devices run another collective.
            CollectiveTimeoutError: the other devices do not arrive in time.
            CollectiveAbortedError: one of them has failed.
        """
        ...

    def finish(self, position: int) -> None:
        """Reports that a device's program has ended, and will not communicate any more."""
        ...

    def abort(self, error: BaseException) -> None:
        """Reports that a device has failed: all devices that wait, now or later, get an error."""
        ...


class _Meeting:
    """A collective that members of a group are running.

    Attributes:
        collective: The collective.
        operands: The parts of the members that have arrived, by position.
        results: The result of each member, by position, once all have arrived.
        waiting: A lock for each member that waits, released when the member may go on.
    """

    __slots__ = ("collective", "operands", "results", "waiting")

    def __init__(self, collective: Collective):
        self.collective = collective
        self.operands: dict[int, HostArray] = {}
        self.results: dict[int, HostArray] = {}
        self.waiting: dict[int, threading.Lock] = {}


class ThreadEngine:
    """The engine of devices in one process, a thread for each.

    The last member of a group to arrive computes, into memory that devices use without a copy.

    Args:
        size: Number of devices.
        time_limit: Seconds that a device waits for others, by default as the option
            `axir_collective_timeout` says; 0 is no limit.
        name_of: Returns the name of the device at a position for errors.
    """

    def __init__(
        self,
        size: int,
        time_limit: float | None = None,
        name_of: Callable[[int], str] = "device {}".format,
    ):
        self._size = size
        self._time_limit = config.axir_collective_timeout if time_limit is None else time_limit
        self._name_of = name_of
        # Guards all that follows; it is never held during a computation or a wait.
        self._lock = threading.Lock()
        self._meetings: dict[tuple[int, ...], _Meeting] = {}
        self._waits_in: dict[int, _Meeting] = {}
        self._finished: set[int] = set()
        self._failure: BaseException | None = None

    def communicate(self, collective: Collective, position: int, operand: HostArray) -> HostArray:
        """Takes a device's part and returns its result; see `Engine`."""
        group = self._who_meets(collective, position)
        if len(group) == 1:
            return self._alone(collective, group, position, operand)
        with self._lock:
            if self._failure is not None:
                raise self._aborted()
            meeting = self._meetings.get(group)
            if meeting is None:
                meeting = self._meetings[group] = _Meeting(collective)
            elif meeting.collective != collective:
                self._fail(self._unequal(position, collective))
                raise self._failure_of_own()
            meeting.operands[position] = operand
            is_last = len(meeting.operands) == len(group)
            if is_last:
                del self._meetings[group]
                # They have not gone on yet, but they no longer wait for another device.
                for other in meeting.waiting:
                    del self._waits_in[other]
            else:
                gate = meeting.waiting[position] = threading.Lock()
                gate.acquire()
                self._waits_in[position] = meeting
                if self._is_stuck():
                    self._fail(self._unequal())
                    raise self._failure_of_own()
        if is_last:
            return self._compute(meeting, group, position)
        return self._wait(meeting, position, gate)

    def _alone(
        self, collective: Collective, group: tuple[int, ...], position: int, operand: HostArray
    ) -> HostArray:
        """Computes for a device that has no other member of its group in this process."""
        if self._failure is not None:
            raise self._aborted()
        try:
            return self._combined(collective, group, {position: operand})[position]
        except BaseException as error:
            self.abort(error)
            raise

    def finish(self, position: int) -> None:
        """Reports that a device's program has ended; see `Engine`."""
        with self._lock:
            self._finished.add(position)
            if self._failure is None and self._is_stuck():
                self._fail(self._unequal())

    def abort(self, error: BaseException) -> None:
        """Reports that a device has failed; see `Engine`."""
        with self._lock:
            if self._failure is None:
                self._fail(error)

    def _compute(self, meeting: _Meeting, group: tuple[int, ...], position: int) -> HostArray:
        """Computes for all members, and wakes them."""
        try:
            meeting.results = self._combined(meeting.collective, group, meeting.operands)
        except BaseException as error:
            self.abort(error)
            raise
        finally:
            for gate in meeting.waiting.values():
                gate.release()
        return meeting.results[position]

    def _who_meets(self, collective: Collective, position: int) -> tuple[int, ...]:
        """Returns which devices of this process do a collective together."""
        return collective.group_of(position)

    def _combined(
        self, collective: Collective, group: tuple[int, ...], operands: Mapping[int, HostArray]
    ) -> dict[int, HostArray]:
        """Returns the results of the devices that have met."""
        results = combined(collective, [operands[p] for p in group])
        return dict(zip(group, results, strict=True))

    def _wait(self, meeting: _Meeting, position: int, gate: threading.Lock) -> HostArray:
        """Waits until the last member of the group has computed."""
        try:
            in_time = gate.acquire(timeout=self._time_limit or -1)
        except BaseException as interrupt:
            self.abort(interrupt)
            raise
        if not in_time:
            with self._lock:
                if self._failure is None and position in self._waits_in:
                    self._fail(self._late(meeting, position))
                    raise self._failure_of_own()
            gate.acquire()  # the last member has come, and is computing
        if position not in meeting.results:
            raise self._aborted()
        return meeting.results[position]

    def _is_stuck(self) -> bool:
        """Tells whether some devices wait and all others have finished."""
        waiting = len(self._waits_in)
        return bool(waiting) and waiting + len(self._finished) == self._size

    def _fail(self, error: BaseException) -> None:
        """Records an error, and wakes all waiting devices, which fail as well."""
        self._failure = error
        gates = [meeting.waiting[p] for p, meeting in self._waits_in.items()]
        self._waits_in.clear()
        self._meetings.clear()
        for gate in gates:
            gate.release()

    def _failure_of_own(self) -> BaseException:
        assert self._failure is not None
        return self._failure

    def _aborted(self) -> BaseException:
        failure = self._failure
        if isinstance(failure, (UnequalProgramsError, CollectiveTimeoutError)):
            return type(failure)(failure.message, failure.way_out, failure.where)
        error = CollectiveAbortedError(
            f"Another device of the mesh has failed: {failure!r}.",
            "Look at the error of that device.",
        )
        error.__cause__ = failure
        return error

    def _unequal(
        self, position: int | None = None, collective: Collective | None = None
    ) -> UnequalProgramsError:
        """Says where each device is."""
        places = {p: f"waits in {meeting.collective}" for p, meeting in self._waits_in.items()}
        places |= dict.fromkeys(self._finished, "has finished")
        if position is not None:
            places[position] = f"has come to {collective}"
        told = "; ".join(f"{self._name_of(p)} {places[p]}" for p in sorted(places))
        return UnequalProgramsError(
            f"The devices of a mesh do not run the same collectives in the same order: {told}.",
            "Let all devices of a group run the same collectives: no branch or loop around them "
            "may depend on values that differ between them.",
        )

    def _late(self, meeting: _Meeting, position: int) -> CollectiveTimeoutError:
        group = self._who_meets(meeting.collective, position)
        missing = ", ".join(self._name_of(p) for p in group if p not in meeting.operands)
        return CollectiveTimeoutError(
            f"{self._name_of(position)} has waited {self._time_limit:g} seconds in "
            f"{meeting.collective} for {missing}.",
            "If that computes for so long, set axir_collective_timeout higher; 0 is no limit.",
        )
