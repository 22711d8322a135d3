"""Loaded programs and the fast way to call them.

`Program` is a loaded binary, `Executable` one function of it. A call pushes references into a
list, invokes the virtual machine and takes references out, without reflection or wrappers: 3.9 us
for one scalar, 41 us for 50 arrays in and out; the bare IREE calls take 3.4 and 36. IREE's
contexts are not made for concurrent use, so a program keeps a pool: a call takes an idle one
(or makes one, 0.4 ms) and puts it back. What does not live here: argument trees and types (the
frontend's jit), compiling (`compiler/`).
"""

from __future__ import annotations

import os
import statistics
import threading
import time
import weakref
from collections.abc import Sequence

from iree import runtime as iree_runtime

from axir.dialect.core.config import config
from axir.dialect.core.errors import ParameterError
from axir.dialect.program.costs import PARALLEL_OPERATIONS
from axir.passes.transforms.lower_to_stablehlo import HostCall
from axir.runtime.device.buffers import Buffer, BufferType, HalBufferView
from axir.runtime.device.devices import INSTANCE, Device, short_status
from axir.runtime.device.fork_safety import abandon, call_in_forked_child
from axir.runtime.errors import LoadError, OutOfMemoryError, RuntimeExecutionError

from .host_calls import HostCalls, take_exception

_VmVariantList = iree_runtime.VmVariantList

# A call of local-task costs 13 us more than one of local-sync: below this nothing can be won.
_SHORT_CALL_SECONDS = 40e-6
# The first call of each driver warms up, and does not count.
_CALLS_PER_DRIVER = 4
# A short call has to gain clearly from more cores, since its times scatter.
_SHORT_CALL_RATIO = 0.9
_LONG_CALL_SECONDS = 300e-6
# Others may keep the cores busy during a trial, or begin to later: then local-task, whose threads
# wait for each other, loses its gain. So there are further trials after this many calls, then after
# four times as many, and so on.
_CALLS_BETWEEN_TRIALS = 8
_TRIALS = 5
# A call that takes this long on one core is not tried there.
_LONGEST_TRIAL_SECONDS = 1.0
_SYNC_FIRST = ("local-sync", "local-task")
_CORE_COUNT = (
    len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
)

_programs: weakref.WeakSet[Program] = weakref.WeakSet()


