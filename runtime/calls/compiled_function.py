"""Compiling a traced function and calling it: what `jit` and nested calls share.

A `Function` is compiled once for each device; the compiled form is kept with it. Arguments become
device buffers without a copy where their memory allows it, and results stay on the device until
somebody looks.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Hashable, Sequence

import numpy as np

from axir.dialect.core.annotations import Foreign
from axir.dialect.core.array import ConcreteArray, as_array
from axir.dialect.core.config import config
from axir.dialect.core.context import user_frame
from axir.dialect.core.extended_dtypes import words_of
from axir.dialect.core.memo import derived
from axir.dialect.core.state import outside_traces
from axir.dialect.ops.calls import jit_call as call
from axir.dialect.program.costs import largest_operation
from axir.dialect.program.effects import has_effects
from axir.dialect.program.function import Function
from axir.dialect.program.primitive import check_finite
from axir.dialect.program.rules import Operand
from axir.passes.framework.pipeline import run_passes
from axir.passes.framework.registry import find_pass
from axir.passes.transforms.lower_to_stablehlo import HostCall, lower_functions
from axir.passes.transforms.simplify import simplify_function
from axir.runtime.compiler import compile_module
from axir.runtime.compiler.target import Target
from axir.runtime.device.buffers import Buffer
from axir.runtime.device.devices import Device, default_device
from axir.runtime.errors import CompileError, CompileFailureWarning

from .executable import Executable, Program

# The host side of results is made when somebody looks.
_NO_HOST = itertools.repeat(None)
LEGALIZATION = "legalize-for-iree"
# Further passes by platform, from this optimization level on.
TUNING = {"cpu": "tune-for-cpu"}
_TUNING_LEVEL = 1


def buffer_of(array: ConcreteArray, device: Device) -> Buffer:
    """Returns an array's memory on a device, copying it there only if it is not there yet."""
    buffer: Foreign = array._buffer
    if buffer is not None and not buffer.is_deleted:
        if buffer.device is device:
            return buffer
        return device.put(words_of(array.host()))
    host = words_of(array.host())
    if host.flags.writeable:
        # Arrays are immutable, so their memory can be shared with the device.
        host = host.view()
        host.flags.writeable = False
    buffer = array._buffer = device.put(host)
    return buffer


class CompiledFunction:
    """A function compiled for a device.

    Args:
        function: What to compile; its captures must be arrays.
        device: Where to run it.
        donated: Indices of inputs whose memory the program may overwrite.
    """

    def __init__(self, function: Function, device: Device, donated: tuple[int, ...] = ()):
        function = simplify_function(function, is_final=True)
        self.function = function
        self.device = device
        self.result_types = function.output_types
        self.donated = donated
        self._is_empty = not function.outputs and not has_effects(function)
        # None if the function could not be compiled, and is evaluated.
        self._run: Executable | None = None
        if not self._is_empty:
            try:
                self._run = self._compile()
            except CompileError as error:
                if config.axir_on_compile_failure == "raise":
                    raise
                _warn_of(error, function.name)
        self._constants = (
            [buffer_of(as_array(x), device) for x in function.captured] if self._run else []
        )

    def _compile(self) -> Executable:
        function = self.function
        # Only what runs in the host's memory calls Python functions.
        calls: list[HostCall] | None = [] if self.device.platform == "cpu" else None
        binary = compile_function(function, self.device, self.donated, calls)
        program = Program(binary, self.device, calls or ())
        return program.function("main", work=largest_operation(function))

    def __call__(self, arguments: Sequence[ConcreteArray]) -> list[ConcreteArray]:
        """Runs the function on the inputs' values."""
        if self._is_empty:
            return []
        run = self._run
        if run is None:
            return self._evaluate(arguments)
        device = self.device
        is_checked = config.jax_debug_nans or config.jax_debug_infs
        originals = _kept(arguments, self.donated) if is_checked else arguments
        if self.donated:
            arguments = _give_away(arguments, self.donated)
        buffers = []
        for x in arguments:
            buffer: Foreign = x._buffer
            if buffer is None or buffer.type.device is not device or buffer.ref is None:
                buffer = buffer_of(x, device)
            buffers.append(buffer)
        buffers += self._constants
        outputs = run(buffers)
        results = list(map(ConcreteArray, self.result_types, _NO_HOST, outputs))
        if is_checked:
            self._check_finite(originals, results)
        return results

    def _evaluate(self, arguments: Sequence[ConcreteArray]) -> list[ConcreteArray]:
        """Runs the function op by op in NumPy, calls and loops in it as well."""
        if self.donated:
            arguments = _give_away(arguments, self.donated)
        with outside_traces(), config(jax_disable_jit=True):
            return self.function.evaluate(*arguments)

    def _check_finite(
        self, arguments: Sequence[ConcreteArray], results: Sequence[ConcreteArray]
    ) -> None:
        """Under the debugging options: finds the op that made a NaN or infinity, and raises."""
        failure: FloatingPointError | None = None
        for x in results:
            try:
                check_finite(f"the compiled code of {self.function.name!r}", x.host())
            except FloatingPointError as error:
                failure = error
                break
        if failure is not None:
            # Op by op the evaluator meets the first op that fails, and knows its line.
            self.function.evaluate(*arguments)
            raise failure


