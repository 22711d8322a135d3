"""`NativeExecutable`: calls of machine code with buffers, as `Executable` calls IREE's programs.

What does not live here: calls with arrays whose elements are at hand, which need no buffer
(`compiled_function.py`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from iree import runtime as iree_runtime

from axir.dialect.core.annotations import HostArray
from axir.dialect.core.extended_dtypes import words_of
from axir.dialect.core.timeline import span
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.narrow_elements import bytes_of
from axir.runtime.device.buffers import Buffer, BufferType, HalBufferView
from axir.runtime.device.devices import Device
from axir.runtime.device.freed_memory import keep_freed_memory
from axir.runtime.native.kernel_program import KernelProgram
from axir.runtime.native.programs import NativeProgram

from .executable import LONG_SECONDS


class NativeExecutable:
    """A program of one kernel on a CPU device. Threads may share it.

    Args:
        kernel: The program.
        device: Where its arguments and results lie.
        types: The types of its results.
        name: What it is called on timelines.

    Attributes:
        program: The loaded program.
        device: As given.
        is_timed: Whether a call may take long.
        is_long: Whether the last call took so long that another thread may make the next.
        result_types: Types of the results.
        quick: None, as an `Executable` has it whose calls are timed.
    """

    quick = None

    def __init__(
        self, kernel: KernelProgram, device: Device, types: Sequence[ShapedArray], name: str
    ):
        keep_freed_memory()
        self.program = NativeProgram(kernel)
        self.device = device
        self.is_long = False
        self.is_timed = kernel.has_loops
        self._name = name
        self.result_types = [BufferType(x.shape, x.dtype, device) for x in types]

    def __call__(self, buffers: Sequence[Buffer]) -> list[Buffer]:
        """Runs the program; raises DeletedArrayError where an argument has been deleted."""
        refs = self.invoke([x.view.ref for x in buffers])
        return list(map(Buffer, refs, self.result_types))

    def invoke(
        self, refs: Sequence[iree_runtime.VmRef], where: str | None = None
    ) -> list[iree_runtime.VmRef]:
        """Runs the program on IREE's references to arguments; returns those of the results."""
        device = self.device
        views = [ref.deref(HalBufferView) for ref in refs]
        kinds = [BufferType.of_view(view, device) for view in views]
        arguments = [
            device.to_numpy(view, kind.shape, kind.dtype)
            for view, kind in zip(views, kinds, strict=True)
        ]
        results = self.run(arguments)
        return [device.put(bytes_of(words_of(x))).view.ref for x in results]

    def run(self, arguments: Sequence[HostArray]) -> list[HostArray]:
        """Runs the program on arrays of the host; see `NativeProgram`."""
        with span(f"run {self._name}", "call", driver="native"):
            if not self.is_timed:
                return self.program(arguments)
            start = time.perf_counter()
            results = self.program(arguments)
            self.is_long = time.perf_counter() - start >= LONG_SECONDS
            return results
