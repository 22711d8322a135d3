"""Functions as machine code without IREE (`axir.runtime.native`), many of them in one kernel."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from axir.dialect.core.config import config
from axir.dialect.core.dtypes import storage
from axir.dialect.core.extended_dtypes import words_of
from axir.dialect.program.function import Function
from axir.dialect.program.function_rules import HostCall
from axir.dialect.program.function_tracing import trace_function
from axir.passes.transforms.lower_to_stablehlo import lower_functions
from axir.passes.transforms.simplify import simplify_function
from axir.runtime.compiler.compilation import text_of
from axir.runtime.compiler.native_compilation import NotNative, compile_natively
from axir.runtime.native.kernel_program import KernelProgram
from axir.runtime.native.programs import NativeProgram

_FUNCTIONS_PER_KERNEL = 20


def kernel_of(function: Function) -> KernelProgram | NotNative:
    """Compiles a function as `jit` would, but not by IREE."""
    calls: list[HostCall] = []
    with config(jax_enable_x64=True):
        module = lower_functions({"main": function}, "cpu", (), calls)
    if calls:
        return NotNative("it calls a function of the host")
    return compile_natively(module, text_of(module), function.name)


def loaded(function: Function, kernel: KernelProgram) -> NativeProgram:
    """Loads the kernel of a function."""
    kinds = [(x.shape, storage(x.dtype)) for x in function.output_types]
    return NativeProgram(kernel, kinds)


class NativeResults:
    """The results of functions for arguments, computed by as few kernels as possible.

    Args:
        applications: Functions with their arguments, by name.

    Attributes:
        reasons: The reasons why functions are no kernels, by name.
    """

    def __init__(self, applications: Mapping[str, tuple[Function, Sequence[np.ndarray]]]):
        self.reasons: dict[str, str] = {}
        self.results: dict[str, list[np.ndarray]] = {}
        items = list(applications.items())
        for start in range(0, len(items), _FUNCTIONS_PER_KERNEL):
            self._run(items[start : start + _FUNCTIONS_PER_KERNEL])

    def _run(self, items: Sequence[tuple[str, tuple[Function, Sequence[np.ndarray]]]]) -> None:
        """Compiles functions together; halves of these if one of them is no kernel."""
        whole = _joined([function for _, (function, _) in items], items[0][0])
        kernel = kernel_of(whole)
        if isinstance(kernel, NotNative):
            if len(items) == 1:
                self.reasons[items[0][0]] = kernel.reason
                return
            middle = len(items) // 2
            self._run(items[:middle])
            self._run(items[middle:])
            return
        arguments = [words_of(x) for _, (_, arguments) in items for x in arguments]
        captured = [words_of(x.host()) for x in whole.captured]
        results = iter(loaded(whole, kernel)([*arguments, *captured]))
        for name, (function, _) in items:
            made = itertools.islice(results, len(function.outputs))
            self.results[name] = [words_of(x) for x in made]


def _joined(functions: Sequence[Function], name: str) -> Function:
    """A function of the arguments of functions, which returns the results of all of them."""

    def all_of_them(*arguments: Any) -> list[Any]:
        remaining = iter(arguments)
        return [
            result
            for function in functions
            for result in function.evaluate(*itertools.islice(remaining, len(function.inputs)))
        ]

    types = [variable.type for function in functions for variable in function.inputs]
    with config(jax_enable_x64=True):
        return simplify_function(trace_function(all_of_them, types, name=name), is_final=True)
