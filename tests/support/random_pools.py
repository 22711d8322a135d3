"""Long random programs: steps over a pool of arrays that all stay in use.

A program is data, drawn from a seed, a length and a kind, and printed as a line for each step. A
step takes any values made before it, recent ones more often, and adds one. All steps take arrays of
any shapes and dtypes: so any step can be left out, and a program that fails becomes a small one
(`reduction.py`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

import axir
import axir.numpy as jnp
from axir.dialect.core.array import Array, as_array
from axir.dialect.program.function import Function
from axir.dialect.program.function_tracing import trace_function

from .random_control_flow import STRUCTURED
from .random_loops import LOOPS
from .random_number_steps import NUMERIC
from .random_pool_loops import CONTROL
from .random_pool_steps import (
    ARITHMETIC,
    MEMORY,
    NARROW,
    READS,
    PoolStep,
    converted,
    is_complex,
    is_exact,
    settled,
    shaped,
)
from .random_steps import OPERATIONS as PLAIN
from .random_steps import bounded

Value = Any
Shape = tuple[int, ...]
# Steps of short programs that are not continuous, or that differ between devices by more than
# rounding for arbitrary inputs.
_LEFT_OUT = {"meeting", "half", "brain", "custom_vjp", "random"}


def _real(function: Callable[[Value, Value, int], Value]) -> PoolStep:
    """Makes a step from a step of short programs, which take real numbers of one dtype."""

    def step(x: Value, y: Value, z: Value, choice: int) -> Value:
        dtype = next((v.dtype for v in (x, y, z) if not is_exact(v)), np.float32)
        real = np.zeros((), dtype).real.dtype
        first, second = (bounded(converted(v, real)) for v in (x, y))
        return settled(function(first, second, choice).astype(real))

    return step


GROUPS: dict[str, dict[str, PoolStep]] = {
    "memory": MEMORY,
    "reads": READS,
    "arithmetic": ARITHMETIC,
    "control": CONTROL,
    "plain": {
        name: _real(function)
        for name, function in sorted({**PLAIN, **NUMERIC, **STRUCTURED}.items())
        if name not in _LEFT_OUT
    },
    "loops": {name: _real(function) for name, function in LOOPS.items()},
}
STEPS: dict[str, PoolStep] = {
    name if group in ("memory", "reads", "arithmetic", "control") else f"{group}.{name}": step
    for group, steps in GROUPS.items()
    for name, step in steps.items()
}


@dataclasses.dataclass(frozen=True)
class Kind:
    """The distribution from which programs of a kind are drawn.

    Attributes:
        dtypes: Dtypes of the real arguments; others are small whole numbers of any dtype.
        weights: How often steps of a group are drawn.
        transformations: The transformations of the program, from the innermost to the outermost.
        exact: The share of arguments that are whole numbers.
        largest: The largest extent of an array.
        is_donating: Whether arguments may be overwritten.
        longest: How many steps programs of this kind may have.
    """

    dtypes: tuple[str, ...] = ("float64", "complex128")
    weights: tuple[tuple[str, float], ...] = (
        ("memory", 0.36),
        ("reads", 0.16),
        ("arithmetic", 0.32),
        ("control", 0.12),
        ("plain", 0.04),
    )
    transformations: tuple[str, ...] = ()
    exact: float = 0.3
    largest: int = 7
    is_donating: bool = False
    longest: int = 300


_CONTROL = (
    ("memory", 0.2),
    ("reads", 0.1),
    ("arithmetic", 0.2),
    ("control", 0.45),
    ("loops", 0.05),
)
_ANY = (
    ("memory", 0.2),
    ("reads", 0.1),
    ("arithmetic", 0.25),
    ("control", 0.1),
    ("plain", 0.3),
    ("loops", 0.05),
)
_SINGLE = ("float32", "complex64")
KINDS: dict[str, Kind] = {
    "double": Kind(),
    "single": Kind(_SINGLE),
    "mixed": Kind(("float64", "float32", "complex128", "complex64")),
    "real": Kind(("float64",)),
    "narrow": Kind(("float32",), exact=0.8),
    "control": Kind(weights=_CONTROL, longest=150),
    "any": Kind(("float64", "float32", "complex128"), weights=_ANY, longest=150),
    "large": Kind(("float32", "float64", "complex64"), largest=300),
    "donating": Kind(is_donating=True),
    "vmap": Kind(("float64", "float32", "complex128"), transformations=("vmap",), longest=120),
    "grad": Kind(("float64", "complex128"), transformations=("grad",), longest=100),
    "jvp": Kind(("float64", "complex128"), transformations=("jvp",), longest=100),
    "vmap of grad": Kind(("float64",), transformations=("grad", "vmap"), longest=60),
}


@dataclasses.dataclass(frozen=True)
class PoolLine:
    """A step: its name, the numbers of the values it takes, and a choice it may need."""

    op: str
    values: tuple[int, int, int]
    choice: int


@dataclasses.dataclass(frozen=True)
class PoolProgram:
    """A long program.

    Attributes:
        seed: The seed of the program and its arguments.
        length: How many steps were drawn.
        kind: One of `KINDS`.
        argument_types: Shapes and names of dtypes.
        lines: The steps. The first one's value has the number after the last argument's.
        returns: Numbers of the values that it returns.
        donated: Numbers of arguments that it may overwrite.
    """

    seed: int
    length: int
    kind: str
    argument_types: tuple[tuple[Shape, str], ...]
    lines: tuple[PoolLine, ...]
    returns: tuple[int, ...]
    donated: tuple[int, ...] = ()

    def __str__(self) -> str:
        start = len(self.argument_types)
        lines = [f"program({self.seed}, {self.length}, {self.kind!r})"]
        lines += [
            f"  v{number} = {dtype}{list(shape)}"
            for number, (shape, dtype) in enumerate(self.argument_types)
        ]
        for number, line in enumerate(self.lines, start):
            x, y, z = line.values
            lines.append(f"  v{number} = {line.op}(v{x}, v{y}, v{z}, {line.choice})")
        lines.append(f"  return {', '.join(f'v{n}' for n in self.returns)}")
        return "\n".join(lines)

    def arguments(self) -> list[Array]:
        """Random arguments of the program."""
        random = np.random.default_rng(self.seed)
        return [as_array(_argument(random, *kind)) for kind in self.argument_types]

    def callable(self) -> Callable[..., Any]:
        """The program as a Python function of its arguments, transformed."""
        function: Callable[..., Any] = self._run
        for name in KINDS[self.kind].transformations:
            function = TRANSFORMATIONS[name](function)
        return function

    def _run(self, *arguments: Value) -> tuple[Value, ...]:
        values = list(arguments)
        for line in self.lines:
            x, y, z = (values[number] for number in line.values)
            made = STEPS[line.op](x, y, z, line.choice)
            # Most values keep the shape of their source, so that memory fits.
            values.append(made if line.choice % 5 == 0 else _fitting(made, x, line.choice))
        return tuple(values[number] for number in self.returns)

    def function(self) -> Function:
        """The transformed program as a traced function."""
        run = self.callable()
        types = [x.type for x in self.arguments()]
        return trace_function(lambda *xs: axir.tree.leaves(run(*xs)), types, name="program")

    def closed(self) -> tuple[Function, list[Array]]:
        """The same with some of its arguments captured, and the others."""
        run, arguments = self.callable(), self.arguments()
        random = np.random.default_rng((self.seed, 1))
        is_given = [n in self.donated or random.random() < 0.6 for n in range(len(arguments))]
        given = [x for x, is_own in zip(arguments, is_given, strict=True) if is_own]

        def on_given(*xs: Value) -> list[Value]:
            rest = iter(xs)
            pairs = zip(arguments, is_given, strict=True)
            return axir.tree.leaves(run(*(next(rest) if is_own else x for x, is_own in pairs)))

        return trace_function(on_given, [x.type for x in given], name="program"), given


def _fitting(made: Value, x: Value, choice: int) -> Value:
    return made if made.size == x.size else shaped(made, x.shape, choice)


def _argument(random: np.random.Generator, shape: Shape, dtype: str) -> np.ndarray:
    kind = jnp.dtype(dtype)
    if kind.kind == "b":
        return random.random(shape) < 0.5
    if is_exact(np.zeros((), kind)):
        low = 0 if jnp.issubdtype(kind, np.unsignedinteger) else -8
        return np.asarray(random.integers(low, 9, shape)).astype(kind)
    made = random.uniform(-1.5, 1.5, shape)
    if is_complex(np.zeros((), kind)):
        made = made + 1j * random.uniform(-1.5, 1.5, shape)
    return np.asarray(made).astype(kind)


# Drawing ----------------------------------------------------------------------------------------


def draw(seed: int, length: int, kind: str) -> PoolProgram:
    """Draws a program; the same one for the same seed, length and kind."""
    random = np.random.default_rng([seed, length, list(KINDS).index(kind)])
    rules = KINDS[kind]
    length = min(length, rules.longest)
    types = _draw_types(random, rules)
    lines = tuple(_draw_lines(random, rules, len(types), length))
    donated: tuple[int, ...] = ()
    if rules.is_donating:
        donated = tuple(n for n in range(len(types)) if random.random() < 0.5)
    returns = _draw_returns(random, lines, len(types), bool(rules.transformations))
    return PoolProgram(seed, length, kind, types, lines, returns, donated)


def _draw_types(random: np.random.Generator, rules: Kind) -> tuple[tuple[Shape, str], ...]:
    """Shapes that go together, so that arrays can take each other's memory."""
    extents = [2, 3, 4, 5, 7] if rules.largest < 10 else [7, 16, 33, 64, rules.largest]
    rows, columns = (int(n) for n in random.choice(extents, 2))
    shapes = [(rows, columns), (rows, rows), (rows, columns), (columns,), (rows,), ()]
    if rules.largest < 100:
        shapes.append((2, rows, rows))
    types: list[tuple[Shape, str]] = [(shapes[0], rules.dtypes[0]), (shapes[1], rules.dtypes[0])]
    for _ in range(int(random.integers(3, 7))):
        shape = shapes[int(random.integers(0, len(shapes)))]
        types.append((shape, str(random.choice(rules.dtypes))))
    some = [str(jnp.dtype(NARROW[n])) for n in random.integers(0, len(NARROW), 2)]
    for _ in range(max(1, round(rules.exact * len(types) / (1 - rules.exact)))):
        shape = shapes[int(random.integers(0, len(shapes)))]
        types.append((shape, str(random.choice(["int32", *some]))))
    return tuple(types)


