"""The manifest of a bundle: its description as JSON, checked when it is read.

Elsewhere: the zip file (`archive.py`), reading and calling functions (`bundle.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.function import Function
from axir.dialect.text.signature import Argument, Signature

FORMAT = "axir bundle"
# The version that a reader must know: bundles without symbolic dimensions are of version 1.
VERSION = 2
Sizes = tuple[tuple[str, int], ...]
"""Sizes of symbolic dimensions by name, in the order of the names."""
Key = int | Sizes
"""For what a program of a function is: a number of rows, sizes, or 0 if nothing is open."""


@dataclass(frozen=True)
class Batch:
    """The leading dimension that a function leaves open.

    Attributes:
        symbol: Its name: `b`.
        arguments: For each argument, whether it has the dimension.
        results: For each result, whether it has the dimension.
        sizes: The extents that programs are made for, ascending; empty to make them when they are
            called.
    """

    symbol: str
    arguments: tuple[bool, ...]
    results: tuple[bool, ...]
    sizes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Open:
    """The symbolic dimensions in the types of a function.

    Attributes:
        symbols: Their names, in order.
        constraints: The constraints on them, as texts.
        sizes: The sizes that programs are made for; empty to make them when they are called.
    """

    symbols: tuple[str, ...]
    constraints: tuple[str, ...] = ()
    sizes: tuple[Sizes, ...] = ()


@dataclass(frozen=True)
class FunctionEntry:
    """A function of a bundle.

    Attributes:
        name: Its name, in the module as well.
        signature: Arguments and results, without the leading dimension that `batch` leaves open.
        parameters: The names of the arguments that the module's function takes after the others.
        donated: Numbers of the arguments that results may overwrite.
        batch: The open number of rows, if rows are independent, or None.
        updates: For each result, the parameter that it is the new value of, or None.
        open: The symbolic dimensions in its types, or None.
    """

    name: str
    signature: Signature
    parameters: tuple[str, ...] = ()
    donated: tuple[int, ...] = ()
    batch: Batch | None = None
    updates: tuple[str | None, ...] = ()
    open: Open | None = None


_Exported = TypeVar("_Exported", bound="ExportedFunction")


class ExportedFunction(Protocol):
    """The interface of a bundle's function for saving and compiling: `Exported`."""

    @property
    def entry(self) -> FunctionEntry:
        """Its manifest entry."""
        ...

    @property
    def parameters(self) -> Mapping[str, ConcreteArray]:
        """The arrays that it captured, by name."""
        ...

    @property
    def function(self) -> Function:
        """The traced function."""
        ...

    @property
    def signature(self) -> Signature:
        """Names and types of arguments and results."""
        ...

    @property
    def symbols(self) -> tuple[str, ...]:
        """Names of the open dimensions."""
        ...

    @property
    def open(self) -> Open | None:
        """The open dimensions, with the sizes that are named."""
        ...

    @property
    def batch(self) -> Batch | None:
        """The open rows, with the numbers that are named."""
        ...

    def of_rows(self: _Exported, count: int) -> _Exported:
        """Returns the function of a number of rows."""
        ...

    def of_sizes(self: _Exported, **sizes: int) -> _Exported:
        """Returns the function of sizes of its open dimensions."""
        ...

    def with_combinations(self: _Exported, sizes: Iterable[Mapping[str, int]]) -> _Exported:
        """Returns the function with sizes for which to compile it."""
        ...


@dataclass(frozen=True)
class ProgramEntry:
    """A program of a bundle: functions compiled for a machine.

    Attributes:
        file: The entry of the archive.
        target: The target it was compiled for: `platform`, `cpu`, `machine`, `compiler`, ...
        functions: By the function's name, and by its number of rows or its sizes (0 if nothing is
            open), its name in the program.
    """

    file: str
    target: Mapping[str, str]
    functions: Mapping[str, Mapping[Key, str]]


@dataclass(frozen=True)
class Manifest:
    """The content of a bundle.

    Attributes:
        functions: By name, in order.
        parameters: Types of the parameters by name.
        programs: The compiled programs.
        module: The entry with the module.
        parameter_file: The entry with the parameters; None without parameters.
        versions: The versions of its writer: `axir`, `compiler`.
        files: Size and SHA-256 of each entry but the manifest.
    """

    functions: Mapping[str, FunctionEntry]
    parameters: Mapping[str, ShapedArray]
    programs: tuple[ProgramEntry, ...] = ()
    module: str = "module.mlir"
    parameter_file: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, tuple[int, str]] = field(default_factory=dict)

    def to_json(self) -> str:
        """Returns the manifest as JSON."""
        content = {
            "format": FORMAT,
            "version": VERSION if any(x.open for x in self.functions.values()) else 1,
            "written_by": dict(self.versions),
            "module": self.module,
            "functions": {name: _function(entry) for name, entry in self.functions.items()},
            "parameters": {
                "file": self.parameter_file,
                "arrays": {name: _type(kind) for name, kind in self.parameters.items()},
            },
            "programs": [_program(entry) for entry in self.programs],
            "files": {n: {"bytes": size, "sha256": sha} for n, (size, sha) in self.files.items()},
        }
        return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _type(kind: ShapedArray, symbol: str | None = None) -> dict[str, object]:
    shape = [extent if type(extent) is int else str(extent) for extent in kind.shape]
    extents = [*([symbol] if symbol else []), *shape]
    weak = {"weak_type": True} if kind.weak_type else {}
    return {"dtype": str(kind.dtype), "shape": extents, **weak}


def _function(entry: FunctionEntry) -> dict[str, object]:
    signature, batch = entry.signature, entry.batch
    open_arguments = batch.arguments if batch else (False,) * len(signature.arguments)
    open_results = batch.results if batch else (False,) * len(signature.results)
    symbol = batch.symbol if batch else None

    def row(value: Argument, is_open: bool) -> dict[str, UserObject]:
        return {"name": value.name, **_type(value.type, symbol if is_open else None)}

    arguments = list(map(row, signature.arguments, open_arguments))
    for number in entry.donated:
        arguments[number]["donated"] = True
    results = list(map(row, signature.results, open_results))
    for result, name in zip(results, entry.updates, strict=False):
        if name is not None:
            result["updates"] = name
    return {
        "arguments": arguments,
        "parameters": list(entry.parameters),
        "results": results,
        "in_tree": signature.in_tree,
        "out_tree": signature.out_tree,
        "batch": {"symbol": batch.symbol, "sizes": list(batch.sizes)} if batch else None,
        **({} if entry.open is None else {"open": _open(entry.open)}),
    }


def _open(entry: Open) -> dict[str, UserObject]:
    return {
        "symbols": list(entry.symbols),
        "constraints": list(entry.constraints),
        "sizes": [dict(sizes) for sizes in entry.sizes],
    }


def key_text(key: Key) -> str:
    """Returns the key of a program, a number of rows or sizes, as text.

    >>> key_text(8), key_text((("b", 8), ("t", 128)))
    ('8', 'b=8,t=128')
    """
    return str(key) if isinstance(key, int) else ",".join(f"{n}={size}" for n, size in key)


def _program(entry: ProgramEntry) -> dict[str, object]:
    functions = {
        name: {key_text(size): symbol for size, symbol in sizes.items()}
        for name, sizes in entry.functions.items()
    }
    return {"file": entry.file, "target": dict(entry.target), "functions": functions}


# Reading ------------------------------------------------------------------------------------------
