"""Loaded programs, and calls of their functions with buffers.

`Program` is a loaded binary, `Executable` one function of it. A call pushes references into a list,
invokes the virtual machine and takes references out, without reflection or wrappers. IREE's
contexts do not support concurrent use, so a program keeps a pool: a call takes an idle one (or
makes one, 0.4 ms) and returns it. Elsewhere: the choice of the faster driver (`driver_trial.py`),
calls with arrays (`compiled_function.py`), argument trees and types (the frontend's jit), compiling
(`compiler/`).
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Sequence

from iree import runtime as iree_runtime

from axir.dialect.core.config import config
from axir.dialect.core.errors import ParameterError
from axir.dialect.core.timeline import span
from axir.passes.transforms.lower_to_stablehlo import HostCall
from axir.runtime.device.buffers import Buffer, BufferType, HalBufferView
from axir.runtime.device.devices import INSTANCE, Device
from axir.runtime.device.failures import device_failure, short_status
from axir.runtime.device.process_state import abandon, call_in_forked_child, close_library_files
from axir.runtime.device.workers import thread_count
from axir.runtime.errors import LoadError

from .driver_trial import DriverTrial
from .host_calls import DispatchMarks, HostCalls, take_exception

_VmVariantList = iree_runtime.VmVariantList
# Handing a call to another thread costs 30 us, but milliseconds if other threads keep all cores
# busy.
LONG_SECONDS = 5e-3

_programs: weakref.WeakSet[Program] = weakref.WeakSet()


class Program:
    """A compiled module, loaded on a device.

    Args:
        binary: the result of `compile_module` for a fitting target.
        device: where it runs.
        host_functions: the functions of this process that the binary calls, in the order of their
            numbers.
        threads: how many threads may compute it, by default as many as `axir_num_threads` says.
        is_marked: whether the binary was compiled with marks of its dispatches.

    Raises:
        LoadError: the binary is damaged or made for another machine.

    >>> from axir.runtime import Target, compile_module, default_device
    >>> text = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }"
    >>> program = Program(compile_module(text, Target()), default_device())
    >>> program.function_names
    ['main']
    """

    def __init__(
        self,
        binary: bytes,
        device: Device,
        host_functions: Sequence[HostCall] = (),
        threads: int | None = None,
        is_marked: bool = False,
    ):
        self.device = device
        self.marks = DispatchMarks(device) if is_marked else None
        self.threads = threads or thread_count()
        self.size = len(binary)
        self._host_calls = HostCalls(host_functions, device) if host_functions else None
        try:
            self._module = iree_runtime.VmModule.copy_buffer(INSTANCE, binary)
        except (ValueError, RuntimeError, LookupError) as error:
            raise LoadError(
                f"The compiled program cannot be loaded: {short_status(error)}.",
                "It is damaged, or from another version of IREE: compile it again.",
            ) from error
        self._idle: dict[str, list[iree_runtime.VmContext]] = {
            driver: [] for driver in device.drivers
        }
        _programs.add(self)

    @property
    def function_names(self) -> list[str]:
        """Names of the functions that can be called."""
        return [name for name in self._module.function_names if not name.startswith("__")]

    def function(self, name: str = "main", work: int = 0) -> Executable:
        """Returns one function; `work` as for `Executable`."""
        return Executable(self, name, work)

    def lookup(self, name: str) -> iree_runtime.VmFunction:
        """Returns IREE's function of that name; raises ParameterError if it is absent."""
        function = self._module.lookup_function(name)
        if function is None:
            raise ParameterError(
                f"The program has no function {name!r}.",
                f"It has {', '.join(self.function_names)}.",
            )
        return function

    def idle_contexts(self, driver: str) -> list[iree_runtime.VmContext]:
        """Returns the pool of a driver's idle contexts: pop from it, append to it."""
        return self._idle[driver]

    def new_context(self, driver: str) -> iree_runtime.VmContext:
        """Returns a context on a driver; it runs the program's initializers."""
        handle = self.device.handle(driver, self.threads)
        sink = None if self.marks is None else self.marks.sink
        modules = [iree_runtime.create_hal_module(INSTANCE, handle, debug_sink=sink)]
        if self._host_calls is not None:
            modules.append(self._host_calls.module)
        try:
            return iree_runtime.VmContext(INSTANCE, [*modules, self._module])
        except (ValueError, RuntimeError) as error:
            raise LoadError(
                f"The compiled program does not run on {self.device}: {short_status(error)}.",
                "Compile it for this device, on this machine.",
            ) from error
        finally:
            close_library_files()

    def forget_contexts(self) -> None:
        """Drops all contexts in a forked child, because their threads stayed in the parent."""
        for pool in self._idle.values():
            abandon(list(pool))
            pool.clear()


def _forget_all_contexts() -> None:
    for program in list(_programs):
        program.forget_contexts()


call_in_forked_child(_forget_all_contexts)