def _warn_of(error: CompileError, name: str) -> None:
    """Warns once, at the user's line, of a program that is evaluated for it does not compile."""
    frame = user_frame()
    file, line = ("<axir>", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)
    text = f"{name!r} is evaluated op by op in NumPy, which is slow: {error.message}"
    if error.where:
        text += f"\n  at {error.where}"
    warnings.warn_explicit(text, CompileFailureWarning, file, line)


def _kept(arguments: Sequence[ConcreteArray], donated: tuple[int, ...]) -> list[ConcreteArray]:
    """Returns the arguments, those donated as copies that a run leaves alone."""
    return [
        ConcreteArray(x.type, np.array(x.host())) if index in donated else x
        for index, x in enumerate(arguments)
    ]


def _give_away(arguments: Sequence[ConcreteArray], donated: tuple[int, ...]) -> list[ConcreteArray]:
    """Deletes donated arrays; returns arguments whose memory the program may overwrite."""
    given = list(arguments)
    for index in donated:
        original = arguments[index]
        host, buffer = original._host, original._buffer
        # Memory that the host has seen may be visible through NumPy arrays: those must not change.
        given[index] = ConcreteArray(
            original.type, np.array(host) if host is not None else None, buffer
        )
        if host is not None:
            given[index]._buffer = None
        original._host = original._buffer = None
    return given


def prepare_for_target(module: Foreign, target: Target) -> None:
    """Legalizes a StableHLO module for IREE, and tunes it for a machine, in place."""
    platform = target.backend
    is_tuned = target.opt_level >= _TUNING_LEVEL
    legalization = {"platform": platform, "fuses": is_tuned}
    passes = [find_pass(LEGALIZATION).from_options(legalization)]
    if is_tuned and platform in TUNING:
        options = {"vector_bits": target.vector_bits}
        passes.append(find_pass(TUNING[platform]).from_options(options))
    run_passes(module, passes)


def compile_function(
    function: Function,
    device: Device,
    donated: tuple[int, ...] = (),
    host_functions: list[HostCall] | None = None,
) -> bytes:
    """Lowers, legalizes and compiles a function for a device; returns IREE's binary.

    `host_functions` collects the Python functions that it calls, which are no part of the binary;
    None if it must run without this process.
    """
    module = lower_functions({"main": function}, device.platform, donated, host_functions)
    # Whoever calls the binary has arguments of known types: see `CompiledFunction`.
    target = Target(
        backend=device.platform, opt_level=config.axir_opt_level, checks_arguments=False
    )
    prepare_for_target(module, target)
    return compile_module(module, target, function.name)


def compiled(function: Function, device: Device, donated: tuple[int, ...] = ()) -> CompiledFunction:
    """Returns the compiled form of a function, made when first asked for."""
    return _compiled(function, device, donated, config.cache_key)


@derived
def _compiled(
    function: Function, device: Device, donated: tuple[int, ...], options: Hashable
) -> CompiledFunction:
    """Returns the compiled form under the current options, by which it is kept."""
    return CompiledFunction(function, device, donated)


def device_of(arguments: Sequence[ConcreteArray]) -> Device:
    """Returns the device that arguments are committed to, else the default device."""
    for x in arguments:
        if x._device is not None:
            return x._device
    return default_device()


def execute_call(function: Function, operands: Sequence[Operand]) -> list[ConcreteArray]:
    """Runs the body of a nested `jit` on concrete operands, as one compiled unit."""
    arrays = [x if type(x) is ConcreteArray else as_array(x) for x in operands]
    if config.jax_disable_jit:
        return function.interpret(arrays)
    return compiled(_unit_of(function), device_of(arrays))(arrays)


@derived
def _unit_of(function: Function) -> Function:
    # In a call the captures are operands like the inputs.
    arguments = (*function.inputs, *function.captures)
    return Function(
        function.name, function.op, arguments, (), (), function.outputs, function.equations
    )


call.set_executor(execute_call)
