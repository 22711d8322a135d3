"""The manifest of a bundle: its description as JSON, checked when it is read.

Elsewhere: the zip file (`archive.py`), reading and calling functions (`bundle.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Extent, UserObject
from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.errors import AxirError, BundleError, BundleVersionError
from axir.dialect.core.extended_dtypes import key_dtype
from axir.dialect.core.symbolic.texts import read_extent, scope_of, with_constraints
from axir.dialect.core.symbolic_dims import names_of
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
_MOST_BYTES = 1 << 62
_Made = TypeVar("_Made")


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


def read_manifest(text: bytes, name: str) -> Manifest:
    """Reads a manifest.

    Args:
        text: JSON.
        name: The bundle's name in errors.

    Raises:
        BundleVersionError: if a newer axir wrote it.
        BundleError: if the text is not a manifest.
    """
    try:
        content = json.loads(text.decode())
    except (ValueError, RecursionError) as error:
        raise _damaged(name, f"the manifest is no JSON: {str(error)[:80]}") from None
    try:
        root = _Fields(content)
        if root.get("format", str) != FORMAT:
            raise ValueError("it is of another format")
        version = root.get("version", int)
    except ValueError as error:
        raise _damaged(name, str(error)) from None
    if version > VERSION:
        raise BundleVersionError(
            f"{name} is a bundle of version {version}, written by axir "
            f"{_version_of(content)!s}; this axir reads up to version {VERSION}.",
            "Install a newer axir, or save the bundle with this one.",
            where="",
        )
    try:
        return _manifest(root)
    except (ValueError, AxirError, RecursionError) as error:
        said = error.message if isinstance(error, AxirError) else str(error)
        raise _damaged(name, said) from None


def _version_of(content: UserObject) -> object:
    written_by = content.get("written_by")
    return written_by.get("axir", "?") if isinstance(written_by, dict) else "?"


def _damaged(name: str, reason: str) -> BundleError:
    return BundleError(
        f"{name}: {reason.rstrip('.')}.",
        "The bundle is damaged or was changed: copy it again, or save it again.",
        where="",
    )


class _Fields:
    """A JSON table that is read by name and kind; raises ValueError."""

    def __init__(self, content: object, place: str = "manifest"):
        if not isinstance(content, dict):
            raise ValueError(f"{place} is no table")
        self.content: dict[str, UserObject] = content
        self.place = place

    def get(self, key: str, kind: type[_Made]) -> _Made:
        """Returns a value of a kind."""
        value = self.content.get(key)
        if type(value) is not kind:
            raise ValueError(f"{self.place}: {key} is no {kind.__name__}")
        return value

    def optional(self, key: str, kind: type[_Made]) -> _Made | None:
        """Returns a value of a kind, or None."""
        return None if self.content.get(key) is None else self.get(key, kind)

    def number(self, key: str) -> int:
        """Returns a natural number."""
        return _natural(self.content.get(key), f"{self.place}: {key}")

    def table(self, key: str) -> _Fields:
        """Returns a table."""
        return _Fields(self.content.get(key), f"{self.place}: {key}")

    def tables(self, key: str) -> list[_Fields]:
        """Returns a list of tables."""
        place = f"{self.place}: {key}"
        return [_Fields(item, f"{place}[{n}]") for n, item in enumerate(self.get(key, list))]

    def items(self) -> list[tuple[str, _Fields]]:
        """Returns the tables in this one by name."""
        return [(key, _Fields(value, f"{self.place}: {key}")) for key, value in self._pairs()]

    def texts(self) -> dict[str, str]:
        """Returns the values, which are texts, by name."""
        return {key: self.get(key, str) for key, _ in self._pairs()}

    def _pairs(self) -> list[tuple[str, UserObject]]:
        return list(self.content.items())

    def names(self, key: str) -> tuple[str, ...]:
        """Returns a list of texts."""
        found = self.get(key, list)
        if not all(type(item) is str for item in found):
            raise ValueError(f"{self.place}: {key} holds something else than names")
        return tuple(found)


def _natural(value: object, place: str) -> int:
    if type(value) is not int or not 0 <= value < _MOST_BYTES:
        raise ValueError(f"{place} is no natural number")
    return value


def _manifest(root: _Fields) -> Manifest:
    parameters = root.table("parameters")
    arrays = {name: _read_type(each)[0] for name, each in parameters.table("arrays").items()}
    functions = {n: _read_function(n, each) for n, each in root.table("functions").items()}
    files = {
        name: (each.number("bytes"), each.get("sha256", str))
        for name, each in root.table("files").items()
    }
    found = Manifest(
        functions,
        arrays,
        tuple(_read_program(each) for each in root.tables("programs")),
        root.get("module", str),
        parameters.optional("file", str),
        root.table("written_by").texts(),
        files,
    )
    _check_references(found)
    return found


def _check_references(found: Manifest) -> None:
    """Raises ValueError if the manifest names a file or parameter that it does not describe."""
    if not found.functions:
        raise ValueError("the bundle has no function")
    if (found.parameter_file is None) != (not found.parameters):
        raise ValueError("the bundle has parameters without a file, or a file without any")
    named = [found.module, *(entry.file for entry in found.programs)]
    named += [found.parameter_file] if found.parameter_file else []
    if sorted(named) != sorted(found.files):
        raise ValueError("the manifest names other files than it describes")
    for entry in found.functions.values():
        used = [*entry.parameters, *(name for name in entry.updates if name is not None)]
        for name in used:
            if name not in found.parameters:
                raise ValueError(f"{entry.name} takes a parameter {name!r}, which there is not")
    for program in found.programs:
        for name in program.functions:
            if name not in found.functions:
                raise ValueError(f"{program.file} has a function {name!r}, which there is not")


def _read_type(fields: _Fields, entry: Open | None = None) -> tuple[ShapedArray, str | None]:
    """Returns a type, without its leading extent if that is a number of rows, and its name."""
    extents = fields.get("shape", list)
    symbol = extents[0] if extents and type(extents[0]) is str and entry is None else None
    place = f"{fields.place}: shape"
    shape = [_extent(extent, place, entry) for extent in extents[symbol is not None :]]
    name = fields.get("dtype", str)
    if name.startswith("key<") and name.endswith(">"):
        dtype: UserObject = key_dtype(name[4:-1])
    else:
        dtype = dtypes.as_dtype(name)
        if dtype not in dtypes.ALL or str(dtype) != name:
            raise ValueError(f"{fields.place}: there are no arrays of dtype {name!r}")
    kind = ShapedArray(shape, dtype, bool(fields.optional("weak_type", bool)))
    if not kind.is_open and kind.size >= _MOST_BYTES:
        raise ValueError(f"{place} is that of an array larger than any")
    return kind, symbol


def _extent(value: object, place: str, entry: Open | None) -> Extent:
    if type(value) is not str or entry is None:
        return _natural(value, place)
    found = with_constraints(read_extent(value), entry.constraints)
    if not set(names_of(found)) <= set(entry.symbols):
        raise ValueError(f"{place}: {value!r} has names that are not declared")
    return found


def _read_open(fields: _Fields) -> Open:
    symbols = fields.names("symbols")
    sizes = []
    for table in fields.tables("sizes"):
        found = tuple(sorted((n, table.number(n)) for n in table.content))
        if {n for n, _ in found} != set(symbols) or any(size < 1 for _, size in found):
            raise ValueError(f"{table.place}: not a size for each dimension")
        sizes.append(found)
    if not symbols or list(symbols) != sorted(set(symbols)):
        raise ValueError(f"{fields.place}: symbols do not ascend")
    constraints = fields.names("constraints")
    scope = scope_of(constraints)
    for each in scope.constraints if scope else ():
        if not each.names <= set(symbols):
            raise ValueError(f"{fields.place}: {each.text!r} has names that are not declared")
    return Open(symbols, constraints, tuple(sizes))


def _read_function(name: str, fields: _Fields) -> FunctionEntry:
    entry = _read_open(fields.table("open")) if fields.content.get("open") is not None else None
    batch = fields.table("batch") if fields.content.get("batch") is not None else None
    symbol = batch.get("symbol", str) if batch else None
    groups: list[tuple[Argument, ...]] = []
    is_open: list[tuple[bool, ...]] = []
    for group in ("arguments", "results"):
        rows = [(each, *_read_type(each, entry)) for each in fields.tables(group)]
        for each, _, found in rows:
            if found is not None and found != symbol:
                raise ValueError(f"{each.place}: shape has the extent {found!r}, not declared")
        groups.append(tuple(Argument(each.get("name", str), kind) for each, kind, _ in rows))
        is_open.append(tuple(found is not None for _, _, found in rows))
    arguments, results = fields.tables("arguments"), fields.tables("results")
    signature = Signature(
        groups[0],
        groups[1],
        fields.optional("in_tree", str),
        fields.optional("out_tree", str),
        True,
    )
    return FunctionEntry(
        name,
        signature,
        fields.names("parameters"),
        tuple(n for n, each in enumerate(arguments) if each.optional("donated", bool)),
        None if batch is None else _read_batch(batch, is_open),
        tuple(each.optional("updates", str) for each in results),
        entry,
    )


def _read_batch(fields: _Fields, is_open: Sequence[tuple[bool, ...]]) -> Batch:
    sizes = tuple(_natural(s, f"{fields.place}: sizes") for s in fields.get("sizes", list))
    if 0 in sizes or list(sizes) != sorted(set(sizes)):
        raise ValueError(f"{fields.place}: sizes do not ascend from 1")
    if not any(is_open[0]):
        raise ValueError(f"{fields.place}: no argument has the open dimension")
    return Batch(fields.get("symbol", str), is_open[0], is_open[1], sizes)


def _read_program(fields: _Fields) -> ProgramEntry:
    functions: dict[str, dict[Key, str]] = {}
    for name, sizes in fields.table("functions").items():
        functions[name] = {
            _read_key(size, sizes.place): symbol for size, symbol in sizes.texts().items()
        }
    return ProgramEntry(fields.get("file", str), fields.table("target").texts(), functions)


def _read_key(text: str, place: str) -> Key:
    if "=" not in text:
        return _number(text, place)
    pairs = [word.partition("=") for word in text.split(",")]
    return tuple(sorted((name, _number(size, place)) for name, _, size in pairs))


def _number(text: str, place: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise ValueError(f"{place}: {text!r} is no extent")
    return int(text)
