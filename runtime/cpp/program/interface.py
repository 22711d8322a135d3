"""`Interface`: what users of a model see of it, in the words of C++.

Elsewhere: how Python's functions become one (`axir._cpp`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from axir.dialect.core.annotations import HostArray
from axir.dialect.core.types import ShapedArray


@dataclass(frozen=True)
class Given:
    """An argument that a caller gives, or a result that a caller takes.

    Attributes:
        name: Its name in C++.
        label: What Python calls it: `params['w']`.
        type: Shape and dtype, those of the words for random keys; with rows those of one row.
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
        number: Which of the model's `parameters` or `states`.
        is_in_place: Of a result, whether it is written over the part of the state that it
            replaces, rather than beside it.
    """

    number: int
    is_state: bool
    is_in_place: bool = False


@dataclass(frozen=True)
class Compiled:
    """A function of the program.

    Attributes:
        symbol: Its name there.
        kept: What it takes after the arguments that callers give.
        rows: How many rows it is for, where the method takes any number; else 0.
    """

    symbol: str
    kept: tuple[Kept, ...]
    rows: int = 0


@dataclass(frozen=True)
class Method:
    """A function of a model.

    Attributes:
        name: Its name in C++.
        label: What Python calls it.
        arguments: What callers give, in the order of the program's arguments.
        outputs: What it gives, in the order of the program's results.
        programs: What computes it: one function, or one for each number of rows, ascending, of
            which a call takes the next larger.
        where: The line of the function, if it is known.
        sizes: Of dimensions that were open when it was exported, names and what they are here.
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
        """What callers take."""
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
        operands: Types of what it takes.
        results: Types of what it gives.
        number: Its number in the program.
    """

    name: str
    operands: tuple[ShapedArray, ...]
    results: tuple[ShapedArray, ...]


@dataclass(frozen=True)
class Interface:
    """A whole model.

    Attributes:
        name: Its name: of the namespace, the files, and what symbols begin with.
        methods: Its functions.
        parameters: Arrays that no call changes.
        states: Arrays that calls replace, and what they begin with.
        callbacks: By the numbers by which the program calls them: the first names a callback of
            `callback_names`.
        throws: Whether failures are exceptions, rather than values of `axir::Status`.
    """

    name: str
    methods: tuple[Method, ...]
    parameters: tuple[Parameter, ...] = ()
    states: tuple[Parameter, ...] = ()
    callbacks: tuple[Callback, ...] = field(default=())
    throws: bool = True
