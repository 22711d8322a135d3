"""Compiling a traced function and calling it: what `jit` and nested calls share.

A `Function` is compiled once for each device; the compiled form is kept with it. Arguments become
device buffers without a copy where their memory allows it, and results stay on the device until
they are read.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Hashable, Sequence

from iree import runtime as iree_runtime

from axir.dialect.core.annotations import Dtype, Foreign
from axir.dialect.core.array import ConcreteArray, as_array
from axir.dialect.core.config import config
from axir.dialect.core.context import user_frame
from axir.dialect.core.memo import derived
from axir.dialect.core.timeline import span, timeline
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.costs import largest_operation
from axir.dialect.program.effects import has_effects
from axir.dialect.program.function import Function
from axir.passes.transforms.lower_to_stablehlo import HostCall
from axir.passes.transforms.simplify import simplify_function
from axir.runtime.compiler.function_compilation import (
    Provisional,
    compile_function,
    compile_program,
)
from axir.runtime.compiler.native_compilation import give_up_kernel
from axir.runtime.device.buffers import Buffer, BufferType
from axir.runtime.device.devices import Device
from axir.runtime.errors import (
    CompileError,
    RuntimeExecutionError,
)
from axir.runtime.native.kernel_program import OvertakenError
from axir.runtime.native.object_files import ObjectFileError

from . import pending
from .arguments import buffer_of, check_donated, give_away, with_copies
from .background import Background, Caller
from .evaluated_calls import (
    CompiledMeanwhileError,
    check_results,
    evaluate,
    warn_of_failure,
    warn_of_missing_marks,
)
from .executable import Executable, Program
from .native_executable import NativeExecutable, is_pending
from .successor import ProgramTrial, Successor

_VmVariantList = iree_runtime.VmVariantList
_new_buffer = Buffer.__new__
_new_array = ConcreteArray.__new__
# The host side of results is made when a caller reads it.
_NO_HOST = itertools.repeat(None)
# Making a list for results takes 0.5 us. Up to this size they may live until the next call.
_SMALL_RESULT_BYTES = 4096


# All that are in use, so that a profiler can turn on the timeline for them.
_compiled_functions: weakref.WeakSet[CompiledFunction] = weakref.WeakSet()


def begin_timeline(shows_dispatches: bool) -> None:
    """Records calls and the operations they wait for on the timeline from now on.

    Args:
        shows_dispatches: Whether to record the programs' dispatches, too; each program is compiled
            once more for that, when it is called.
    """
    timeline.begin(shows_dispatches)
    for function in list(_compiled_functions):
        function.forget_quick_calls()


class CompiledFunction:
    """A function compiled for a device.

    The binary does not check its arguments: they must be of the types of the function's inputs.

    Args:
        function: The function to compile; its captures must be arrays.
        device: Where to run it.
        donated: Indices of inputs that the program may overwrite.
        waits: Whether to wait for the compiler. If not, calls are evaluated until it is done, and
            for good if it fails. Functions with effects always wait, because their effects must not
            happen twice.
    """

    def __init__(
        self,
        function: Function,
        device: Device,
        donated: tuple[int, ...] = (),
        waits: bool = True,
    ):
        # Before simplification: a branch that is known to be taken may have other weak types.
        self.result_types = function.output_types
        with span("simplify", "compiler", function=function.name):
            function = simplify_function(function, is_final=True)
        self.function = function
        self.device = device
        self.donated = donated
        self._is_empty = not function.outputs and not has_effects(function)
        # None if the function is not or could not be compiled, and is evaluated.
        self._executable: Executable | NativeExecutable | None = None
        self._making: Background[Executable | NativeExecutable] | None = None
        # The same, once a call may be a quick one of machine code.
        self._native: NativeExecutable | None = None
        self._caller = Caller.here()
        # The faster program, while the first one serves.
        self._successor: Successor | None = None
        self._provisional: Provisional | None = None
        # Finds the faster of both once both are there.
        self._trial: ProgramTrial | None = None
        if not (self._is_empty or waits or has_effects(function)):
            self._making = Background(self._compile)
        elif not self._is_empty:
            try:
                self._adopt(self._compile())
            except CompileError as error:
                if config.axir_on_compile_failure == "raise":
                    raise
                warn_of_failure(error, function.name)
        # For each result its number and types, once a call may be a quick one.
        self._results: list[tuple[int, ShapedArray, BufferType]] | None = None
        # Spare lists for results, which are reused although they keep the last results alive until
        # then.
        self._spare_lists: list[iree_runtime.VmVariantList] = []
        result_bytes = sum(t.size * t.dtype.itemsize for t in self.result_types)
        self._reuses_lists = result_bytes <= _SMALL_RESULT_BYTES
        # The same program with marks of its dispatches, compiled when they are first asked for.
        self._marked: Executable | NativeExecutable | None = None
        _compiled_functions.add(self)

    @property
    def code_size(self) -> int:
        """Size of the compiled program in bytes; 0 before it is compiled."""
        return 0 if self._executable is None else self._executable.program.size

    def forget_quick_calls(self) -> None:
        """Makes the next call take the general path, which records it on the timeline."""
        self._results = self._native = None

    def _adopt(self, executable: Executable | NativeExecutable) -> None:
        """Makes calls run a program from now on."""
        captured = self.function.captured
        self._constants = [buffer_of(as_array(x), self.device) for x in captured]
        self._constant_refs = [buffer.view.ref for buffer in self._constants]
        self._argument_count = len(self.function.inputs) + len(self._constants)
        self._executable = executable
        if self._successor is not None and isinstance(executable, NativeExecutable):
            self._successor.begin_when_worth(executable)

    def go_on_with(self, executable: Executable) -> None:
        """Makes calls run the successor of the present program."""
        # A call that is under way keeps its program, unless it is in a loop.
        served = self._executable
        if isinstance(served, NativeExecutable):
            self._trial = ProgramTrial(served, executable)
        self._results = self._marked = None
        self._executable = executable
        self._native = self._successor = None
        if isinstance(served, NativeExecutable):
            served.leave_calls_to(executable)

    def _go_on_with_trial(self, trial: ProgramTrial) -> Executable | NativeExecutable:
        """Returns the program for this call: the one to be timed, or the faster one for good."""
        executable, is_over = trial.next()
        if self._trial is not trial and self._executable is not None:
            return self._executable  # another thread has ended the trial
        if executable is not self._executable:
            self._results = self._native = None
            self._executable = executable
        if is_over:
            self._trial = None
            if isinstance(executable, NativeExecutable) and self._provisional is not None:
                self._provisional.remember_as_faster()
        return executable

    def _look_for_program(self) -> None:
        """Adopts the program if the compiler is done; warns, once, if it has failed."""
        making = self._making
        if making is None:
            return
        if making.is_lost:
            self._making = Background(self._compile)
        elif making.is_done:
            if making.value is not None:
                self._adopt(making.value)
            self._making = None
            failure = making.failure
            if isinstance(failure, CompileError):
                warn_of_failure(failure, self.function.name)
            elif failure is not None:
                raise failure

    def _compile(self) -> Executable | NativeExecutable:
        function, device = self.function, self.device
        calls: list[HostCall] = []
        made = compile_program(function, device, self.donated, calls)
        # Host functions run in the thread of their call, where the user expects them.
        self._is_deferrable = not calls
        if not isinstance(made, bytes):
            kernels = made.kernels if isinstance(made, Provisional) else made
            try:
                native = NativeExecutable(kernels, device, function, self.result_types, calls)
            except ObjectFileError as error:
                give_up_kernel(function.name, error)
                made = compile_function(function, device, self.donated, calls)
            else:
                if isinstance(made, Provisional):
                    self._successor = Successor(self, made.compile, calls, self._caller)
                    self._provisional = made
                return native
        return Program(made, device, calls).function("main", work=largest_operation(function))

    def _compile_marked(self) -> Executable:
        function = self.function
        calls: list[HostCall] = []
        binary = compile_function(function, self.device, self.donated, calls, marks_dispatches=True)
        program = Program(binary, self.device, calls, is_marked=True)
        return program.function("main", work=largest_operation(function))

    def __call__(self, arguments: Sequence[ConcreteArray]) -> list[ConcreteArray]:
        """Runs the function on the values of the inputs.

        Raises:
            RuntimeExecutionError: for arguments of other types, which the binary does not check.
        """
        expected = [(v.type.shape, v.type.dtype) for v in self.function.inputs]
        given = [(x.type.shape, x.type.dtype) for x in arguments]
        if given != expected:
            raise RuntimeExecutionError(
                f"the program {self.function.name} takes ({_listed(expected)}), not "
                f"({_listed(given)}).",
                "Convert the arguments, or compile the function for theirs.",
            )
        return self.run(arguments)

    def run(self, arguments: Sequence[ConcreteArray]) -> list[ConcreteArray]:  # noqa: C901
        """Runs the function on the inputs' values.

        Once nothing is left to decide, to copy or to look at, this is a loop over the arguments, a
        call of IREE, and a loop over the results. All of it is written out: a call of a function or
        a constructor would cost as much as its body.
        """
        native = self._native
        if native is not None and not (config.jax_debug_nans or config.jax_debug_infs):
            donated = self.donated
            if donated and len(set(map(id, arguments))) < len(arguments):
                return self._run(arguments)  # this may refuse the call
            made = native.run(arguments)
            if made is None:
                return self._run(arguments)
            for number in donated:
                arguments[number].delete()
            return made
        plan = self._results
        if plan is None or config.jax_debug_nans or config.jax_debug_infs:
            return self._run(arguments)
        executable: Foreign = self._executable
        quick = executable.quick
        if quick is None or executable.is_long or (self.donated and not self._can_give(arguments)):
            return self._run(arguments)
        device = self.device
        inputs = _VmVariantList(self._argument_count)
        push = inputs.push_ref
        for x in arguments:
            buffer: Foreign = x._buffer
            if buffer is None:
                buffer = buffer_of(x, device)
            elif buffer.type.device is not device:
                return self._run(arguments)
            ref = buffer.ref
            if ref is None:
                return self._run(arguments)
            push(ref)
        for ref in self._constant_refs:
            push(ref)
        for number in self.donated:
            x = arguments[number]
            x._buffer.ref = x._buffer = x._host = None  # type: ignore[union-attr]
        driver, contexts = quick
        failure: BaseException | None = None
        try:
            context = contexts.pop()
        except IndexError:
            context = executable.program.new_context(driver)
        try:
            outputs = self._spare_lists.pop() if self._reuses_lists else _VmVariantList(len(plan))
        except IndexError:
            outputs = _VmVariantList(len(plan))
        try:
            context.invoke(executable.vm_function, inputs, outputs)
        except Exception as error:
            failure = executable.failure(error)
        finally:
            contexts.append(context)
        if failure is not None:  # raised here to keep a host function's context out
            raise failure
        executable.quick_calls -= 1
        if not executable.quick_calls:
            executable.begin_trial()
        ref_of = outputs.get_as_ref
        results = []
        for index, array_type, buffer_type in plan:
            buffer = _new_buffer(Buffer)
            buffer.ref = ref_of(index)
            buffer.type = buffer_type
            result = _new_array(ConcreteArray)
            result.type = array_type
            result._host = result._device = None
            result._buffer = buffer
            results.append(result)
        if self._reuses_lists:
            self._spare_lists.append(outputs)
        return results

    def _can_give(self, arguments: Sequence[ConcreteArray]) -> bool:
        """Tells whether donated arguments can be overwritten: they have no other readers."""
        if pending.is_any_unfinished():
            return False
        for number in self.donated:
            buffer: Foreign = arguments[number]._buffer
            if buffer is None or buffer.type.is_borrowed:
                return False
        return len({id(x._buffer) for x in arguments}) == len(arguments)

    def _with_marks(
        self, executable: Executable | NativeExecutable
    ) -> Executable | NativeExecutable:
        """Returns the program with marks of its dispatches, or the given one without them."""
        if isinstance(executable, NativeExecutable) and self._provisional is None:
            return executable  # one kernel: its mark would equal the call's
        if self._marked is None:
            try:
                self._marked = self._compile_marked()
            except CompileError as error:
                self._marked = executable
                warn_of_missing_marks(self.function.name, error)
        return self._marked

    def _run(self, arguments: Sequence[ConcreteArray]) -> list[ConcreteArray]:
        """Runs the function in the general case."""
        if not timeline.is_on:
            return self._run_generally(arguments)
        frame = user_frame()
        line = "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"
        with span(self.function.name, "call", line=line, device=str(self.device)):
            return self._run_generally(arguments)

    def _run_generally(self, arguments: Sequence[ConcreteArray]) -> list[ConcreteArray]:
        if self._is_empty:
            return []
        if self._executable is None:
            self._look_for_program()
        executable = self._executable
        successor = self._successor  # which may be done at any time
        if successor is not None and successor.is_lost:
            successor.begin()
        if executable is None:
            try:
                return evaluate(self.function, arguments, self.donated, self._making)
            except CompiledMeanwhileError:
                return self._run_generally(arguments)
        return self._run_program(executable, arguments)

    def _run_program(
        self, executable: Executable | NativeExecutable, arguments: Sequence[ConcreteArray]
    ) -> list[ConcreteArray]:
        if timeline.shows_dispatches:
            executable = self._with_marks(executable)
        elif self._trial is not None:
            executable = self._go_on_with_trial(self._trial)
        is_checked = config.jax_debug_nans or config.jax_debug_infs
        originals = with_copies(arguments, self.donated) if is_checked else arguments
        if isinstance(executable, NativeExecutable) and _is_at_hand(executable, arguments):
            results = self._run_on_host(executable, arguments)
        else:
            results = self._run_on_buffers(executable, arguments, is_checked)
        if is_checked:
            check_results(self.function, originals, results)
        return results

    def _run_on_buffers(
        self,
        executable: Executable | NativeExecutable,
        arguments: Sequence[ConcreteArray],
        is_checked: bool,
    ) -> list[ConcreteArray]:
        """Runs a program on buffers of the device; enables quick calls if possible."""
        device = self.device
        buffers = [buffer_of(x, device) for x in arguments]
        if self.donated:
            give_away(arguments, self.donated, buffers)
        outputs = self._outputs(executable, [*buffers, *self._constants], is_checked)
        results = list(map(ConcreteArray, self.result_types, _NO_HOST, outputs))
        is_settled = self._trial is None and not timeline.is_on
        if self._results is None and executable.result_types is not None and is_settled:
            indices = range(len(results))
            types = executable.result_types
            self._results = list(zip(indices, self.result_types, types, strict=True))
        return results

    def _run_on_host(
        self, executable: NativeExecutable, arguments: Sequence[ConcreteArray]
    ) -> list[ConcreteArray]:
        """Runs machine code on arrays in host memory, without copies."""
        if self._trial is None and not timeline.is_on:
            self._native = executable
            if self._executable is not executable:  # which another thread may replace just now
                self._native = None
        if self.donated:
            check_donated(arguments, self.donated)
            pending.finish_all()
        try:
            results = executable.run_generally(arguments)
        except OvertakenError:
            return self._run_generally(arguments)
        for number in self.donated:
            arguments[number].delete()
        return results

    def _outputs(
        self, executable: Executable | NativeExecutable, buffers: list[Buffer], is_checked: bool
    ) -> list[Buffer]:
        """Calls the program, or leaves that to another thread: see `pending.py`."""
        if (
            (executable.is_long or any([x.ref is None for x in buffers]))
            and executable.result_types is not None
            and self._is_deferrable
            and config.jax_cpu_enable_async_dispatch
            and not is_checked
            and pending.may_defer()
        ):
            return pending.defer(executable, buffers, overwrites=bool(self.donated))
        if self.donated:
            pending.finish_all()  # another call may read memory to be overwritten
        return executable(buffers)


def _is_at_hand(executable: NativeExecutable, arguments: Sequence[ConcreteArray]) -> bool:
    """Tells whether machine code is to run now, in this thread, on arrays of the host."""
    if executable.is_long and config.jax_cpu_enable_async_dispatch:
        return False
    return not any(map(is_pending, arguments))


def _listed(types: Sequence[tuple[tuple[int, ...], Dtype]]) -> str:
    return ", ".join(f"{dtype}{list(shape)}" for shape, dtype in types)


def compiled(
    function: Function,
    device: Device,
    donated: tuple[int, ...] = (),
    waits: bool | None = None,
) -> CompiledFunction:
    """Returns the compiled form of a function, made when first asked for.

    Args:
        function: As for `CompiledFunction`, like `device` and `donated`.
        device: See there.
        donated: See there.
        waits: Whether to wait for the compiler, by default as `axir_wait_for_compiler` says.
    """
    if waits is None:
        waits = config.axir_wait_for_compiler
    return _compiled(function, device, donated, waits, config.cache_key)


@derived
def _compiled(
    function: Function, device: Device, donated: tuple[int, ...], waits: bool, options: Hashable
) -> CompiledFunction:
    """Returns the compiled form under the current options, by which it is kept."""
    return CompiledFunction(function, device, donated, waits)
