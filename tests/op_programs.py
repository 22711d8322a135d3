"""Many functions in one IREE program: compiled once, called by name.

Some ops lower to calls of Python functions where the code runs in this process, and otherwise to
portable code: `differs_without_host_calls` tells which functions need testing in both forms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from axir.dialect.errors import HostCallNeededError
from axir.dialect.extended import words_of
from axir.dialect.function import Function
from axir.passes.lower_to_stablehlo import HostCall, lower_functions
from axir.passes.pipeline import run_passes
from axir.runtime import CompileError, Program, Target, compile_module, default_device

LEGALIZATION = "legalize-for-iree"
# Longer modules compile no faster per function, but one bad function costs them more.
_FUNCTIONS_PER_PROGRAM = 100


def differs_without_host_calls(function: Function) -> bool:
    """Tells whether a function can also be lowered without calling Python functions."""
    calls: list[HostCall] = []
    lower_functions({"main": function}, host_functions=calls)
    if not calls:
        return False
    try:
        lower_functions({"main": function})
    except HostCallNeededError:
        return False
    return True


class Programs:
    """Compiled functions by name.

    Args:
        functions: What to compile, by name.
        with_host_calls: Whether the programs may call Python functions, as compiled functions do,
            or must be portable, as exported ones are.

    Attributes:
        failures: What the compiler said about functions that it rejects, by name.
    """

    def __init__(self, functions: Mapping[str, Function], with_host_calls: bool = True):
        self.with_host_calls = with_host_calls
        self.device = default_device()
        self.failures: dict[str, str] = {}
        self._programs: dict[str, Program] = {}
        items = list(functions.items())
        for start in range(0, len(items), _FUNCTIONS_PER_PROGRAM):
            self._compile(items[start : start + _FUNCTIONS_PER_PROGRAM])

    def _compile(self, items: Sequence[tuple[str, Function]]) -> None:
        """Compiles functions together; if that fails, halves find the one that is to blame."""
        try:
            calls: list[HostCall] | None = [] if self.with_host_calls else None
            module = lower_functions(dict(items), host_functions=calls)
            run_passes(module, LEGALIZATION)
            text = module.operation.get_asm(enable_debug_info=True)
            binary = compile_module(text, Target(), items[0][0])
            program = Program(binary, self.device, calls or ())
        except CompileError as error:
            if len(items) == 1:
                self.failures[items[0][0]] = str(error)
                return
            middle = len(items) // 2
            self._compile(items[:middle])
            self._compile(items[middle:])
        else:
            self._programs.update(dict.fromkeys((name for name, _ in items), program))

    def __call__(self, name: str, *args: np.ndarray) -> list[np.ndarray]:
        """Runs a function on the device; random keys are there as their words."""
        buffers = [self.device.put(words_of(x)) for x in args]
        results = self._programs[name].function(name)(buffers)
        return [buffer.to_numpy() for buffer in results]
