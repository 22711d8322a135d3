"""Calls that return before they are done: `defer` queues one and returns its results to come.

Each thread that makes such calls has a separate queue for each device, and a thread that runs its
calls in order. A caller that needs a result before that thread has come to it runs the queue up to
there: on a busy machine several milliseconds pass until another thread runs. A call in a queue
holds its operands: references to the memory of its arguments, or the calls that compute them. Those
were queued before, here or by another thread, so calls never wait in a circle. An error is raised
wherever the results of the failed call are used, and in the calls that take them.

A call that overwrites memory (a donated argument) first waits for all calls queued so far, because
one of them may read it. Before a fork, and before the interpreter ends, all queues are run to their
end. Elsewhere: which calls are queued (`compiled_function.py`), running them (`executable.py`).
"""

from __future__ import annotations

import atexit
import contextlib
import os
import queue
import threading
import weakref
from collections import deque
from collections.abc import Sequence
from typing import TypeAlias

from iree import runtime as iree_runtime

from axir.dialect.core.annotations import Foreign
from axir.dialect.core.context import user_frame
from axir.dialect.core.errors import describe_line
from axir.runtime.device.buffers import Buffer, BufferType, HalBufferView
from axir.runtime.device.devices import Device
from axir.runtime.device.process_state import call_in_forked_child
from axir.runtime.errors import RuntimeExecutionError

from .executable import Executable
from .native_executable import NativeExecutable

# A queued call keeps its arguments alive; a thread that queues more waits for the oldest.
_LIMIT = 32
Source: TypeAlias = "iree_runtime.VmRef | tuple[QueuedCall, int]"

# All calls that are queued and not done.
_unfinished: set[QueuedCall] = set()
_threads = threading.local()
# Guards results against concurrent changes: a call ends, and another thread deletes its result.
_settling = threading.Lock()
_is_ending = False


class QueuedCall:
    """A call in a queue.

    Args:
        calls: The queue.
        executable: The program to call.
        sources: The arguments; see `sources_of`.
        waits_for: Calls that must be done before.

    Attributes:
        failure: the exception, once the call has failed.
        refs: the results, once the call is done; users of them keep the call alive.
        results: the buffers that wait for the results.
    """

    __slots__ = (
        "__weakref__",
        "_executable",
        "_line",
        "_queue",
        "_sources",
        "_waits_for",
        "failure",
        "refs",
        "results",
        "under_way",
    )

    def __init__(
        self,
        calls: _Queue,
        executable: Executable | NativeExecutable,
        sources: list[Source],
        waits_for: list[QueuedCall],
    ):
        self._queue = calls
        self._executable = executable
        self._sources = sources
        self._waits_for = waits_for
        self.under_way = threading.Lock()
        self.under_way.acquire()
        frame = user_frame()
        self._line = None if frame is None else (frame.f_code, frame.f_lineno)
        self.failure: BaseException | None = None
        self.refs: Sequence[iree_runtime.VmRef] = ()
        self.results: list[PendingBuffer] = []

    @property
    def is_done(self) -> bool:
        """Whether the results are there, or a failure."""
        return not self.under_way.locked()

    def wait(self) -> None:
        """Returns when the call is done; runs it if no thread has begun to."""
        if self.under_way.locked():
            self._queue.work_off(self)

    def ref(self, index: int) -> iree_runtime.VmRef:
        """Waits for a result and returns it; raises the call's error."""
        self.wait()
        if self.failure is not None:
            raise self.failure.with_traceback(None)
        return self.refs[index]

    def run(self) -> None:
        """Runs the program, and settles the results."""
        where = "" if self._line is None else describe_line(*self._line)
        try:
            self.refs = self.compute(where)
        except Exception as error:
            self.fail(error)
        except BaseException as interrupt:
            self.fail(
                RuntimeExecutionError(
                    f"The computation of this array was interrupted: {interrupt!r}.",
                    "Call the function again.",
                    where,
                )
            )
            raise
        finally:
            with _settling:
                for result, ref in zip(self.results, self.refs, strict=False):
                    result.settle(ref)
            # A thread that still waits for this call must not keep its arguments alive.
            self.results, self._sources, self._waits_for = [], [], []
            _unfinished.discard(self)
            self.under_way.release()

    def compute(self, where: str) -> Sequence[iree_runtime.VmRef]:
        """Waits for the call's operands, and returns the results of the program.

        Args:
            where: The user's line.
        """
        for other in self._waits_for:
            other.wait()
        refs = [x[0].ref(x[1]) if type(x) is tuple else x for x in self._sources]
        return self._executable.invoke(refs, where)

    def promise(self, types: Sequence[BufferType]) -> list[Buffer]:
        """Returns the future results, of the given types."""
        self.results = [PendingBuffer(self, index, kind) for index, kind in enumerate(types)]
        return [*self.results]

    def fail(self, error: BaseException) -> None:
        """Records an error, without its frames, which hold the arguments."""
        self.failure = error.with_traceback(None)
        if error.__cause__ is not None:
            error.__cause__.__traceback__ = None

    def give_up(self) -> None:
        """Fails in a forked child: the thread that would run the call stayed in the parent."""
        self.fail(
            RuntimeExecutionError(
                "The process was forked while another thread computed this array.",
                "Wait for results (block_until_ready) before the fork.",
            )
        )
        self.under_way.release()


