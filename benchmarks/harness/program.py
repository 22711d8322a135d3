"""The programs of the benchmark, and their declaration."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np

Size = int | tuple[int, ...]
Function = Callable[..., Any]
# Takes the library (axir or jax) and sizes; returns a function of that library and its arguments,
# NumPy arrays in any structure.
Make = Callable[..., tuple[Function, list[Any]]]


@dataclass(frozen=True)
class Program:
    """A program that every library runs.

    Attributes:
        name: Its name on the command line.
        group: The group it is shown in.
        make: Given the library and the sizes, returns the function and its arguments.
        size: The sizes that are measured.
        tiny: Sizes for the test, at which an evaluator runs it in milliseconds.
        goal: The largest ratio we mean to allow.
        compiled: Whether the function is jitted; otherwise it is called directly.
        operations: Operations in one run, so that figures are per operation.
        tolerance: Largest error relative to the largest value; None means the dtype's tolerance.
        check: Maps a result to the compared value; for results defined up to a sign.
        x64: Whether 64-bit types are kept.
        cold: Whether its first calls and its memory are measured, in separate processes; only for
            the first of several sizes.
        jax: Whether JAX runs it; where it does not, the ratio is to NumPy.
        numpy: The same in NumPy, of the same arguments.
        torch: The same in PyTorch, of `torch` and tensors.
    """

    name: str
    group: str
    make: Make
    size: Size
    tiny: Size
    goal: float
    compiled: bool = True
    operations: int = 1
    tolerance: float | None = None
    check: Callable[[np.ndarray], np.ndarray] | None = None
    x64: bool = False
    cold: bool = False
    jax: bool = True
    numpy: Function | None = None
    torch: Function | None = None

    def build(self, library: ModuleType, size: Size) -> tuple[Function, list[Any]]:
        """Returns the function for a library and its arguments, for sizes."""
        return self.make(library, *(size if isinstance(size, tuple) else (size,)))

    @property
    def other(self) -> str:
        """The library that the ratio is to."""
        return "jax" if self.jax else "numpy"

    @property
    def libraries(self) -> list[str]:
        """The libraries that can run it, axir first, the one that the ratio is to second."""
        offered = {"axir": True, "jax": self.jax, "numpy": self.numpy, "torch": self.torch}
        return [name for name, form in offered.items() if form]


@dataclass
class Group:
    """Programs that are shown together, and their shared settings.

    Example:
        >>> from benchmarks.harness.program import Group, floats
        >>> kernels = Group("kernels", goal=1.2)
        >>> @kernels.program({"1e5": 100_000, "empty": 0}, tiny=7)
        ... def sort(jax, n):
        ...     return jax.numpy.sort, [floats(n)]
        >>> list(kernels.programs)
        ['sort-1e5', 'sort-empty']
    """

    name: str
    goal: float
    programs: dict[str, Program] = field(default_factory=dict)

    def add(
        self, name: str, make: Make, sizes: Size | Mapping[str, Size], tiny: Size, **options: Any
    ) -> None:
        """Declares a program, once for each named size."""
        named = sizes if isinstance(sizes, Mapping) else {"": sizes}
        for index, (suffix, size) in enumerate(named.items()):
            full_name = f"{name}-{suffix}" if suffix else name
            if full_name in self.programs:
                raise ValueError(f"two programs are named {full_name}")
            fields = {"goal": self.goal, **options}
            fields["cold"] = options.get("cold", False) and index == 0
            self.programs[full_name] = Program(full_name, self.name, make, size, tiny, **fields)

    def program(
        self, sizes: Size | Mapping[str, Size], tiny: Size, **options: Any
    ) -> Callable[[Make], Make]:
        """Declares the decorated function as a program, named after it."""

        def declare(make: Make) -> Make:
            self.add(make.__name__.strip("_").replace("_", "-"), make, sizes, tiny, **options)
            return make

        return declare


def merged(groups: Iterable[Group]) -> dict[str, Program]:
    """Returns the programs of all groups by name."""
    programs: dict[str, Program] = {}
    for group in groups:
        for name, program in group.programs.items():
            if name in programs:
                raise ValueError(f"two programs are named {name}")
            programs[name] = program
    return programs


def _generator(shape: tuple[int, ...]) -> np.random.Generator:
    return np.random.default_rng([len(shape), *shape])


def floats(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    """Returns normal numbers, the same for the same shape."""
    return _generator(shape).standard_normal(shape, np.float32).astype(dtype)


def uniform(*shape: int) -> np.ndarray:
    """Returns numbers between 0 and 1, the same for the same shape."""
    return _generator(shape).random(shape, np.float32)


def integers(high: int, *shape: int, dtype: Any = np.int32) -> np.ndarray:
    """Returns integers from 0 up to `high`, which is not among them."""
    return _generator(shape).integers(0, max(high, 1), shape).astype(dtype)


def weights(*shape: int) -> np.ndarray:
    """Returns normal numbers, small enough that products of layers stay near 1."""
    return floats(*shape) / np.float32(np.sqrt(max(np.prod(shape[:-1]), 1)))


def seed(number: int = 0) -> np.ndarray:
    """Returns the seed of a program's random key, as an argument rather than a constant."""
    return np.asarray(number, np.int32)
