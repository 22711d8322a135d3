"""`NAME.cpp`: the code of a model, and separate files for models of several kinds of CPUs.

Here: also arrays as C++ source, parameters and constants that become part of the program.

Elsewhere: the classes (`program_class.py`, `variant_class.py`), the functions that users call
(`public_methods.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from axir.runtime.cpp.program.interface import Interface, Variant

from .description import write_description
from .names import RUNTIME_VERSION, declaration
from .program_class import write_class, write_definitions, write_types
from .public_methods import write_public
from .variant_class import VariantClass


def write_sources(
    interface: Interface, variants: Sequence[Variant], embedded_size: int | None
) -> dict[str, str]:
    """Returns the texts of the sources, by name.

    Args:
        interface: The model's interface.
        variants: The programs, in descending order of their CPUs' features.
        embedded_size: The number of bytes of parameters that are part of the program; None if they
            lie in a separate file.
    """
    name = interface.name
    classes = [VariantClass(interface, variant) for variant in variants]
    base = list(write_class(interface, variants))
    rest = list(write_description(interface, variants))
    rest += write_definitions(interface, embedded_size)
    rest += [*_choice(interface, variants), *write_public(interface)]
    data = list(_embedded(interface, embedded_size))
    types = ["namespace {", "", *write_types(interface), "}  // namespace", ""]
    if len(variants) == 1:
        only = classes[0]
        externals = [*only.externals(), *data]
        body = [*types, *base, "", *only.lines(), *rest]
        return {f"{name}.cpp": _file(interface, [f'#include "{name}.hpp"'], externals, body)}
    internal = f"{name}_program.hpp"
    included = [f'#include "{internal}"']
    files = {
        internal: _file(interface, ["#pragma once", "", f'#include "{name}.hpp"'], [], [*base, ""]),
        f"{name}.cpp": _file(interface, included, data, [*types, *rest]),
    }
    for variant, each in zip(variants, classes, strict=True):
        text = _file(interface, included, each.externals(), each.lines())
        files[f"{name}_for_{variant.label}.cpp"] = text
    return files


def _file(
    interface: Interface, start: Sequence[str], externals: Iterable[str], body: Iterable[str]
) -> str:
    name = interface.name
    lines = [
        f"// {name}: a model written by axir. Changes to this file are lost.",
        *start,
        "",
        f"#include <axir/v{RUNTIME_VERSION}/cpu.hpp>",
        f"#include <axir/v{RUNTIME_VERSION}/instance.hpp>",
        "#include <cstring>",
        "#include <limits>",
        "#include <utility>",
        "",
        *externals,
        f"namespace {name} {{",
        *body,
        f"}}  // namespace {name}",
        "",
    ]
    return "\n".join(lines)


def _embedded(interface: Interface, embedded_size: int | None) -> Iterator[str]:
    if embedded_size is not None and (interface.parameters or interface.states):
        yield f"extern const std::uint64_t {interface.name}_parameters[];"
        yield ""


def _choice(interface: Interface, variants: Sequence[Variant]) -> Iterator[str]:
    """Yields the function that chooses the program for the CPU that it runs on."""
    has_callbacks = bool(interface.callbacks)
    parameters = ["Callbacks callbacks"] if has_callbacks else []
    parameters += ["const axir::Options& options", "axir::Status& status"]
    arguments = "std::move(callbacks), options" if has_callbacks else "options"
    start = "std::unique_ptr<Model::Program> Model::Program::make("
    yield from declaration(start, parameters, ") {")
    count = len(variants)
    yield f"  switch (axir::choose_variant(variants, {count}, options.target_cpu, status)) {{"
    for number, variant in enumerate(variants):
        yield f"    case {number}:"
        yield f"      return make_for_{variant.label}({arguments});"
    yield "    default:"
    yield "      return nullptr;"
    yield "  }"
    yield "}"
    yield ""


_PER_LINE = 4


def write_data(name: str, parameters: bytes | None, constants: Sequence[bytes]) -> str:
    """Returns the text of a source that defines parameters and constants, aligned for kernels."""
    return "\n".join(_lines(name, parameters, constants))


def _lines(name: str, parameters: bytes | None, constants: Sequence[bytes]) -> Iterator[str]:
    yield f"// Data of {name}, a model written by axir. Changes to this file are lost."
    yield "#include <cstdint>"
    yield ""
    yield "#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__"
    yield '#error "this model is for machines that store the lowest byte first"'
    yield "#endif"
    yield ""
    arrays = [] if parameters is None else [(f"{name}_parameters", parameters)]
    arrays += [(f"{name}_constants_{number}", x) for number, x in enumerate(constants)]
    for symbol, content in arrays:
        yield f"extern const std::uint64_t {symbol}[];"
        yield f"alignas(64) const std::uint64_t {symbol}[] = {{"
        yield from _rows(content)
        yield "};"
        yield ""


def _rows(content: bytes) -> Iterator[str]:
    padded = content + bytes(-len(content) % 8) or bytes(8)
    words = [f"0x{word:x}u" for word in np.frombuffer(padded, "<u8").tolist()]
    for start in range(0, len(words), _PER_LINE):
        yield f"    {', '.join(words[start : start + _PER_LINE])},"