class PendingBuffer(Buffer):
    """A result that a queued call has still to compute; afterwards a normal buffer."""

    __slots__ = ("_call", "_index")

    def __init__(self, call: QueuedCall, index: int, buffer_type: BufferType):
        super().__init__(None, buffer_type)
        self._call: QueuedCall | None = call
        self._index = index

    def settle(self, ref: iree_runtime.VmRef) -> None:
        """Takes the computed result, unless the buffer has been deleted."""
        if self._call is not None:
            self.ref = ref
            self._call = None

    @property
    def source(self) -> Source:
        """The memory, or the call that computes it and the number of the result."""
        ref = self.ref
        if ref is not None:
            return ref
        call = self._call
        if call is not None:
            return call, self._index
        if self.ref is None:  # otherwise it has just been settled
            raise self.deleted_error()
        return self.ref

    @property
    def view(self) -> iree_runtime.HalBufferView:
        """IREE's buffer view; waits for the result."""
        source: Foreign = self.source
        ref = source[0].ref(source[1]) if type(source) is tuple else source
        return ref.deref(HalBufferView)

    def block_until_ready(self) -> PendingBuffer:
        """Waits; raises the call's error, or DeletedArrayError after `delete`."""
        _ = self.view
        return self

    @property
    def is_ready(self) -> bool:
        """Whether the result is computed, or the call has failed."""
        call = self._call
        return call is None or call.is_done

    @property
    def is_deleted(self) -> bool:
        """Whether `delete` has been called."""
        return self._call is None and self.ref is None

    def delete(self) -> None:
        """Drops this reference to the memory; later uses raise DeletedArrayError."""
        with _settling:
            self._call = self.ref = None

    def moved(self) -> Buffer:
        """Returns a buffer of the same memory, and deletes this one."""
        call = self._call
        if call is None:
            return super().moved()
        made = PendingBuffer(call, self._index, self.type)
        self.delete()
        return made


class _Queue:
    """Calls in their order, and a lock for running the next one."""

    __slots__ = ("_calls", "_turn", "signals")

    def __init__(self) -> None:
        self._calls: deque[QueuedCall] = deque()
        self._turn = threading.Lock()
        # An item for each call, which wakes the thread that runs the queue; None ends that thread.
        self.signals: queue.SimpleQueue[object] = queue.SimpleQueue()

    def add(self, call: QueuedCall) -> None:
        """Adds a call."""
        self._calls.append(call)
        self.signals.put(True)

    def work_off(self, call: QueuedCall) -> None:
        """Runs all calls up to and including the given one."""
        with self._turn:
            while not call.is_done:
                self._calls.popleft().run()

    def make_next(self) -> None:
        """Runs the next call, if there is one."""
        with self._turn:
            if self._calls:
                self._calls.popleft().run()


class Lane:
    """The queue of a thread, and the thread that works it off, also if the first one has ended.

    Args:
        needs_thread: Whether calls must run in the queue's thread, and not in a thread that waits
            for them.

    Raises:
        RuntimeError: if a thread is needed and cannot be started.
    """

    def __init__(self, needs_thread: bool = False) -> None:
        self.queue = _Queue()
        self._recent: deque[weakref.ref[QueuedCall]] = deque()
        worker = threading.Thread(target=_work, args=(self.queue,), name="axir-calls", daemon=True)
        with contextlib.nullcontext() if needs_thread else contextlib.suppress(RuntimeError):
            worker.start()

    def add(self, call: QueuedCall) -> None:
        """Queues a call; waits if the queue is full."""
        if len(self._recent) >= _LIMIT:
            oldest = self._recent.popleft()()
            if oldest is not None:
                oldest.wait()
        self._recent.append(weakref.ref(call))
        _unfinished.add(call)
        self.queue.add(call)

    def __del__(self) -> None:
        self.queue.signals.put(None)


def _lane_of(device: Device) -> Lane:
    """Returns this thread's queue for a device."""
    lanes: dict[Device, Lane] | None = getattr(_threads, "lanes", None)
    if lanes is None:
        lanes = _threads.lanes = {}
    lane = lanes.get(device)
    if lane is None:
        lane = lanes[device] = Lane()
    return lane


def _work(calls: _Queue) -> None:
    while calls.signals.get() is not None:
        calls.make_next()


def may_defer() -> bool:
    """Tells whether calls may be queued now."""
    return not _is_ending


def is_any_unfinished() -> bool:
    """Tells whether any thread has queued calls that are not done."""
    return bool(_unfinished)


def defer(
    executable: Executable | NativeExecutable, buffers: Sequence[Buffer], overwrites: bool
) -> list[Buffer]:
    """Queues a call; returns its future results.

    Args:
        executable: the program; its `result_types` are known.
        buffers: the arguments, which may be pending themselves.
        overwrites: whether the program may overwrite an argument.

    Raises:
        DeletedArrayError: an argument has been deleted or donated.
    """
    lane = _lane_of(executable.device)
    call = QueuedCall(lane.queue, executable, sources_of(buffers), unfinished(overwrites))
    types = executable.result_types
    assert types is not None
    results = call.promise(types)
    lane.add(call)
    return results


def sources_of(buffers: Sequence[Buffer]) -> list[Source]:
    """Returns the memory of the arguments of a call, or the calls that compute them.

    Raises:
        DeletedArrayError: an argument has been deleted or donated.
    """
    return [x.source if type(x) is PendingBuffer else x.view.ref for x in buffers]


def unfinished(overwrites: bool) -> list[QueuedCall]:
    """Returns the calls that a new call has to wait for, if it overwrites memory."""
    return list(_unfinished) if overwrites else []


def finish_all() -> None:
    """Waits until the queued calls of all threads are done."""
    for call in list(_unfinished):
        call.wait()


def _begin_in_forked_child() -> None:
    global _threads, _settling
    _threads, _settling = threading.local(), threading.Lock()
    for call in list(_unfinished):
        call.give_up()
    _unfinished.clear()


def _end() -> None:
    global _is_ending
    _is_ending = True
    finish_all()


os.register_at_fork(before=finish_all)
call_in_forked_child(_begin_in_forked_child)
atexit.register(_end)
