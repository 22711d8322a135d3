"""`NativeExecutable`: calls of machine code, with arrays as `jit` has them and with buffers.

Arrays of the host go in and come out: no buffer is made for them. A call's cost is its Python code,
so the path for small programs is written out in one function (`run`). Elsewhere: machine code
(`runtime/native/`), and which programs are run so (`runtime/compiler/`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
from iree import runtime as iree_runtime

from axir.dialect.core.annotations import Foreign, HostArray
from axir.dialect.core.array import ConcreteArray, as_array
from axir.dialect.core.config import config
from axir.dialect.core.dtypes import storage
from axir.dialect.core.extended_dtypes import words_of
from axir.dialect.core.places import check_transfer
from axir.dialect.core.timeline import span
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.function import Function
from axir.dialect.program.function_rules import HostCall
from axir.dialect.program.narrow_elements import bytes_of
from axir.runtime.device.buffers import Buffer, BufferType, HalBufferView
from axir.runtime.device.devices import Device, default_device, local_devices
from axir.runtime.device.failures import device_failure
from axir.runtime.device.process_state import keep_freed_memory
from axir.runtime.errors import RuntimeExecutionError
from axir.runtime.native.kernel_program import KernelProgram, OvertakenError, Overtaking, usable
from axir.runtime.native.programs import NativeProgram

from .executable import LONG_SECONDS, Executable

_new_array = ConcreteArray.__new__
_empty = np.empty
# Views of larger device memory are made for each call: an array that kept one could not be donated.
_KEPT_VIEW_BYTES = 4096
# Seconds of a call that is no short one.
_LASTING = 1e-3


class NativeExecutable:
    """A program of kernels on a CPU device. Threads may share it.

    Args:
        kernel: The program.
        device: Where its arguments and results lie.
        function: The compiled function; its captures are arguments of the program.
        types: The types of its results.
        host_calls: Host functions that the program calls, by number.

    Attributes:
        name: The function's name.
        program: The loaded program.
        device: As given.
        is_long: Whether the last call took so long that another thread may make the next.
        result_types: Types of the results.
        seconds: Time of the fastest timed call by the wall clock; 0 before it.
        timed_calls: The number of timed calls.
        quick: None, like an `Executable`'s while its calls are timed.
    """

    quick = None

    def __init__(
        self,
        kernel: KernelProgram,
        device: Device,
        function: Function,
        types: Sequence[ShapedArray],
        host_calls: Sequence[HostCall] = (),
    ):
        keep_freed_memory()
        kinds = [(x.shape, storage(x.dtype)) for x in types]
        # The program that runs its calls from now on, if there is one.
        self._successor: Executable | None = None
        self._overtaking = Overtaking()
        self.program = NativeProgram(kernel, kinds, host_calls, self._overtaking)
        self.device = device
        self.is_long = False
        self.seconds = 0.0
        self.timed_calls = 0
        self.result_types = [BufferType(x.shape, x.dtype, device) for x in types]
        self._types = list(types)
        self.name = function.name
        self._may_last = self._is_timed = kernel.may_last
        self._clock = time.thread_time
        count = len(function.inputs)
        captured = [as_array(x).host() for x in function.captured]
        read = self.program.arguments
        self._captured = captured
        self._read = tuple(n for n in read if n < count)
        self._fixed = (*(usable(captured[n - count]) for n in read if n >= count),)
        self._fixed += self.program.constants
        self._is_direct = self.program.is_direct
        # Arguments that the program returns unchanged must have been checked.
        self._handed_on = frozenset(self.program.handed_on)
        self._is_quick = self._handed_on.issubset(self._read) and device is _only_device()

    def begin_when_worth(self, begin: Callable[[], None]) -> None:
        """Starts the compilation of a faster program once calls have taken long enough."""
        self._overtaking.waiting.append(begin)
        self._is_timed = True

    def leave_calls_to(self, successor: Executable) -> None:
        """Makes calls that are in a loop stop early; they start again in the successor."""
        self._successor = successor
        self._overtaking.is_due = True

    @property
    def was_overtaken(self) -> bool:
        """Whether a call lasted so long that it ended for the faster program."""
        return self._overtaking.has_happened

    def serve_again(self, *, for_good: bool) -> None:
        """Makes calls finish in this program; times them unless it serves permanently."""
        self._overtaking.is_due = False
        self._is_timed = self._may_last or not for_good

    def run(self, arguments: Sequence[ConcreteArray]) -> list[ConcreteArray] | None:
        """Runs the program on arrays with elements in host memory.

        Returns:
            The results; None if the arguments need the general path; then nothing has happened.
        """
        if not self._is_quick or self.is_long:
            return None
        given = []
        for number in self._read:
            x = arguments[number]
            host = x._host
            if host is None:
                if is_pending(x):
                    return None
                host = self.host_of(x, stays=number in self._handed_on)
            given.append(host)
        program = self.program
        try:
            if self._is_direct:
                written = [_empty(shape, dtype) for shape, dtype in program.written]
            else:
                written = program.make_room()
        except MemoryError as error:
            raise self._failure(error) from error
        entry = self._timed_entry if self._is_timed else program.entry
        if entry(*given, *self._fixed, *written) is None:
            self._make_usable(arguments)
            return None
        if not self._is_direct:
            program.give_back(written)
            written = program.returned(dict(zip(self._read, given, strict=True)), written)
        results = []
        for array_type, host in zip(self._types, written, strict=True):
            result = _new_array(ConcreteArray)
            result.type = array_type
            result._host = host
            result._buffer = None
            result._device = None
            results.append(result)
        return results

    def _timed_entry(self, *arrays: HostArray) -> HostArray | None:
        clock = self._clock
        begun, start = time.perf_counter(), clock()
        try:
            made = self.program.entry(*arrays)
        except OvertakenError:
            return None
        self._note(clock() - start, time.perf_counter() - begun)
        return made

    def _make_usable(self, arguments: Sequence[ConcreteArray]) -> None:
        """Copies elements of arguments that are strided or repeated into C order."""
        for number in self._read:
            x = arguments[number]
            if x._host is not None:
                x._host = usable(x._host)

    def run_generally(self, arguments: Sequence[ConcreteArray]) -> list[ConcreteArray]:
        """Runs the program on arrays at any place.

        Raises:
            OvertakenError: `leave_calls_to` has been called, so another program must run the call.
        """
        self._make_usable(arguments)
        hosts = [
            self.host_of(x, stays=number in self._handed_on) for number, x in enumerate(arguments)
        ]
        written = self._run([*hosts, *self._captured])
        results = list(map(ConcreteArray, self._types, written))
        if self.device is not _only_device():
            for x in results:
                x._buffer = self.device.put(bytes_of(words_of(x.host())))
        return results

    def host_of(self, x: ConcreteArray, *, stays: bool) -> HostArray:
        """Returns the elements of an array for a program that reads them here.

        `stays` tells that they become a result, too: then they must not be overwritten later.
        """
        buffer: Foreign = x._buffer
        if buffer is not None and buffer.device is not self.device:
            if config.jax_transfer_guard or config.jax_transfer_guard_device_to_device:
                route = f"{x.type} from {buffer.device} to {self.device}"
                check_transfer("device_to_device", route)
            return x.host()
        if (
            not stays
            and x._host is None
            and buffer is not None
            and buffer.nbytes > _KEPT_VIEW_BYTES
        ):
            kind = buffer.type
            return self.device.to_numpy(buffer.view, kind.shape, kind.dtype)
        return x.host()

    def __call__(self, buffers: Sequence[Buffer]) -> list[Buffer]:
        """Runs the program on buffers; raises DeletedArrayError if one has been deleted."""
        return list(map(Buffer, self.invoke([x.view.ref for x in buffers]), self.result_types))

    def invoke(
        self, refs: Sequence[iree_runtime.VmRef], where: str | None = None
    ) -> list[iree_runtime.VmRef]:
        """Runs the program on IREE's references to arguments; returns references to the results."""
        device = self.device
        views = [ref.deref(HalBufferView) for ref in refs]
        kinds = [BufferType.of_view(view, device) for view in views]
        arguments = [
            device.to_numpy(view, kind.shape, kind.dtype)
            for view, kind in zip(views, kinds, strict=True)
        ]
        try:
            results = self._run(arguments, where)
        except OvertakenError:
            assert self._successor is not None
            return self._successor.invoke(refs, where)
        buffers = []
        for x, is_made in zip(results, self.program.makes, strict=True):
            # Two results that may both be donated later must not share memory.
            put = device.put if is_made else device.put_copy
            buffers.append(put(bytes_of(words_of(x))).view.ref)
        return buffers

    def _run(self, arguments: Sequence[HostArray], where: str | None = None) -> list[HostArray]:
        with span(f"run {self.name}", "call", driver="native"):
            clock = self._clock
            begun, start = time.perf_counter(), clock()
            try:
                results = self.program(arguments)
            except MemoryError as error:
                raise self._failure(error, where) from error
            self._note(clock() - start, time.perf_counter() - begun)
            return results

    def _note(self, seconds: float, elapsed: float) -> None:
        # Processor time: a faster program does not help a call that waits for a processor. Short
        # calls use the wall clock, because reading processor time takes longer than they do.
        self._clock = time.thread_time if seconds >= _LASTING else time.perf_counter
        self.is_long = self._may_last and seconds >= LONG_SECONDS
        # Compared with a program that several threads run, so by the wall clock.
        self.seconds = min(elapsed, self.seconds or elapsed)
        self.timed_calls += 1
        self._overtaking.spend(seconds)

    def _failure(self, error: MemoryError, where: str | None = None) -> RuntimeExecutionError:
        return device_failure(error, self.device, f"The compiled function {self.name!r}", where)


def is_pending(x: ConcreteArray) -> bool:
    """Tells whether a queued call is yet to compute an array."""
    buffer: Foreign = x._buffer
    return buffer is not None and buffer.ref is None and not buffer.is_deleted


def _only_device() -> Device | None:
    """Returns the device of arrays without a buffer; None if there are several devices."""
    devices = local_devices()
    return devices[0] if len(devices) == 1 and devices[0] is default_device() else None