class Program:
    """A compiled module, loaded on a device.

    Args:
        binary: what `compile_module` returned, for a target that fits the device.
        device: where it runs.
        host_functions: what the binary calls in this process, in the order of their numbers.

    Raises:
        LoadError: the binary is damaged or made for another machine.

    >>> from axir.runtime import Target, compile_module, default_device
    >>> text = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }"
    >>> program = Program(compile_module(text, Target()), default_device())
    >>> program.function_names
    ['main']
    """

    def __init__(self, binary: bytes, device: Device, host_functions: Sequence[HostCall] = ()):
        self.device = device
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
        """Returns IREE's function of that name; raises ParameterError if there is none."""
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
        handle = self.device.handle(driver)
        modules = [iree_runtime.create_hal_module(INSTANCE, handle)]
        if self._host_calls is not None:
            modules.append(self._host_calls.module)
        try:
            return iree_runtime.VmContext(INSTANCE, [*modules, self._module])
        except (ValueError, RuntimeError) as error:
            raise LoadError(
                f"The compiled program does not run on {self.device}: {short_status(error)}.",
                "Compile it for this device, on this machine.",
            ) from error

    def forget_contexts(self) -> None:
        """Leaves all contexts behind, as a forked child must: their threads are gone."""
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
        name: what it is called there.
        work: estimated number of scalar operations of the largest operation of a call; a large one
            is tried on all cores first.
    """

    __slots__ = (
        "__weakref__",
        "_function",
        "_idle",
        "_result_count",
        "_result_indices",
        "_result_types",
        "_trial",
        "driver",
        "name",
        "program",
    )
    driver: str

    def __init__(self, program: Program, name: str = "main", work: int = 0):
        self.program = program
        self.name = name
        self._function = program.lookup(name)
        self._result_count = 1
        self._result_indices = range(1)
        self._result_types: list[BufferType] | None = None
        # The pool of the driver in use; None while both are on trial.
        self._idle: list[iree_runtime.VmContext] | None = None
        self._trial: _DriverTrial | None = None
        drivers = program.device.drivers
        if len(drivers) > 1 and config.axir_driver == "auto" and _CORE_COUNT > 1:
            self._trial = _DriverTrial(work)
            self.driver = self._trial.driver
        else:
            self._use(config.axir_driver if config.axir_driver in drivers else drivers[0])

    def _use(self, driver: str) -> None:
        self.driver = driver
        self._idle = self.program.idle_contexts(driver)
        self._trial = None

    def __call__(self, buffers: Sequence[Buffer]) -> list[Buffer]:
        """Runs the function.

        Raises:
            DeletedArrayError: an argument has been deleted or donated.
            RuntimeExecutionError: the arguments do not fit, or the program failed.
            Exception: whatever a host function raises.
        """
        # Written out rather than shared with `invoke`: every Python call here costs 0.1 us.
        arguments = _VmVariantList(len(buffers))
        push = arguments.push_ref
        try:
            for buffer in buffers:
                push(buffer.ref)
        except TypeError:
            if buffer.ref is None:
                raise buffer.deleted_error() from None
            raise
        results = _VmVariantList(self._result_count)
        idle = self._idle
        if idle is None:
            self._run(arguments, results)
        else:
            try:
                context = idle.pop()
            except IndexError:
                context = self.program.new_context(self.driver)
            failure: list[BaseException] = []
            try:
                context.invoke(self._function, arguments, results)
            except Exception as error:
                failure.append(self._failure(error))
            finally:
                idle.append(context)
            if failure:  # raised out here, so that a host function's exception gets no context
                raise failure.pop()
        types = self._result_types
        get = results.get_as_ref
        if types is None:
            refs = [get(index) for index in range(len(results))]
            return list(map(Buffer, refs, self._learn_result_types(refs)))
        return list(map(Buffer, map(get, self._result_indices), types))

    def invoke(self, refs: Sequence[iree_runtime.VmRef]) -> list[iree_runtime.VmRef]:
        """Runs the function on IREE's references (`Buffer.ref`); returns those of the results."""
        arguments = _VmVariantList(len(refs))
        push = arguments.push_ref
        for ref in refs:
            push(ref)
        results = _VmVariantList(self._result_count)
        self._run(arguments, results)
        return list(map(results.get_as_ref, range(len(results))))

    def _run(
        self, arguments: iree_runtime.VmVariantList, results: iree_runtime.VmVariantList
    ) -> None:
        trial = self._trial
        driver = self.driver if trial is None else trial.driver
        idle = self.program.idle_contexts(driver)
        start = time.perf_counter()
        try:
            context = idle.pop()
        except IndexError:
            context = self.program.new_context(driver)
        failure: list[BaseException] = []
        try:
            context.invoke(self._function, arguments, results)
        except Exception as error:
            failure.append(self._failure(error))
        finally:
            idle.append(context)
        if failure:
            raise failure.pop()
        if trial is not None:
            trial.record(driver, time.perf_counter() - start)
            self.driver = trial.driver
            if trial.is_over:
                self._use(trial.driver)

    def _learn_result_types(self, refs: Sequence[iree_runtime.VmRef]) -> list[BufferType]:
        device = self.program.device
        types = [BufferType.of_view(ref.deref(HalBufferView), device) for ref in refs]
        declaration = self._function.reflection.get("iree.abi.declaration", "?")
        if "?" not in declaration:  # all shapes are static: every call has these results
            self._result_count = len(types)
            self._result_indices = range(len(types))
            self._result_types = types
        return types

    def _failure(self, error: Exception) -> BaseException:
        """Returns what to raise: what a host function raised, else what IREE says."""
        raised_by_host = take_exception()
        if raised_by_host is not None:
            return raised_by_host
        status = short_status(error)
        failure: RuntimeExecutionError
        if status.startswith("resource exhausted"):
            failure = OutOfMemoryError(
                f"The compiled function {self.name!r} needs an array for which "
                f"{self.program.device} has no memory.",
                "Compute in smaller pieces, or look for an extent larger than it should be.",
            )
        else:
            failure = RuntimeExecutionError(
                f"The compiled function {self.name!r} failed on {self.program.device}: {status}.",
                "Check that the arguments have the shapes and dtypes that it was compiled for.",
            )
        failure.__cause__ = error
        return failure

    def __repr__(self) -> str:
        return f"Executable({self.name!r}, {self.program.device}, driver={self.driver!r})"


class _DriverTrial:
    """Finds the faster CPU driver of a function from the times of its calls.

    Unless calls are too short to gain, it tries again from time to time, and rests in between.
    """

    def __init__(self, work: int):
        starts_parallel = work >= PARALLEL_OPERATIONS
        self._order = ("local-task", "local-sync") if starts_parallel else _SYNC_FIRST
        self._trials_left = _TRIALS
        self._rest = _CALLS_BETWEEN_TRIALS
        self._resting_calls = 0
        self._lock = threading.Lock()
        self.is_over = False
        self._begin()

    def _begin(self) -> None:
        self._times: dict[str, list[float]] = {driver: [] for driver in self._order}
        self.driver = self._order[0]

    @property
    def is_resting(self) -> bool:
        """Whether the driver is decided for now."""
        return self._resting_calls > 0

    def record(self, driver: str, seconds: float) -> None:
        """Takes the time of a call; afterwards `driver` is the one for the next call."""
        with self._lock:  # threads share an executable
            if self._resting_calls:
                self._resting_calls -= 1
                if not self._resting_calls:
                    self._begin()
            elif driver == self.driver and not self.is_over:
                self._times[driver].append(seconds)
                if len(self._times[driver]) == _CALLS_PER_DRIVER:
                    self._go_on(min(self._times[driver]))

    def _go_on(self, best: float) -> None:
        """Decides, or turns to the second driver, after the calls of one."""
        first, second = self._order
        if self.driver == second:
            self._settle()
        elif first == "local-sync" and best < _SHORT_CALL_SECONDS:
            self.is_over = True
        elif first == "local-task" and best * _CORE_COUNT > _LONGEST_TRIAL_SECONDS:
            self.is_over = True
        else:
            self.driver = second

    def _settle(self) -> None:
        sync, task = (statistics.median(self._times[driver][1:]) for driver in _SYNC_FIRST)
        is_long = sync >= _LONG_CALL_SECONDS
        is_parallel = task < sync * (1.0 if is_long else _SHORT_CALL_RATIO)
        self.driver = "local-task" if is_parallel else "local-sync"
        self._trials_left -= 1
        if self._trials_left:
            self._resting_calls = self._rest
            self._rest *= 4
        else:
            self.is_over = True
