"""Random programs: directed acyclic graphs of operations under random stacks of transformations.

A program is data (`Spec`), so that hypothesis can draw, shrink and print it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

import axir
import axir.numpy as jnp
from axir import lax
from axir.dialect.core import dtypes
from axir.dialect.core.array import Array, as_array
from axir.dialect.program.equation import Equation
from axir.dialect.program.function import Function
from axir.dialect.program.function_tracing import trace_function

from .random_control_flow import STRUCTURED
from .random_loops import LOOPS
from .random_number_steps import NUMERIC
from .random_steps import OPERATIONS as PLAIN
from .random_steps import bounded, counter

Value = Any
OPERATIONS = {**PLAIN, **NUMERIC, **STRUCTURED, **LOOPS}
SHAPES = ((), (3,), (4,), (2, 3), (3, 4), (2, 1, 3), (1,))


@dataclasses.dataclass(frozen=True)
class Step:
    """One operation: its name, which of the values so far it takes, and a choice it may need."""

    op: str
    first: int
    second: int
    choice: int


@dataclasses.dataclass(frozen=True)
class Spec:
    """A program, and the transformations around it from the innermost to the outermost.

    It returns the last of its values. If it returned all, later steps would read results, too.
    """

    shapes: tuple[int, ...]
    steps: tuple[Step, ...]
    transformations: tuple[str, ...]
    is_double: bool
    seed: int
    returns: int = 2

    def arguments(self) -> list[Array]:
        """Random arguments of the program."""
        generator = np.random.default_rng(self.seed)
        dtype = np.float64 if self.is_double else np.float32
        return [
            as_array(np.asarray(generator.uniform(-1.5, 1.5, SHAPES[index]), dtype))
            for index in self.shapes
        ]

    def callable(self) -> Callable[..., Any]:
        """The program as a Python function of its arguments, transformed."""
        function: Callable[..., Any] = self._run
        for name in self.transformations:
            function = TRANSFORMATIONS[name](function)
        return function

    def _run(self, *arguments: Value) -> tuple[Value, ...]:
        values = list(arguments)
        for step in self.steps:
            first = bounded(values[step.first % len(values)])
            # Most operations need operands of one dtype, but some steps return another.
            second = bounded(values[step.second % len(values)]).astype(first.dtype)
            values.append(OPERATIONS[step.op](first, second, step.choice))
        return tuple(values[-self.returns :])

    def function(self) -> Function:
        """The transformed program as a traced function."""
        run = self.callable()
        types = [x.type for x in self.arguments()]
        return trace_function(lambda *xs: axir.tree.leaves(run(*xs)), types, name="program")


# Transformations of functions from arrays to a tree of arrays -------------------------------------


def _jvp(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *xs: axir.jvp(function, xs, tuple(jnp.cos(x) for x in xs))


def _vjp(function: Callable[..., Any]) -> Callable[..., Any]:
    def pulled(*xs: Value) -> Any:
        outs, pullback = axir.vjp(function, *xs)
        return pullback(axir.tree.map(lambda out: jnp.cos(counter(out).astype(out.dtype)), outs))

    return pulled


def _vmap(function: Callable[..., Any]) -> Callable[..., Any]:
    """Maps over copies of the first argument, and over the last axis of further copies."""

    def mapped(first: Value, *others: Value) -> Any:
        stacked = jnp.stack([first, first * 0.5])
        spread = [jnp.stack([x, x + 0.25], -1) for x in others[:1]]
        in_axes = (0, *(-1 for _ in spread), *(None for _ in others[1:]))
        return axir.vmap(function, in_axes)(stacked, *spread, *others[1:])

    return mapped


def _grad(function: Callable[..., Any]) -> Callable[..., Any]:
    def total(*xs: Value) -> Value:
        return sum(jnp.sum(jnp.sin(leaf)) for leaf in axir.tree.leaves(function(*xs)))

    return lambda *xs: axir.grad(total, argnums=tuple(range(len(xs))))(*xs)


def _linearize(function: Callable[..., Any]) -> Callable[..., Any]:
    def linearized(*xs: Value) -> Any:
        out, push = axir.linearize(function, *xs)
        return out, push(*(jnp.sin(x) for x in xs))

    return linearized


def _forward_jacobian(function: Callable[..., Any]) -> Callable[..., Any]:
    """The Jacobian of the means of the results by the first argument."""

    def means(*xs: Value) -> Any:
        return axir.tree.map(lambda leaf: jnp.mean(leaf) * leaf.size**0.5, function(*xs))

    return axir.jacfwd(means)


def _named_vmap(function: Callable[..., Any]) -> Callable[..., Any]:
    """Maps over copies of the first argument; their results communicate."""

    def one(first: Value, *others: Value) -> Any:
        out = function(first, *others)
        gathered = axir.tree.map(lambda leaf: lax.all_gather(leaf, "i")[1], out)
        mean = axir.tree.map(lambda leaf: leaf - lax.pmean(leaf, "i"), out)
        return gathered, mean

    def mapped(first: Value, *others: Value) -> Any:
        stacked = jnp.stack([first, first * 0.5])
        return axir.vmap(one, (0, *(None for _ in others)), axis_name="i")(stacked, *others)

    return mapped


TRANSFORMATIONS: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "jit": lambda function: axir.jit(function),
    "jvp": _jvp,
    "vjp": _vjp,
    "vmap": _vmap,
    "checkpoint": lambda function: axir.checkpoint(function),
    "grad": _grad,
    "linearize": _linearize,
    "jacfwd": _forward_jacobian,
    "named_vmap": _named_vmap,
}
_FORWARD = ("jvp", "jacfwd", "linearize")


# Strategies -------------------------------------------------------------------------------------

_values = st.integers(0, 7)
_plain_steps = st.builds(
    Step,
    st.sampled_from(sorted(OPERATIONS.keys() - LOOPS.keys())),
    _values,
    _values,
    st.integers(0, 5),
)
# The choice of a loop is the seed that it is drawn from.
_loop_steps = st.builds(
    Step, st.sampled_from(sorted(LOOPS)), _values, _values, st.integers(0, 1 << 20)
)


def is_valid(spec: Spec) -> bool:
    """Tells whether no forward-mode derivative meets a function with a `custom_vjp` rule.

    A forward-mode derivative of a reverse-mode derivative meets it, too: the forward rule calls the
    function again.
    """
    if all(step.op != "custom_vjp" for step in spec.steps):
        return True
    return not set(spec.transformations) & set(_FORWARD)


def _programs(
    steps: st.SearchStrategy[Step], largest: int, transformations: int
) -> st.SearchStrategy[Spec]:
    return st.builds(
        Spec,
        st.lists(st.integers(0, len(SHAPES) - 1), min_size=1, max_size=3).map(tuple),
        st.lists(steps, min_size=1, max_size=largest).map(tuple),
        st.lists(st.sampled_from(sorted(TRANSFORMATIONS)), max_size=transformations).map(tuple),
        st.booleans(),
        st.integers(0, 1000),
        st.sampled_from((2, 2, 9)),
    ).filter(is_valid)


specs = _programs(_plain_steps, 7, 3)
loop_specs = _programs(_loop_steps, 2, 2)


# Comparison -------------------------------------------------------------------------------------


def nearby(spec: Spec, arguments: Sequence[Array]) -> list[Array]:
    """Returns arguments a few hundred roundings away."""
    generator = np.random.default_rng(spec.seed + 1)
    factors = [1 + 500 * _epsilon(x) * generator.uniform(-1, 1, x.shape) for x in arguments]
    return [
        as_array(np.asarray(x.host() * factor, x.dtype))
        for x, factor in zip(arguments, factors, strict=True)
    ]


def _epsilon(x: Any) -> float:
    return float(np.finfo(x.dtype).eps)


def evaluated(function: Function, arguments: Sequence[Array]) -> tuple[list[np.ndarray], float]:
    """The results, and the size of the largest finite number on the way, from 1 to 100."""
    largest = 1.0

    def bind(equation: Equation, operands: Sequence[Any]) -> Any:
        nonlocal largest
        results = equation.primitive.bind(*operands, **equation.params)
        for x in results if equation.primitive.multiple_results else [results]:
            if dtypes.is_inexact(x.dtype):
                sizes = np.abs(x.host())
                largest = max(largest, float(sizes[np.isfinite(sizes)].max(initial=0.0)))
        return results

    results = function.interpret([*arguments, *function.captured], bind)
    return [x.host() for x in results], min(largest, 100.0)


def disagreement(
    got: np.ndarray,
    want: np.ndarray,
    moved: np.ndarray,
    size: float = 1.0,
    rounding: float = 0.0,
) -> str | None:
    """Tells how a result differs from the expected one, beyond the effect of rounding.

    Args:
        got: The result.
        want: The expected result.
        moved: The same for nearby arguments, which shows how much rounding matters here.
        size: The size of the numbers that it was made of.
        rounding: The largest rounding of these, where some are coarser than the result.
    """
    if (got.shape, got.dtype) != (want.shape, want.dtype):
        return f"{got.dtype}{list(got.shape)}, not {want.dtype}{list(want.shape)}"
    if not dtypes.is_inexact(want.dtype):
        return None if np.array_equal(got, want) else "other integers"
    if not np.array_equal(np.isnan(want), np.isnan(moved)):
        return None  # at the edge of where the program is defined
    if not np.array_equal(np.isnan(got), np.isnan(want)):
        return f"{int(np.isnan(got).sum())} nan, not {int(np.isnan(want).sum())}"
    with np.errstate(all="ignore"):
        scale = np.nanmax(np.abs(want), initial=0.0)
        sensitivity = np.nanmax(np.abs(moved - want), initial=0.0)
        difference = np.nanmax(np.abs(got - want), initial=0.0)
    if not np.isfinite(scale) or sensitivity > 0.05 * scale:
        return None  # too ill-conditioned to tell
    # Numbers that cancel to zero had the size of other numbers before, each rounded. So a few times
    # the rounding of a number of that size is allowed for a result of any size.
    allowed = 300 * max(_epsilon(want), rounding) * max(scale, 1e-2 * size) + 2 * sensitivity
    return None if difference <= allowed else f"differs by {difference}, allowed is {allowed}"
