"""Calls that are evaluated op by op, and the warnings of programs that do not compile.

A function is evaluated while it is compiled, if it cannot be compiled, and to find the op that made
a NaN. Elsewhere: calls of programs (`compiled_function.py`).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from axir.dialect.core.array import ConcreteArray, as_array
from axir.dialect.core.config import config
from axir.dialect.core.context import user_frame
from axir.dialect.core.state import outside_traces
from axir.dialect.program.equation import Equation
from axir.dialect.program.function import Function
from axir.dialect.program.primitive import check_finite
from axir.dialect.program.rules import Results, Value
from axir.runtime.errors import (
    CompileError,
    CompileFailureWarning,
    TimelineWarning,
)

from .background import Background
from .executable import Executable
from .native_executable import NativeExecutable


class CompiledMeanwhileError(Exception):
    """The compiler was done before the evaluator."""


def warn_of_failure(error: CompileError, name: str) -> None:
    """Warns once, at the user's line, of a program that is evaluated for it does not compile."""
    frame = user_frame()
    file, line = ("<axir>", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)
    text = f"{name!r} is evaluated op by op in NumPy, which is slow: {error.message}"
    if error.where:
        text += f"\n  at {error.where}"
    warnings.warn_explicit(text, CompileFailureWarning, file, line)


def warn_of_missing_marks(name: str, error: CompileError) -> None:
    """Warns that a timeline will not show the dispatches of a program."""
    warnings.warn(
        f"The timeline does not show the dispatches of {name!r}, which does not compile with "
        f"marks: {error.message}",
        TimelineWarning,
        stacklevel=3,
    )


def evaluate(
    function: Function,
    arguments: Sequence[ConcreteArray],
    donated: tuple[int, ...],
    making: Background[Executable | NativeExecutable] | None,
) -> list[ConcreteArray]:
    """Runs a function op by op in NumPy, with its calls and loops.

    Args:
        function: The function.
        arguments: Values of its inputs.
        donated: Indices of inputs that are deleted.
        making: The program that is being compiled, or None.

    Raises:
        CompiledMeanwhileError: the compiled program is ready, and must run the rest.
    """

    def bind(equation: Equation, operands: list[Value]) -> Results:
        if making is not None and making.is_done and making.value is not None:
            raise CompiledMeanwhileError
        return equation.primitive.bind(*operands, **equation.params)

    values = [*arguments, *map(as_array, function.captured)]
    if donated:
        values[: len(arguments)] = [ConcreteArray(x.type, x.host()) for x in arguments]
    with outside_traces(), config(jax_disable_jit=True):
        results = function.interpret(values, bind)
    for number in donated:
        arguments[number].delete()
    return results


def check_results(
    function: Function, arguments: Sequence[ConcreteArray], results: Sequence[ConcreteArray]
) -> None:
    """Under the debugging options: finds the op that made a NaN or infinity, and raises."""
    failure: FloatingPointError | None = None
    for x in results:
        try:
            check_finite(f"the compiled code of {function.name!r}", x.host())
        except FloatingPointError as error:
            failure = error
            break
    if failure is not None:
        # Op by op the evaluator meets the first op that fails, and knows its line.
        function.evaluate(*arguments)
        raise failure
