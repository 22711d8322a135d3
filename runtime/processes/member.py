"""`Member`: this process's connection to the others, through the coordinator.

Here: also `Transport`, the interface that carries bytes among the processes of a mesh; each mesh
has one, which one thread uses.
Elsewhere: transports (`transports.py`).
"""

from __future__ import annotations

import logging
import select
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Protocol

from axir.dialect.core.annotations import Foreign, HostArray
from axir.dialect.core.config import config
from axir.runtime.errors import (
    DistributedSetupError,
    ProcessFailedError,
    ProcessLostError,
    ProcessTimeoutError,
)

from .wire import Connection, Message

_logger = logging.getLogger("axir.distributed")
_RETRY_SECONDS = 0.1
# Seconds after which a waiting process reports its wait to the coordinator.
_TOLD_SECONDS = 1.0
# Seconds that the coordinator's report may take, once a connection has ended.
_MOMENT_SECONDS = 1.0
# How long the messages of a process may arrive after the message that it ends, which takes another
# connection.
_ARRIVAL_SECONDS = 0.5
_MOST_BEAT_SECONDS = 5.0


class Member:
    """One of several processes.

    Args:
        place: Host and port of the coordinator.
        index: Which process this is.
        count: How many there are.
        info: Information about this process for the others, as JSON data; `pid` and `host` name it.
        setup_seconds: How long to wait until all are there.
        silence: Seconds of silence after which a process counts as lost.

    Attributes:
        infos: The information about each process.
        secret: A secret that only the processes of the job know.
        connect: Makes the transport among some processes, given a name; see `Transport`.

    Raises:
        DistributedSetupError: if the others do not arrive, or do not fit together.
    """

    def __init__(
        self,
        place: tuple[str, int],
        index: int,
        count: int,
        info: Message,
        setup_seconds: float,
        silence: float,
    ):
        self.index, self.count = index, count
        self.infos: list[Message] = [info]
        self.connect: Callable[[tuple[int, ...], str], Foreign] | None = None
        self._silence = silence
        self._changed = threading.Condition()
        self._numbers: dict[str, int] = defaultdict(int)
        self._gathered: dict[tuple[str, int], list[bytes]] = {}
        self._states: dict[str, str] | None = None
        self._ended: dict[int, str | None] = {}
        self._failure: Callable[[], BaseException] | None = None
        self._is_leaving = False
        self._is_gone = False
        deadline = time.monotonic() + setup_seconds
        self._connection = self._connected(place, deadline, setup_seconds)
        try:
            self._welcomed(info, deadline, setup_seconds)
        except DistributedSetupError:
            self._connection.close()
            raise
        self._thread = threading.Thread(target=self._run, name="axir member", daemon=True)
        self._thread.start()

    def _connected(self, place: tuple[str, int], deadline: float, seconds: float) -> Connection:
        while True:
            try:
                left = max(deadline - time.monotonic(), 0.01)
                return Connection(socket.create_connection(place, left))
            except OSError as error:
                if time.monotonic() + _RETRY_SECONDS > deadline:
                    raise DistributedSetupError(
                        f"Process {self.index} could not reach process 0 at {place[0]}:{place[1]} "
                        f"for {seconds:g} seconds: {error}.",
                        "Look whether process 0 runs, has this address, and may be reached there.",
                    ) from None
                time.sleep(_RETRY_SECONDS)

    def _welcomed(self, info: Message, deadline: float, seconds: float) -> None:
        """Introduces this process, and waits until all others have done so."""
        connection = self._connection
        # Others reach it at the address from which it reaches the coordinator.
        info = {**info, "address": connection.socket.getsockname()[0]}
        try:
            connection.send(
                {"kind": "hello", "index": self.index, "count": self.count, "info": info}
            )
            connection.socket.settimeout(max(deadline - time.monotonic(), 0.01))
            answer, _ = connection.receive()
        except TimeoutError:
            raise DistributedSetupError(
                f"Process {self.index} has waited {seconds:g} seconds until all {self.count} "
                "processes are there.",
                "Look whether all were started, with the same address and number of processes.",
            ) from None
        except OSError as error:
            raise DistributedSetupError(
                f"Process {self.index} has lost process 0 before all were there: {error}.",
                "Look at what process 0 says.",
            ) from None
        if answer["kind"] != "welcome":
            raise DistributedSetupError(
                f"Process {self.index} cannot take part: {answer.get('reason')}.",
                "Give all processes the same address and number, and each an id of its own.",
            )
        connection.socket.settimeout(None)
        self.infos, self.secret = answer["infos"], str(answer["secret"])

    # For callers ---------------------------------------------------------------------------------

    def name_of(self, index: int) -> str:
        """Returns the name of a process in errors."""
        info = self.infos[index]
        return f"process {index} (pid {info.get('pid')} on {info.get('host')})"

    def all_gather(self, content: bytes, name: str) -> list[bytes]:
        """Returns the arguments of all processes, in their order; see `Group`.

        Raises:
            ProcessLostError: one of them is gone, or has ended.
            ProcessFailedError: one of them has failed.
        """
        with self._changed:
            number = self._numbers[name]
            self._numbers[name] += 1
        self._send({"kind": "gather", "name": name, "number": number}, content)
        others = [n for n in range(self.count) if n != self.index]
        patience = Patience(self, name, others)
        with self._changed:
            while (name, number) not in self._gathered:
                patience.look()
                self._changed.wait(Patience.SECONDS)
            found = self._gathered.pop((name, number))
        patience.end()
        return found

    def check(self) -> None:
        """Raises the error that ended the job, if there is one."""
        if self._failure is not None:
            raise self._failure()

    def ended(self, others: Sequence[int]) -> BaseException | None:
        """Returns the error that ends the wait for processes that have ended.

        Args:
            others: The processes that this one waits for.
        """
        index = next((n for n in others if n in self._ended and n != self.index), None)
        return None if index is None else self._left(index)

    def fail(self, failure: Callable[[], BaseException]) -> None:
        """Records a failure: from now on every wait raises it."""
        with self._changed:
            if self._failure is None:
                self._failure = failure
            self._changed.notify_all()

    @property
    def is_broken(self) -> bool:
        """Whether a failure has ended the job."""
        return self._failure is not None

    def abort(self, reason: str) -> None:
        """Tells all others that this process has failed."""
        self._send({"kind": "abort", "reason": reason[:2000]})

    def tell_state(self, text: str) -> None:
        """Reports this process's current activity, for errors of others."""
        self._send({"kind": "state", "text": text[:500]})

    def late(self, what: str, seconds: float, others: Sequence[int]) -> ProcessTimeoutError:
        """Returns the error for others that do not come, with their current activities."""
        with self._changed:
            self._states = None
            self._send({"kind": "states"})
            self._changed.wait_for(lambda: self._states is not None, 2.0)
            states: dict[str, str] = self._states or {}
        told = "; ".join(
            f"{self.name_of(n)} {states.get(str(n)) or 'is elsewhere'}" for n in others
        )
        return ProcessTimeoutError(
            f"{self.name_of(self.index)} has waited {seconds:g} seconds in {what}: {told}.",
            "If others compute for so long, set axir_collective_timeout higher; 0 is no limit. "
            "Else let all processes run the same programs in the same order.",
        )

    def leave(self, reason: str | None, seconds: float) -> None:
        """Tells all others that this process ends, and waits until they do.

        Args:
            reason: The error that ends it, or None; after an error it does not wait for the others.
            seconds: How long to wait at most.
        """
        self._is_leaving = True
        self._send({"kind": "bye", "reason": reason})
        # This process's message comes back once all have it. If it left before, process 0 would end
        # the coordinator with the message unread, and the others would wait in vain.
        awaited = set(range(self.count)) if reason is None else {self.index}
        with self._changed:
            self._changed.wait_for(
                lambda: self._failure is not None or awaited <= set(self._ended),
                seconds if reason is None else _MOMENT_SECONDS,
            )
        self._is_gone = True
        self._connection.close()
        self._thread.join(5)

    # The thread that listens ---------------------------------------------------------------------

    def _send(self, message: Message, content: bytes = b"") -> None:
        try:
            self._connection.send(message, content)
        except OSError:
            self._lose_coordinator("its connection has ended")

    def _run(self) -> None:
        beat = min(self._silence / 4, _MOST_BEAT_SECONDS)
        heard = time.monotonic()
        while True:
            try:
                if select.select([self._connection], [], [], beat)[0]:
                    heard = time.monotonic()
                    self._listen()
                elif time.monotonic() - heard > self._silence:
                    self._lose_coordinator(f"nothing was heard of it for {self._silence:g} seconds")
                    return
                else:
                    self._connection.send({"kind": "beat"})
            except (OSError, ValueError):
                self._lose_coordinator("its connection has ended")
                return

    def _listen(self) -> None:
        self._connection.fill()
        while (found := self._connection.take()) is not None:
            with self._changed:
                self._hear(*found)
                self._changed.notify_all()

    def _hear(self, message: Message, content: bytes) -> None:
        kind = message["kind"]
        index: int = message.get("index", 0)
        if kind == "gathered":
            places: list[bytes] = []
            start = 0
            for size in message["sizes"]:
                places.append(content[start : start + size])
                start += size
            self._gathered[message["name"], message["number"]] = places
        elif kind == "states":
            self._states = message["states"]
        elif kind == "bye":
            self._ended[index] = message["reason"]
        elif kind == "lost":
            if not self._is_leaving:
                # At once, because the launcher of the processes may end this one as well.
                _logger.critical("%s was lost: %s.", self.name_of(index), message["reason"])
            self._fail_with(lambda: self._lost(index, message["reason"]))
        elif kind == "abort" and index != self.index:
            self._fail_with(lambda: self._failed(index, message["reason"]))

    def _fail_with(self, failure: Callable[[], BaseException]) -> None:
        if self._failure is None:
            self._failure = failure

    def _lose_coordinator(self, reason: str) -> None:
        # Once all have announced their end, process 0 closes the connection regularly.
        if not self._is_gone and len(self._ended) < self.count:
            self.fail(lambda: self._lost(0, reason))

    def _lost(self, index: int, reason: str) -> BaseException:
        return ProcessLostError(
            f"{self.name_of(index).capitalize()} was lost: {reason}.",
            "It was killed, or its machine or network has failed: look at what it and the system "
            "say, and start the job again from its last checkpoint.",
        )

    def _left(self, index: int) -> BaseException:
        reason = self._ended[index]
        if reason is not None:
            return self._failed(index, reason)
        return ProcessLostError(
            f"{self.name_of(index).capitalize()} has ended, and this process waits for it.",
            "Let all processes run the same programs in the same order.",
        )

    def _failed(self, index: int, reason: object) -> BaseException:
        return ProcessFailedError(
            f"{self.name_of(index).capitalize()} has failed: {reason}.",
            "Look at the error of that process.",
        )


