"""Reduction of wrongly compiled programs: equations become arguments while the fault stays.

A program is reduced by taking equations out of it. Their results become arguments, with the
evaluator's values. The remaining program is wrong without the rest, so a module of StableHLO with
its arguments and the right results shows the fault.

    PYTHONPATH=tests python -m support.reduction FOLDER SEED LENGTH KIND

draws a long random program (`random_pools.py`), and writes the reduced one to the folder, also if
it is interrupted (Ctrl-C). A program that the compiler refuses is wrong, too: the reduced one is
refused for the same reason. A program is also wrong if the proof refuses IREE's output.
"""

from __future__ import annotations

import functools
import logging
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from axir.dialect.core.array import Array, as_array
from axir.dialect.core.config import config
from axir.dialect.core.errors import HostCallNeededError
from axir.dialect.program.equation import Equation, Literal, Var
from axir.dialect.program.function import Function
from axir.dialect.program.function_tracing import restricted
from axir.dialect.program.walk import Environment, apply_equations, backward_slice
from axir.passes.transforms.lower_to_stablehlo import lower_functions
from axir.passes.transforms.simplify import simplify_function
from axir.runtime import default_device
from axir.runtime.calls.compiled_function import CompiledFunction
from axir.runtime.compiler import compilation
from axir.runtime.errors import CompileError, RuntimeExecutionError

from .random_pools import PoolProgram, draw

# Tells whether a function is wrong: called with its arguments and the right results.
Test = Callable[[Function, Sequence[Array], Sequence[np.ndarray]], bool]


class Reduction:
    """A program that becomes smaller.

    Args:
        function: The program; it captures nothing but arrays.
        arguments: The arguments of the call.
        is_wrong: Tells whether a part of it is still wrong.
        report: Takes a line about each step on the way.
    """

    def __init__(
        self,
        function: Function,
        arguments: Sequence[Array],
        is_wrong: Test,
        report: Callable[[str], None] = lambda line: None,
    ):
        self._whole = function
        self._is_wrong = is_wrong
        self._report = report
        # The value of each variable.
        self._values = Environment.of(function, [*arguments, *function.captured])
        apply_equations(function.equations, self._values)
        self.equations = list(function.equations)
        self.outputs = list(function.outputs)

    def program(self) -> tuple[Function, list[Array], list[np.ndarray]]:
        """The reduced program: a function, its arguments, and the right results."""
        return self._part(self.equations, self.outputs)

    def run(self) -> None:
        """Takes away outputs, then equations, as long as the rest is wrong."""
        # An equation in the middle may be unused after others have been removed.
        count = len(self.equations) + 1
        while len(self.equations) < count:
            count = len(self.equations)
            self._shrink("outputs", lambda rest: (self.equations, rest))
            self.equations = self._needed(self.equations)
            self._shrink("equations", lambda rest: (rest, self.outputs))
            self._end_earlier()
        self._shrink("outputs", lambda rest: (self.equations, rest))

    def _end_earlier(self) -> None:
        """Returns only the results of an equation, if they are wrong as well."""
        for number, equation in enumerate(self.equations):
            given, outputs = self.equations[: number + 1], list(equation.results)
            if outputs != self.outputs and self._is_wrong(*self._part(given, outputs)):
                self._report(f"the results of {equation.primitive.name} are wrong")
                self.equations, self.outputs = given, outputs
                return

    def _needed(self, equations: list[Equation]) -> list[Equation]:
        return backward_slice(equations, self.outputs).equations

    def _part(
        self, equations: Sequence[Equation], outputs: Sequence[Var]
    ) -> tuple[Function, list[Array], list[np.ndarray]]:
        needed = backward_slice(equations, outputs).equations
        made = {v for equation in needed for v in equation.results}
        taken = [v for equation in needed for v in equation.operands] + list(outputs)
        given = dict.fromkeys(v for v in taken if v not in made and type(v) is not Literal)
        function = restricted(self._whole, needed, given, outputs, "Reduction")
        arguments = [self._values[v] for v in given]
        return function, arguments, [self._values[v].host() for v in outputs]

    def _shrink(self, name: str, part: Callable[[list], tuple[list, list]]) -> None:
        """Takes away pieces of one of the lists: first half of it, in the end single entries."""
        items = getattr(self, name)
        size = (len(items) + 1) // 2
        while size and len(items) > 1:
            start = 0
            while start < len(items):
                rest = items[:start] + items[start + size :]
                if rest and self._is_wrong(*self._part(*part(rest))):
                    self._report(f"{len(rest)} {name} are left of {len(items)}")
                    items = rest
                    setattr(self, name, rest)
                else:
                    start += size
            size = size // 2 if size > 1 else 0


