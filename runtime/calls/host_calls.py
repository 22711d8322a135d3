"""`HostCalls`: Python functions that a compiled program calls in its process.

IREE imports them from a separate module, one function for each number. They get NumPy views of the
program's buffers and return arrays. These become buffers with one copy, or without a copy if the
function promises not to change them later (`keeps_results`). An exception cannot pass through IREE,
which would convert it to text: it is kept here, and the call of the program raises it. Elsewhere:
which functions there are (`passes/transforms/lower_to_stablehlo.py`), the call of the program
(`executable.py`).
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from typing import TypeAlias

from iree import runtime as iree_runtime

from axir.dialect.core.annotations import Returning
from axir.dialect.program.function_rules import HOST, HostCall
from axir.runtime.device.buffers import HalBufferView
from axir.runtime.device.devices import Device
from axir.runtime.native.host_steps import checked_results

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
