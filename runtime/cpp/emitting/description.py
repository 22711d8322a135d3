"""The description that a model returns at run time: tables for C++, a JSON text for C.

Elsewhere: the types of the tables (`include/axir/v*/description.hpp`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from importlib import metadata

from axir.runtime.cpp.program.interface import Given, Interface, Method, Parameter, Variant

from .names import RUNTIME_VERSION, quoted

_OPEN = "axir::dynamic_extent"
_WIDTH = 8


def write_description(interface: Interface, variants: Sequence[Variant]) -> Iterator[str]:
    """Yields the tables, and the function that returns them.

    Args:
        interface: The model's interface.
        variants: The kinds of CPUs, in descending order of their features.
    """
    yield "namespace {"
    yield ""
    tables = _Tables()
    methods = [_method_row(tables, method) for method in interface.methods]
    both = (interface.parameters, interface.states)
    kept = [tables.arrays(list(map(_kept_row, values))) for values in both]
    yield from tables.lines()
    yield from _table("axir::MethodDescription", "described_methods", methods)
    yield "constexpr axir::Variant variants[] = {"
    for variant in variants:
        yield f'    {{"{variant.cpu}",'
        yield from _features(variant.features)
    yield "};"
    yield ""
    yield "constexpr axir::ModelDescription described_model{"
    axir, iree = _versions()
    yield f'    "{interface.name}", "{axir}", "{iree}", {RUNTIME_VERSION},'
    yield f"    {{described_methods, {len(methods)}}},"
    yield from (f"    {text}," for text in kept)
    yield f"    {{variants, {len(variants)}}}}};"
    yield ""
    yield "}  // namespace"
    yield ""
    yield "const axir::ModelDescription& description() { return described_model; }"
    yield ""


def description_text(interface: Interface, variants: Sequence[Variant]) -> str:
    """Returns the same as JSON."""
    axir, iree = _versions()
    content = {
        "name": interface.name,
        "axir": axir,
        "iree": iree,
        "runtime": RUNTIME_VERSION,
        "methods": [
            {
                "name": method.name,
                "label": method.label,
                "arguments": list(map(_table_of, method.arguments)),
                "results": list(map(_table_of, method.results)),
                "rows": {method.rows: [x.rows for x in method.programs]} if method.rows else {},
                "sizes": dict(method.sizes),
            }
            for method in interface.methods
        ],
        "parameters": list(map(_table_of, interface.parameters)),
        "state": list(map(_table_of, interface.states)),
        "cpus": [{"name": x.cpu, "features": list(x.features)} for x in variants],
    }
    return json.dumps(content, separators=(",", ":"))


def _versions() -> tuple[str, str]:
    return metadata.version("axir"), metadata.version("iree-base-compiler")


def _table_of(x: Given | Parameter) -> dict[str, object]:
    rows = [x.rows] if isinstance(x, Given) and x.rows else []
    shape = [*rows, *x.type.shape]
    found = {"name": x.name, "label": x.label, "dtype": str(x.type.dtype), "shape": shape}
    return found | ({"overwritten": True} if _is_overwritten(x) else {})


def _is_overwritten(x: Given | Parameter) -> bool:
    return isinstance(x, Given) and x.donated_to is not None


# A row of a table of arrays: the array, and its extents as they are written.
_Row = tuple[Given | Parameter, list[str]]


def _kept_row(x: Parameter) -> _Row:
    return x, list(map(str, x.type.shape))


def _given_row(x: Given) -> _Row:
    return x, [*([_OPEN] if x.rows else []), *map(str, x.type.shape)]


class _Tables:
    """Tables of arrays, extents and sizes; lists in the description are ranges of their rows."""

    def __init__(self) -> None:
        self._arrays: list[str] = []
        self._extents: list[str] = []
        self._sizes: list[str] = []

    def arrays(self, rows: Sequence[_Row]) -> str:
        texts = [
            f'{{"{x.name}", {quoted(x.label)}, "{x.type.dtype}", {x.type.dtype.itemsize}, '
            f"{self.extents(shape)}, {'true' if _is_overwritten(x) else 'false'}}}"
            for x, shape in rows
        ]
        return _part("described_arrays", self._arrays, texts)

    def extents(self, extents: Sequence[str]) -> str:
        return _part("described_extents", self._extents, extents)

    def sizes(self, sizes: Sequence[tuple[str, int]]) -> str:
        texts = [f"{{{quoted(name)}, {size}}}" for name, size in sizes]
        return _part("described_sizes", self._sizes, texts)

    def lines(self) -> Iterator[str]:
        """Yields the definitions of the tables that are not empty."""
        rows = range(0, len(self._extents), _WIDTH)
        extents = [", ".join(self._extents[start : start + _WIDTH]) for start in rows]
        yield from _table("std::size_t", "described_extents", extents)
        yield from _table("axir::SizeDescription", "described_sizes", self._sizes)
        yield from _table("axir::ArrayDescription", "described_arrays", self._arrays)


def _part(name: str, table: list[str], texts: Sequence[str]) -> str:
    """Adds rows to a table; returns the list that they are."""
    start = len(table)
    table += texts
    return f"{{{name} + {start}, {len(texts)}}}" if texts else "{}"


def _table(kind: str, name: str, rows: Sequence[str]) -> Iterator[str]:
    if rows:
        yield f"constexpr {kind} {name}[] = {{"
        yield from (f"    {row}," for row in rows)
        yield "};"
        yield ""


def _method_row(tables: _Tables, method: Method) -> str:
    counts = [str(x.rows) for x in method.programs] if method.rows else []
    return (
        f'{{"{method.name}", {quoted(method.label)},\n'
        f"     {tables.arrays(list(map(_given_row, method.arguments)))},\n"
        f"     {tables.arrays(list(map(_given_row, method.results)))},\n"
        f'     "{method.rows or ""}", {tables.extents(counts)}, {tables.sizes(method.sizes)}}}'
    )


def _features(names: Sequence[str]) -> Iterator[str]:
    """Yields names as the end of a row of the table, on separate lines."""
    rows = [" ".join(names[start : start + 8]) for start in range(0, len(names), 8)] or [""]
    for row in rows[:-1]:
        yield f'     "{row} "'
    yield f'     "{rows[-1]}"}},'
