"""Many functions in one IREE program: called by name (`Programs`), or all at once.

Functions run at once if they were traced into one function (`Results`). Or each becomes a function
of one module, as users compile it, and one more function calls them (`Programs.run_all`).

Some ops lower to calls of Python functions where the code runs in this process, and otherwise to
portable code: `differs_without_host_calls` tells which functions need testing in both forms.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from iree.compiler import ir
from iree.compiler.dialects import func

from axir.dialect.core.config import config
from axir.dialect.core.errors import HostCallNeededError, UnsupportedByDeviceError
from axir.dialect.core.extended_dtypes import words_of
from axir.dialect.ops.calls.jit_call import call
from axir.dialect.program.function import Function
from axir.dialect.program.function_rules import HostCall
from axir.dialect.program.function_tracing import trace_function
from axir.passes.framework.pipeline import run_passes
from axir.passes.transforms.lower_to_stablehlo import lower_functions
from axir.runtime import (
    CompileError,
    Device,
    Program,
    Target,
    compile_module,
    default_device,
)

LEGALIZATION = "legalize-for-iree{fuses=false}"
# Longer modules compile no faster per function. But if a function compiles only without
# optimizations, its whole module is compiled twice, and if it does not compile, the module is cut
# in halves.
_FUNCTIONS_PER_PROGRAM = 25
_ALL = "all_functions"
REFUSALS = (HostCallNeededError, UnsupportedByDeviceError)


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
        functions: The functions to compile, by name.
        with_host_calls: Whether the programs may call Python functions, as compiled functions do,
            or must be portable, as exported ones are.
        fuses: Whether small programs and loops become kernels, as in users' programs. Not for code
            for large arrays that is tested on small ones.
        passes: A pipeline of passes that run before.
        joins: Whether the functions are run together (`run_all`), not one by one: each callable
            function costs the compiler as much as a small kernel.
        device: The device to run on; the default device by default.

    Attributes:
        failures: The compiler's messages about functions that it rejects, by name.
        refused: Names of functions that were refused before compiling, because the device cannot
            run them.
    """

    def __init__(
        self,
        functions: Mapping[str, Function],
        with_host_calls: bool = True,
        *,
        fuses: bool = False,
        passes: str = "",
        joins: bool = False,
        device: Device | None = None,
    ):
        self.device = device or default_device()
        platform = self.device.platform
        options = {
            "fuses": fuses,
            "platform": platform,
            "has_c_library": Target.of_device(self.device).has_c_library,
        }
        written = ",".join(f"{name}={str(value).lower()}" for name, value in options.items())
        legalization = f"legalize-for-iree{{{written}}}"
        self._passes = ",".join(filter(None, (passes, legalization)))
        self.with_host_calls = with_host_calls
        self.joins = joins
        self.failures: dict[str, str] = {}
        self.refused: set[str] = set()
        self._programs: dict[str, Program] = {}
        self._result_counts = {name: len(f.outputs) for name, f in functions.items()}
        items = list(functions.items())
        for start in range(0, len(items), _FUNCTIONS_PER_PROGRAM):
            self._compile(items[start : start + _FUNCTIONS_PER_PROGRAM])

    def _compile(self, items: Sequence[tuple[str, Function]]) -> None:
        """Compiles functions together; if that fails, halves them to find the faulty one."""
        try:
            calls: list[HostCall] | None = [] if self.with_host_calls else None
            module = lower_functions(dict(items), self.device.platform, host_functions=calls)
            run_passes(module, self._passes)
            if self.joins:
                _join(module, [name for name, _ in items])
            text = module.operation.get_asm(enable_debug_info=True)
            binary = compile_module(text, Target.of_device(self.device), items[0][0])
            program = Program(binary, self.device, calls or ())
        except (CompileError, *REFUSALS) as error:
            if len(items) == 1:
                self.failures[items[0][0]] = str(error)
                if isinstance(error, REFUSALS):
                    self.refused.add(items[0][0])
                return
            middle = len(items) // 2
            self._compile(items[:middle])
            self._compile(items[middle:])
        else:
            self._programs.update(dict.fromkeys((name for name, _ in items), program))

    def __call__(self, name: str, *args: np.ndarray) -> list[np.ndarray]:
        """Runs a function on the device; random keys appear as their words."""
        return self._run(self._programs[name], name, args)

    def run_all(self, arguments: Mapping[str, Sequence[np.ndarray]]) -> dict[str, list[np.ndarray]]:
        """Returns the results of each compiled function."""
        found: dict[str, list[np.ndarray]] = {}
        for program, group in itertools.groupby(self._programs.items(), lambda item: item[1]):
            names = [name for name, _ in group]
            given = [x for name in names for x in arguments[name]]
            results = iter(self._run(program, _ALL, given))
            for name in names:
                found[name] = list(itertools.islice(results, self._result_counts[name]))
        return found

    def _run(self, program: Program, name: str, args: Sequence[np.ndarray]) -> list[np.ndarray]:
        buffers = [self.device.put(words_of(x)) for x in args]
        return [buffer.to_numpy() for buffer in program.function(name)(buffers)]