def _draw_lines(
    random: np.random.Generator, rules: Kind, count: int, length: int
) -> list[PoolLine]:
    names, shares = zip(*rules.weights, strict=True)
    shares = np.asarray(shares) / sum(shares)
    lines: list[PoolLine] = []
    for number in range(count, count + length):
        if lines and random.random() < 0.03:
            # Equal computations with separate results.
            lines.append(lines[int(random.integers(0, len(lines)))])
            continue
        group = str(random.choice(names, p=shares))
        ops = sorted(GROUPS[group])
        op = ops[int(random.integers(0, len(ops)))]
        op = op if op in STEPS else f"{group}.{op}"
        values = tuple(_draw_value(random, number) for _ in range(3))
        limit = 1 << 20 if group == "loops" else 30
        lines.append(PoolLine(op, values, int(random.integers(0, limit))))
    return lines


def _draw_value(random: np.random.Generator, count: int) -> int:
    """The number of a value: one of the last few, or any of them."""
    if random.random() < 0.4:
        return int(random.integers(max(0, count - 6), count))
    return int(random.integers(0, count))


def _draw_returns(
    random: np.random.Generator, lines: tuple[PoolLine, ...], count: int, is_short: bool
) -> tuple[int, ...]:
    """Unread values, or the last values, with some that were read, or twice, or arguments."""
    used = {number for line in lines for number in line.values}
    values = range(count, count + len(lines))
    unread = [number for number in values if number not in used]
    returns = unread if random.random() < 0.5 else list(values[-3:])
    if is_short:
        returns = list(values[-3:])
    more = int(random.integers(0, 5))
    returns += [int(random.integers(count, count + len(lines))) for _ in range(more)]
    if random.random() < 0.2:
        returns.append(int(random.choice(returns)))
    if random.random() < 0.2:
        returns.append(int(random.integers(0, count)))
    return tuple(returns)


