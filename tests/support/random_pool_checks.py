"""Long random programs, compiled as users compile them, against the evaluator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from unittest import mock

import numpy as np

from axir.dialect.core.array import Array, as_array
from axir.dialect.core.config import config
from axir.dialect.program.equation import Equation, Var
from axir.dialect.program.function import Function, functions_of
from axir.dialect.program.op_table import OPS
from axir.extend.backend import wait_for_compilers
from axir.runtime import default_device
from axir.runtime.calls.compiled_function import CompiledFunction
from axir.runtime.calls.native_executable import NativeExecutable
from axir.runtime.errors import CompileError, RuntimeExecutionError

from .random_pool_steps import is_exact
from .random_pools import PoolProgram
from .random_programs import disagreement, evaluated

# The move of arguments in roundings, to both sides, to see the effect of rounding: if a decision
# depends on rounding, one of the two moves changes it.
_MOVED = (500, -500)
# The move of sums in roundings. Another order of additions moves them by a few, which decides
# between equal sums; a larger move would widen the tolerance of all results.
_SUMS_MOVED = 8
# The largest growth of a change, where nothing else is decided.
_MOST_GROWTH = 200
# Ops that add up numbers, in an order that each compiler chooses.
_SUMS = ("reduce_sum", "dot_general", "cumsum", "conv_general_dilated", "reduce_window_sum")


class Expected:
    """The expected results of a program.

    Args:
        function: The program.
        arguments: The arguments of the call.
        seed: Decides the direction in which arguments are moved.

    Attributes:
        results: The evaluator's results.
    """

    def __init__(self, function: Function, arguments: Sequence[Array], seed: int):
        self.results, self._size = evaluated(function, arguments)
        near = []
        for steps in _MOVED:
            with inexact_sums(_SUMS_MOVED if steps > 0 else -_SUMS_MOVED, seed):
                results = function.evaluate(*moved(arguments, steps, seed))
            near.append([x.host() for x in results])
        self._near = [
            max(pair, key=_distance(want)) for want, *pair in zip(self.results, *near, strict=True)
        ]
        self._roundings = coarsest_roundings(function)

    def problems(self, results: Sequence[np.ndarray]) -> Iterator[str]:
        """Yields differences from the expected results, beyond the effect of rounding."""
        for index, (got, want, near, rounding) in enumerate(
            zip(results, self.results, self._near, self._roundings, strict=True)
        ):
            if is_exact(want):
                same = (got.shape, got.dtype) == (want.shape, want.dtype)
                if not (same and np.array_equal(got, want)):
                    yield f"result {index}, {want.dtype}{list(want.shape)}: other whole numbers"
                continue
            problem = disagreement(got, want, near, self._size, rounding)
            if problem:
                yield f"result {index}, {want.dtype}{list(want.shape)}: {problem}"

    def undecided(self) -> int:
        """The number of results that change far more than the arguments, as by a decision."""
        moved = max(map(abs, _MOVED))
        return sum(
            _distance(want)(near) > max(1e-3, _MOST_GROWTH * moved * rounding) * self._size
            for want, near, rounding in zip(self.results, self._near, self._roundings, strict=True)
        )


def coarsest_roundings(function: Function) -> list[float]:
    """Returns the largest rounding of any number behind a result, per result.

    A float64 that was a float32 on the way is only as good as that. Half-precision floats are whole
    numbers in these programs, which nothing rounds.
    """
    known: dict[Var, float] = {}

    def of_function(inner: Function) -> float:
        return max((of_equation(equation) for equation in inner.equations), default=0.0)

    def of_equation(equation: Equation) -> float:
        own = [_rounding(x) for x in (*equation.operands, *equation.results)]
        before = [known.get(x, 0.0) for x in equation.operands]
        return max([*own, *before, *map(of_function, functions_of(equation.params))])

    for equation in function.equations:
        known.update(dict.fromkeys(equation.results, of_equation(equation)))
    return [max(_rounding(x), known.get(x, 0.0)) for x in function.outputs]


def _rounding(x: Var) -> float:
    dtype = np.dtype(x.type.dtype)
    return float(np.finfo(dtype).eps) if dtype.kind in "fc" and dtype.itemsize >= 4 else 0.0


def _distance(want: np.ndarray):
    def distance(near: np.ndarray) -> float:
        if is_exact(want):
            return float(np.any(near != want))
        with np.errstate(all="ignore"):
            return float(np.nanmax(np.abs(near - want), initial=0.0))

    return distance


@contextmanager
def inexact_sums(steps: int, seed: int) -> Iterator[None]:
    """Lets the evaluator move sums by a number of roundings.

    The order of additions decides whether sums of the same numbers in two orders are equal. If only
    the arguments move, all these sums move alike.
    """
    random = np.random.default_rng(seed)

    def evaluate(rule, *operands: np.ndarray, **params: object):
        found = np.asarray(rule(*operands, **params))
        if is_exact(found):
            return found
        noise = steps * np.finfo(found.dtype).eps * random.uniform(-1, 1, found.shape)
        return (found * (1 + noise)).astype(found.dtype)

    with ExitStack() as stack:
        for name in _SUMS:
            rule = partial(evaluate, OPS[name].evaluate)
            stack.enter_context(mock.patch.object(OPS[name], "evaluate", rule))
        yield


def moved(arguments: Sequence[Array], steps: int, seed: int) -> list[Array]:
    """Returns arguments a number of roundings away; whole numbers stay."""
    random = np.random.default_rng(seed)
    return [
        x
        if is_exact(x)
        else as_array(
            np.asarray(
                x.host() * (1 + steps * np.finfo(x.dtype).eps * random.uniform(-1, 1, x.shape)),
                x.dtype,
            )
        )
        for x in arguments
    ]


def problems(program: PoolProgram) -> list[str]:
    """Compiles and runs a program; returns its problems."""
    with config(jax_enable_x64=True, axir_on_compile_failure="raise"):
        if program.donated:  # donated numbers count all arguments
            function, arguments = program.function(), program.arguments()
        else:
            function, arguments = program.closed()
        expected = Expected(function, arguments, program.seed)
        try:
            compiled = CompiledFunction(function, default_device(), program.donated)
            found = []
            for turn in range(2):  # the first program, and its successor
                if turn and isinstance(compiled._executable, NativeExecutable):
                    compiled._executable.is_long = True  # so that it runs on buffers
                # Donated arrays are overwritten.
                results = compiled([as_array(np.array(x.host())) for x in arguments])
                found += expected.problems([x.host() for x in results])
                wait_for_compilers()
        except (CompileError, RuntimeExecutionError) as error:
            return [f"{type(error).__name__}: {error}"]
    if expected.undecided():
        found.append(f"{expected.undecided()} results hang on roundings: the draw is at fault")
    return found