def differs(
    function: Function, arguments: Sequence[Array], wanted: Sequence[np.ndarray], least: float
) -> bool:
    """Tells whether a compiled function returns anything else, by more than a share of its size.

    A function that cannot be run is wrong as well.
    """
    if not function.equations:
        return False
    try:
        compiled = CompiledFunction(function, default_device())
    except CompileError:
        return False  # another fault
    try:
        results = compiled([as_array(np.array(x.host())) for x in arguments])
    except RuntimeExecutionError:
        return True
    for result, want in zip(results, wanted, strict=True):
        got = result.host()
        kind = np.complex128 if got.dtype.kind == "c" else np.float64
        got, want = got.astype(kind), want.astype(kind)
        scale = max(1.0, float(np.abs(want).max(initial=0)))
        difference = np.abs(got - want).max(initial=0)
        if not difference <= least * scale and not np.isnan(want).any():
            return True
    return False


def refusal(function: Function, length: int = 100) -> str:
    """Returns how the compiler's refusal of a function begins; empty if it compiles."""
    try:
        CompiledFunction(function, default_device())
    except CompileError as error:
        return str(error)[:length]
    return ""


def is_compiled_again(function: Function) -> bool:
    """Tells whether the proof refuses IREE's first program of a function."""
    found = _Refusals()
    logger = logging.getLogger(compilation.__name__)
    logger.addHandler(found)
    try:
        with config(axir_compiler="iree", jax_enable_compilation_cache=False):
            refusal(function)
    finally:
        logger.removeHandler(found)
    return found.is_any


class _Refusals(logging.Handler):
    """Listens whether a program is compiled again."""

    is_any = False

    def emit(self, record: logging.LogRecord) -> None:
        """Notes it."""
        self.is_any |= "is compiled again with a copy" in record.getMessage()


def _fault(function: Function, least: float) -> Test:
    """Returns the test for the fault of a program: it does not compile, or it differs."""
    first = refusal(function)
    if first:
        return lambda part, _, __: bool(part.equations) and refusal(part) == first
    if config.axir_compiler != "native" and is_compiled_again(function):
        return lambda part, _, __: bool(part.equations) and is_compiled_again(part)
    return functools.partial(differs, least=least)


def save(
    path: Path, function: Function, arguments: Sequence[Array], wanted: Sequence[np.ndarray]
) -> None:
    """Writes a program as StableHLO (`.mlir`), and its arguments and results (`.npz`)."""
    captured = [as_array(x) for x in function.captured]
    try:
        module = lower_functions({"main": function})
    except HostCallNeededError:
        module = lower_functions({"main": function}, host_functions=[])
    path.with_suffix(".mlir").write_text(str(module))
    arrays = {f"in{n}": x.host() for n, x in enumerate([*arguments, *captured])}
    arrays |= {f"out{n}": x for n, x in enumerate(wanted)}
    np.savez(path.with_suffix(".npz"), **arrays)


def reduce_and_save(
    program: PoolProgram,
    folder: Path,
    least: float | None = None,
    report: Callable[[str], None] = lambda line: None,
) -> Path | None:
    """Reduces a wrong random program, and saves the rest.

    Args:
        program: The program; donated arguments are not overwritten.
        folder: Where the files are written.
        least: The share of the largest result from which on a difference counts; by default a share
            that rounding never reaches in the program's dtypes.
        report: Takes a line about each step on the way.

    Returns:
        The module, or None if the program is right when it is compiled separately.
    """
    if least is None:
        least = 1e-3 if _dtypes(program) & {"float32", "complex64"} else 1e-7
    with config(jax_enable_x64=True, axir_on_compile_failure="raise"):
        function = simplify_function(program.function(), is_final=True)
        is_wrong = _fault(function, least)
        reduction = Reduction(function, program.arguments(), is_wrong, report)
        if not is_wrong(*reduction.program()):
            return None
        try:
            reduction.run()
        except KeyboardInterrupt:
            report("interrupted")
        folder.mkdir(parents=True, exist_ok=True)
        kind = program.kind.replace(" ", "_")
        path = folder / f"{kind}_{program.seed}_{program.length}.mlir"
        save(path, *reduction.program())
    return path


def _dtypes(program: PoolProgram) -> set[str]:
    return {dtype for _, dtype in program.argument_types}


def main() -> None:
    """Reduces the program that the command line names."""
    folder, seed, length, kind = sys.argv[1:5]
    program = draw(int(seed), int(length), kind)
    print(program)
    path = reduce_and_save(program, Path(folder), report=functools.partial(print, flush=True))
    print("The program is right." if path is None else f"What remains is in {path}.")


if __name__ == "__main__":
    main()