# Transformations --------------------------------------------------------------------------------


def _total(leaf: Value) -> Value:
    if is_exact(leaf):
        return jnp.zeros((), np.float32)
    weights = jnp.cos(jnp.arange(leaf.size).reshape(leaf.shape)).astype(leaf.dtype)
    return jnp.sum(jnp.real(leaf * weights))


def _differentiable(arguments: tuple[Value, ...]) -> tuple[int, ...]:
    return tuple(n for n, x in enumerate(arguments) if not is_exact(x))


def _grad(function: Callable[..., Any]) -> Callable[..., Any]:
    """The gradient of a weighted sum of the results, and the results."""

    def graded(*xs: Value) -> Any:
        def total(*xs: Value) -> tuple[Value, Any]:
            results = axir.tree.leaves(function(*xs))
            return sum(_total(leaf).astype(np.float64) for leaf in results), results

        return axir.grad(total, argnums=_differentiable(xs), has_aux=True)(*xs)

    return graded


def _jvp(function: Callable[..., Any]) -> Callable[..., Any]:
    """Derivatives in one direction, and the results."""

    def pushed(*xs: Value) -> Any:
        chosen = _differentiable(xs)

        def of_chosen(*values: Value) -> Any:
            given = list(xs)
            for number, value in zip(chosen, values, strict=True):
                given[number] = value
            return [x for x in axir.tree.leaves(function(*given)) if not is_exact(x)]

        primals = tuple(xs[number] for number in chosen)
        return axir.jvp(of_chosen, primals, tuple(jnp.cos(x) for x in primals))

    return pushed


def _vmap(function: Callable[..., Any]) -> Callable[..., Any]:
    """Maps over copies of some of the arguments; copies of whole numbers are reversed."""

    def mapped(*xs: Value) -> Any:
        stacked = [
            jnp.stack([x, jnp.flip(x) if is_exact(x) else x * 0.5], 0 if n % 2 else -1)
            if n % 3 != 1
            else x
            for n, x in enumerate(xs)
        ]
        axes = [None if n % 3 == 1 else 0 if n % 2 else -1 for n in range(len(xs))]
        return axir.vmap(function, tuple(axes))(*stacked)

    return mapped


TRANSFORMATIONS: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "grad": _grad,
    "jvp": _jvp,
    "vmap": _vmap,
}