class Patience:
    """How long a process waits for others: until they fail, or as the option says.

    Args:
        member: This process.
        what: The operation that waits, for errors.
        others: The processes that it waits for.
    """

    # How often it is worth looking.
    SECONDS = 0.1

    def __init__(self, member: Member, what: str, others: Sequence[int]):
        self._member, self._what, self._others = member, what, list(others)
        self._limit = config.axir_collective_timeout
        self._began = time.monotonic()
        self._is_told = False
        self._saw_end: float | None = None

    def look(self) -> None:
        """Raises the error that ends the wait, if there is one.

        Raises:
            ProcessLostError: one of the others is gone, or has ended.
            ProcessFailedError: one of them has failed.
            ProcessTimeoutError: they have not come in time.
        """
        now = time.monotonic()
        self._member.check()
        ended = self._member.ended(self._others)
        if ended is not None:
            self._saw_end = self._saw_end or now
            if isinstance(ended, ProcessFailedError) or now - self._saw_end > _ARRIVAL_SECONDS:
                raise ended
        seconds = now - self._began
        if seconds > _TOLD_SECONDS and not self._is_told:
            self._is_told = True
            self._member.tell_state(f"waits in {self._what}")
        if self._limit and seconds > self._limit:
            error = self._member.late(self._what, self._limit, self._others)
            self._member.fail(lambda: type(error)(error.message, error.way_out))
            raise error

    def listen(self) -> None:
        """Gives the coordinator a moment to report on a process with a closed connection.

        The coordinator was told before, but over another connection, so its report may come later.

        Raises:
            ProcessLostError, ProcessFailedError, ProcessTimeoutError: as `look` does.
        """
        end = time.monotonic() + _MOMENT_SECONDS
        while time.monotonic() < end:
            self.look()
            time.sleep(0.01)

    def end(self) -> None:
        """Reports that this process no longer waits."""
        if self._is_told:
            self._member.tell_state("")


class Transport(Protocol):
    """Carries bytes among some processes, which all make the same calls in the same order.

    Attributes:
        processes: Their numbers, ascending.
    """

    processes: tuple[int, ...]

    def all_gather(self, part: HostArray, patience: Patience) -> HostArray:
        """Returns what all processes pass, in their order.

        Args:
            part: Bytes, the same number in each process.
            patience: Called while this one waits; it raises if the others do not come.

        Returns:
            Bytes of shape `(processes, bytes)`, which the next call may overwrite.
        """
        ...

    def all_to_all(
        self, parts: Sequence[HostArray], sizes: Sequence[int], patience: Patience
    ) -> list[HostArray]:
        """Returns the bytes that each process has for this one, in their order.

        Args:
            parts: Bytes for each process.
            sizes: How many bytes come from each.
            patience: Called while this one waits; it raises if the others do not come.
        """
        ...
