"""Reading the manifest of a bundle: every field is checked before it is used.

Elsewhere: the contents of a manifest, and writing it (`manifest.py`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TypeVar

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Extent, UserObject
from axir.dialect.core.errors import AxirError, BundleError, BundleVersionError
from axir.dialect.core.extended_dtypes import key_dtype
from axir.dialect.core.symbolic.texts import read_extent, scope_of, with_constraints
from axir.dialect.core.symbolic_dims import names_of
from axir.dialect.core.types import ShapedArray
from axir.dialect.text.signature import Argument, Signature

from .manifest import FORMAT, VERSION, Batch, FunctionEntry, Key, Manifest, Open, ProgramEntry

_MOST_BYTES = 1 << 62


_Made = TypeVar("_Made")


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
