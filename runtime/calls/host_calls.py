"""`HostCalls`: Python functions that a compiled program calls in its process.

IREE imports them from a separate module, one function for each number. They get NumPy views of the
program's buffers and return arrays. These become buffers with one copy, or without a copy if the
function promises not to change them later (`keeps_results`). An exception cannot pass through IREE,
which would convert it to text: it is kept here, and the call of the program raises it.

A program that is compiled with marks (`Target.marks_dispatches`) calls back before and after each
dispatch, which puts it on the timeline, with the user's lines. It waits for each dispatch in turn,
so each takes as long as if it ran without others. The sum of a call is larger than a call without
marks takes: by 10 to 15 us for each dispatch, and by the gain of dispatches that would run at the
same time.

Elsewhere: which functions there are (`passes/transforms/lower_to_stablehlo.py`), how marks come
into a program (`compiler/invocation/dispatch_marks.py`), the call of the program (`executable.py`).
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Sequence
from typing import TypeAlias

from iree import runtime as iree_runtime

from axir.dialect.core.annotations import Returning
from axir.dialect.core.timeline import timeline
from axir.dialect.program.function_rules import HOST, HostCall
from axir.runtime.compiler.invocation.dispatch_marks import BEGIN, SEPARATOR
from axir.runtime.device.buffers import HalBufferView
from axir.runtime.device.devices import Device
from axir.runtime.native.kernel_program import checked_results

# IREE calls host functions on the thread that called the program.
_of_thread = threading.local()


def take_exception() -> BaseException | None:
    """Returns, once, the exception that a host function has raised in this thread's last call."""
    exception: BaseException | None = getattr(_of_thread, "exception", None)
    _of_thread.exception = None
    return exception


# The result of a call to IREE: nothing, one buffer, or several.
_References: TypeAlias = iree_runtime.VmRef | tuple[iree_runtime.VmRef, ...] | None


class HostCalls:
    """The host functions of one program.

    IREE's objects do not take part in Python's garbage collection, and host functions often refer
    to the program's owner. So IREE's module refers to them weakly, and they live as long as this
    object.

    Args:
        calls: The functions in the order of their numbers.
        device: The device that the program runs on; its memory must be the host's.
    """

    def __init__(self, calls: Sequence[HostCall], device: Device):
        self._calls = tuple(calls)
        self._device = device
        interface = iree_runtime.PyModuleInterface(HOST, _no_state)
        for number, call in enumerate(self._calls):
            interface.export(f"callback_{number}", _convention(call), _entry(self, number))
        self.module = interface.create()

    def call(self, number: int, refs: Sequence[iree_runtime.VmRef]) -> _References:
        """Calls a function on IREE's references to buffer views; returns such references."""
        call, device = self._calls[number], self._device
        operands = [
            device.to_numpy(ref.deref(HalBufferView), t.shape, t.dtype)
            for ref, t in zip(refs, call.operand_types, strict=True)
        ]
        results = checked_results(call, call.function(*operands))
        put = device.put if call.keeps_results else device.put_copy
        values = tuple([put(x).ref for x in results])
        if len(values) == 1:
            return values[0]
        return values or None


def _no_state(_: object) -> None:
    """Returns the state of a module in each context: none."""


def _entry(calls: HostCalls, number: int) -> Returning[_References]:
    """Returns the function that IREE calls."""
    reference = weakref.ref(calls)

    def enter(_: None, *refs: iree_runtime.VmRef) -> _References:
        owner = reference()
        assert owner is not None  # the program's caller keeps a reference
        try:
            return owner.call(number, refs)
        except BaseException as exception:
            _of_thread.exception = exception
            # IREE converts this exception to a text, which is not read.
            raise RuntimeError("a host function failed") from None

    return enter


def _convention(call: HostCall) -> str:
    """Returns IREE's text for the signature: references only."""
    operands = "r" * len(call.operand_types) or "v"
    return f"0{operands}_{'r' * len(call.result_types) or 'v'}"


class DispatchMarks:
    """The callback of a program with marks, called from the thread that runs it.

    Args:
        device: Where it runs.

    Attributes:
        sink: The trace sink for IREE.
    """

    def __init__(self, device: Device):
        self._device = str(device)
        self._begun = threading.local()
        self.sink = iree_runtime.HalModuleDebugSink(self._read)

    def begin_call(self) -> None:
        """Notes that a call begins: its first dispatch does not begin before."""
        self._begun.at = time.perf_counter_ns()

    def _read(self, key: str, views: Sequence[HalBufferView]) -> None:
        now = time.perf_counter_ns()
        end, name, *lines = key.split(SEPARATOR)
        if end != BEGIN and timeline.is_on:
            start = getattr(self._begun, "at", now)
            timeline.add(name, "dispatch", start, now, {"device": self._device, "lines": lines})
        self._begun.at = time.perf_counter_ns()