def _join(module: ir.Module, names: Sequence[str]) -> None:
    """Adds a function of the arguments of functions, in their order; only it remains public."""
    with module.context, ir.Location.unknown():
        symbols = ir.SymbolTable(module.operation)
        functions = [symbols[name] for name in names]
        kinds = [op.type for op in functions]
        inputs = [kind for whole in kinds for kind in whole.inputs]
        outputs = [kind for whole in kinds for kind in whole.results]
        with ir.InsertionPoint(module.body):
            joined = func.FuncOp(_ALL, ir.FunctionType.get(inputs, outputs))
        with ir.InsertionPoint(joined.add_entry_block()):
            given = iter(joined.arguments)
            results = []
            for function, kind in zip(functions, kinds, strict=True):
                operands = list(itertools.islice(given, len(kind.inputs)))
                results += func.CallOp(function, operands).results
                function.attributes["sym_visibility"] = ir.StringAttr.get("private")
            func.ReturnOp(results)


class Results:
    """The results of functions for arguments, computed by as few compiled functions as possible.

    A function of a module costs the compiler as much as its body. So one function calls all of
    them, and takes the arguments of all.

    Args:
        applications: Functions with their arguments, by name.
        with_host_calls: As in `Programs`, like `device`.
        device: See there.

    Attributes:
        failures: The compiler's messages about functions that it rejects, by name.
    """

    def __init__(
        self,
        applications: Mapping[str, tuple[Function, Sequence[np.ndarray]]],
        with_host_calls: bool = True,
        device: Device | None = None,
    ):
        self.failures: dict[str, str] = {}
        self._refused: set[str] = set()
        self._results: dict[str, list[np.ndarray]] = {}
        for names, whole, programs in compiled_together(
            {name: function for name, (function, _) in applications.items()},
            with_host_calls,
            device,
        ):
            if programs.failures:
                self.failures |= programs.failures
                self._refused |= programs.refused
                continue
            arguments = [x for name in names for x in applications[name][1]]
            given = (*arguments, *(x.host() for x in whole.captured))
            results = iter(programs(names[0], *given))
            for name in names:
                count = len(applications[name][0].outputs)
                self._results[name] = list(itertools.islice(results, count))

    def is_refused(self, name: str) -> bool:
        """Tells whether a function was refused because the device cannot run it."""
        return name in self._refused

    def __getitem__(self, name: str) -> list[np.ndarray]:
        """The results of a function."""
        return self._results[name]


def compiled_together(
    functions: Mapping[str, Function], with_host_calls: bool = True, device: Device | None = None
) -> Iterator[tuple[list[str], Function, Programs]]:
    """Yields names of functions, one function that calls them all, and its compiled program.

    The function takes the arguments of all, and has the first of the names. If it does not compile,
    the functions are halved to find the fault: a function that does not compile is yielded
    separately, with the failures.

    Args:
        functions: The functions, by name.
        with_host_calls: As in `Programs`, like `device`.
        device: See there.
    """
    names = list(functions)
    waiting = [
        names[start : start + _FUNCTIONS_PER_PROGRAM]
        for start in range(0, len(names), _FUNCTIONS_PER_PROGRAM)
    ]
    while waiting:
        group = waiting.pop(0)
        whole = _calling([functions[name] for name in group], group[0])
        programs = Programs({group[0]: whole}, with_host_calls, device=device)
        if programs.failures and len(group) > 1:
            middle = len(group) // 2
            waiting[:0] = [group[:middle], group[middle:]]
        else:
            yield group, whole, programs


def _calling(functions: Sequence[Function], name: str) -> Function:
    """A function of the arguments of functions, which calls them all."""

    def call_all(*arguments: Any) -> list[Any]:
        remaining = iter(arguments)
        return [
            result
            for function in functions
            for result in call(function, *itertools.islice(remaining, len(function.inputs)))
        ]

    types = [variable.type for function in functions for variable in function.inputs]
    with config(jax_enable_x64=True):
        return trace_function(call_all, types, name=name)