class Executable:
    """A function of a loaded program: buffers in, buffers out. Threads may share it.

    On a CPU the option `axir_driver` names the driver; `auto` measures: the first calls run on one
    driver, then, unless they are too short to gain, on the other one, and the faster stays until
    the next trial. Both run the same code on the same memory, so the results are the same.

    Args:
        program: where the function is.
        name: its name there.
        work: estimated number of scalar operations of the largest operation of a call; a large one
            is tried on all cores first.

    Attributes:
        driver: the driver of the next call.
        is_long: whether the timed calls took so long that another thread may wait for the next.
        result_types: types of the results, known after a first call unless shapes vary; else None.
        quick: the driver, and its idle contexts, for calls that need not be timed; None during a
            trial.
        quick_calls: the number of such calls left, less than 0 for any number. The caller of such a
            call counts it, and calls `begin_trial` after the last one.
        vm_function: IREE's function.
    """

    __slots__ = (
        "__weakref__",
        "_result_count",
        "_trial",
        "driver",
        "is_long",
        "name",
        "program",
        "quick",
        "quick_calls",
        "result_types",
        "vm_function",
    )

    def __init__(self, program: Program, name: str = "main", work: int = 0):
        self.program = program
        self.name = name
        self.vm_function = program.lookup(name)
        self._result_count = 1
        self.result_types: list[BufferType] | None = None
        self.quick: tuple[str, list[iree_runtime.VmContext]] | None = None
        drivers = program.device.drivers
        if config.axir_driver in drivers:
            drivers = (config.axir_driver,)
        elif program.threads == 1:
            drivers = drivers[:1]
        self._trial = DriverTrial(work, drivers)
        self.driver = self._trial.driver
        self.quick_calls = 0
        self.is_long = False

    @property
    def device(self) -> Device:
        """Where the function runs."""
        return self.program.device

    @property
    def seconds(self) -> float:
        """How long a call takes, from the calls that were timed; 0 if there were too few."""
        return self._trial.seconds

    def __call__(self, buffers: Sequence[Buffer]) -> list[Buffer]:
        """Runs the function.

        Raises:
            DeletedArrayError: an argument has been deleted or donated.
            RuntimeExecutionError: the arguments do not fit, or the program failed.
            Exception: any exception that a host function raises.
        """
        refs = [x.view.ref if x.ref is None else x.ref for x in buffers]
        return self.wrap(self.invoke(refs))

    def invoke(
        self, refs: Sequence[iree_runtime.VmRef], where: str | None = None
    ) -> list[iree_runtime.VmRef]:
        """Runs the function on IREE's references (`Buffer.ref`); returns references to the results.

        Args:
            refs: The arguments.
            where: The user's line for errors; by default the calling thread's.
        """
        arguments = _VmVariantList(len(refs))
        push = arguments.push_ref
        for ref in refs:
            push(ref)
        results = _VmVariantList(self._result_count)
        if self.quick is not None:
            self.run(*self.quick, arguments, results, where)
            self.quick_calls -= 1
            if not self.quick_calls:
                self.begin_trial()
        else:
            driver = self.driver
            start = time.perf_counter()
            self.run(driver, self.program.idle_contexts(driver), arguments, results, where)
            self._record(driver, time.perf_counter() - start)
        return list(map(results.get_as_ref, range(len(results))))

    def wrap(self, refs: Sequence[iree_runtime.VmRef]) -> list[Buffer]:
        """Returns the buffers of the results of a call."""
        return list(map(Buffer, refs, self.result_types or self._learn_result_types(refs)))

    def run(
        self,
        driver: str,
        pool: list[iree_runtime.VmContext],
        arguments: iree_runtime.VmVariantList,
        results: iree_runtime.VmVariantList,
        where: str | None,
    ) -> None:
        """Runs the function in an idle context of a driver; raises an error with the cause."""
        try:
            context = pool.pop()
        except IndexError:
            context = self.program.new_context(driver)
        failure: list[BaseException] = []
        if self.program.marks is not None:
            self.program.marks.begin_call()
        try:
            with span(f"run {self.name}", "call", driver=driver):
                context.invoke(self.vm_function, arguments, results)
        except Exception as error:
            failure.append(self.failure(error, where))
        finally:
            pool.append(context)
        if failure:  # raised here, so that a host function's exception gets no context
            raise failure.pop()

    def _record(self, driver: str, seconds: float) -> None:
        trial = self._trial
        trial.record(driver, seconds)
        self.driver = trial.driver
        self.is_long = trial.seconds >= LONG_SECONDS
        if trial.calls_to_rest:
            self.quick_calls = trial.calls_to_rest
            self.quick = trial.driver, self.program.idle_contexts(trial.driver)

    def begin_trial(self) -> None:
        """Makes the next calls be timed again, as is due after `quick_calls`."""
        self.quick = None
        self._trial.begin_again()
        self.driver = self._trial.driver

    def _learn_result_types(self, refs: Sequence[iree_runtime.VmRef]) -> list[BufferType]:
        device = self.program.device
        types = [BufferType.of_view(ref.deref(HalBufferView), device) for ref in refs]
        declaration = self.vm_function.reflection.get("iree.abi.declaration", "?")
        if "?" not in declaration:  # static shapes: the result types are the same for every call
            self._result_count = len(types)
            self.result_types = types
        return types

    def failure(self, error: Exception, where: str | None = None) -> BaseException:
        """Returns the exception to raise: the host function's, or else one with IREE's message."""
        raised_by_host = take_exception()
        if raised_by_host is not None:
            return raised_by_host
        what = f"The compiled function {self.name!r}"
        failure = device_failure(error, self.program.device, what, where)
        failure.__cause__ = error
        return failure

    def __repr__(self) -> str:
        return f"Executable({self.name!r}, {self.program.device}, driver={self.driver!r})"
