"""The interface of a model for its users, and the program for each kind of CPU.

Elsewhere: how Python's functions become an `Interface` (`axir._cpp`), how a running model checks
for the features of a `Variant` (`include/axir/cpu.hpp`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from axir.dialect.core.annotations import HostArray
from axir.dialect.core.types import ShapedArray

from .host_program import HostProgram


@dataclass(frozen=True)
class Given:
    """An argument that a caller gives, or a result that a caller takes.

    Attributes:
        name: Its name in C++.
        label: Its name in Python: `params['w']`.
        type: Shape and dtype: of the words for random keys, of one row with rows.
        donated_to: For an argument, the number of the result that lies in its memory, if any.
        rows: Of an array with any number of rows, the name of that number.
    """

    name: str
    label: str
    type: ShapedArray
    donated_to: int | None = None
    rows: str | None = None


@dataclass(frozen=True)
class Kept:
    """An argument or a result that the model keeps: a parameter, or a part of its state.

    Attributes:
        number: The number among the model's `parameters` or `states`.
        is_in_place: For a result, whether it overwrites the part of the state that it replaces, or
            is written to separate memory.
    """

    number: int
    is_state: bool
    is_in_place: bool = False


@dataclass(frozen=True)
class Compiled:
    """A function of the program.

    Attributes:
        symbol: Its name there.
        kept: Its arguments after the caller's arguments.
        rows: The number of rows that it is for, where the method takes any number; else 0.
    """

    symbol: str
    kept: tuple[Kept, ...]
    rows: int = 0


@dataclass(frozen=True)
class Method:
    """A function of a model.

    Attributes:
        name: Its name in C++.
        label: Its name in Python.
        arguments: The caller's arguments, in the order of the program's arguments.
        outputs: The results, in the order of the program's results.
        programs: The functions that compute it: one, or one for each of several numbers of rows,
            ascending; a call uses the smallest that is large enough.
        where: The line of the function, if it is known.
        sizes: Names and values of the dimensions that were symbolic when it was exported.
    """

    name: str
    label: str
    arguments: tuple[Given, ...]
    outputs: tuple[Given | Kept, ...]
    programs: tuple[Compiled, ...]
    where: str | None = None
    sizes: tuple[tuple[str, int], ...] = ()

    @property
    def rows(self) -> str | None:
        """The name of the number of rows, if that is any."""
        return next((x.rows for x in self.arguments if x.rows), None)

    @property
    def largest(self) -> int:
        """The number of rows that the largest function takes."""
        return self.programs[-1].rows

    @property
    def results(self) -> list[Given]:
        """The results that the caller receives."""
        return [x for x in self.outputs if isinstance(x, Given)]


@dataclass(frozen=True)
class Parameter:
    """An array that the model reads, or its state begins with.

    Attributes:
        name: Its name in C++.
        label: Its name in files.
        value: Its elements, random keys as words.
    """

    name: str
    label: str
    type: ShapedArray
    value: HostArray


@dataclass(frozen=True)
class Callback:
    """A function of the user's that a method calls.

    Attributes:
        name: Its name in C++.
        operands: Types of its operands.
        results: Types of its results.
        number: Its number in the program.
    """

    name: str
    operands: tuple[ShapedArray, ...]
    results: tuple[ShapedArray, ...]


@dataclass(frozen=True)
class Interface:
    """A whole model.

    Attributes:
        name: Its name: the namespace, the files' names and the prefix of the symbols.
        methods: Its functions.
        parameters: Arrays that no call changes.
        states: Arrays that calls replace, and their initial values.
        callbacks: By the numbers that the program uses to call them: the first names a callback of
            `callback_names`.
        throws: Whether failures are exceptions, rather than values of `axir::Status`.
    """

    name: str
    methods: tuple[Method, ...]
    parameters: tuple[Parameter, ...] = ()
    states: tuple[Parameter, ...] = ()
    callbacks: tuple[Callback, ...] = field(default=())
    throws: bool = True


# Preprocessor conditions that tell the architecture.
MACROS = {
    "x86_64": "defined(__x86_64__)",
    "aarch64": "defined(__aarch64__)",
    "riscv64": "defined(__riscv) && __riscv_xlen == 64",
}


@dataclass(frozen=True)
class Variant:
    """A program and its kernels, for one kind of CPU.

    Attributes:
        cpu: The CPU's name for users.
        architecture: `x86_64`, `aarch64` or `riscv64`.
        features: The features that it must have, by LLVM's names in `FEATURES`.
        program: The program of the methods.
        kernels: The object file; empty if there are no kernels.
        prefix: The prefix of the object file's symbols.
    """

    cpu: str
    architecture: str
    features: tuple[str, ...]
    program: HostProgram
    kernels: bytes
    prefix: str

    @property
    def label(self) -> str:
        """The CPU in names of files and of C++.

        >>> Variant("x86-64-v3", "x86_64", (), HostProgram({}, (), {}, (), ()), b"", "").label
        'x86_64_v3'
        """
        return re.sub(r"\W", "_", self.cpu)

    @property
    def query(self) -> str | None:
        """The symbol that queries the object file's library, or None."""
        if not self.kernels:
            return None
        linked = f"{self.prefix}_linked_library_query"
        is_linked = f"{linked}\0".encode() in self.kernels
        return linked if is_linked else f"{self.prefix}_library_query"
