"""`example.cpp`: a program that calls each method of a model once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from axir.runtime.cpp.emitting.header import unique_callbacks
from axir.runtime.cpp.emitting.types import element
from axir.runtime.cpp.program.interface import Given, Interface, Method

_SHOWN = 8
_ROWS = 2  # of functions that take any number


def write_example(interface: Interface) -> str:
    """Returns the text of the program; it calls with ones."""
    return "\n".join(_lines(interface))


def _lines(interface: Interface) -> Iterator[str]:
    name = interface.name
    yield f'#include "{name}.hpp"'
    yield ""
    yield "#include <cstdio>"
    yield "#include <vector>"
    yield ""
    yield "template <class View>"
    yield "void print(const char* name, const View& array) {"
    yield '  std::printf("%s:", name);'
    yield f"  for (std::size_t index = 0; index < array.size() && index < {_SHOWN}; ++index) {{"
    yield '    std::printf(" %.9g", double(axir::real_part(array[index])));'
    yield "  }"
    yield f'  std::printf(array.size() > {_SHOWN} ? " ...\\n" : "\\n");'
    yield "}"
    yield ""
    yield "int main() {"
    body = list(_body(interface))
    if interface.throws:
        yield "  try {"
        yield from (f"    {line}" for line in body)
        yield "  } catch (const axir::Error& error) {"
        yield f'    std::fprintf(stderr, "{name}: %s\\n", error.what());'
        yield "    return 1;"
        yield "  }"
    else:
        yield from (f"  {line}" for line in body)
    yield "  return 0;"
    yield "}"
    yield ""


def _body(interface: Interface) -> Iterator[str]:
    name = interface.name
    arguments = ""
    if interface.callbacks:
        yield f"{name}::Callbacks callbacks;  // those that are not set do nothing"
        for callback in unique_callbacks(interface):
            if callback.results:
                yield f"callbacks.{callback.name} = [](auto...) {{}};"
        arguments = "callbacks"
    if interface.throws:
        yield f"{name}::Model model{f'({arguments})' if arguments else ''};"
    else:
        first = f", {arguments}" if arguments else ""
        yield f"std::unique_ptr<{name}::Model> made;"
        yield f"axir::Status status = {name}::Model::create(made{first});"
        yield from _stop_unless_ok()
        yield f"{name}::Model& model = *made;"
    for method in interface.methods:
        yield "{"
        yield from (f"  {line}" for line in _call(interface, method))
        yield "}"


def _call(interface: Interface, method: Method) -> Iterator[str]:
    for x in method.arguments:
        yield f"{_vector(x)};"
    names = [x.name for x in method.arguments]
    call = f"model.{method.name}({', '.join(names)})"
    if interface.throws:
        yield f"const auto result = {call};" if method.results else f"{call};"
    else:
        type_ = "".join(w[:1].upper() + w[1:] for w in method.name.split("_")) + "Result"
        if method.results:
            yield f"{interface.name}::{type_} result;"
            call = f"model.{method.name}({', '.join([*names, 'result'])})"
        yield f"status = {call};"
        yield from _stop_unless_ok()
    for x in method.results:
        yield f'print("{method.name}.{x.name}", result.{x.name});'


def _vector(x: Given) -> str:
    kind, size = element(x.type), x.type.size * (_ROWS if x.rows else 1)
    if x.type.dtype == np.dtype(bool):  # std::vector<bool> is packed
        return f"std::array<bool, {size}> {x.name}{{}}"
    return f"std::vector<{kind}> {x.name}({size}, {kind}(1))"


def _stop_unless_ok() -> Iterator[str]:
    yield "if (!status.ok()) {"
    yield '  std::fprintf(stderr, "%s\\n", status.message().c_str());'
    yield "  return 1;"
    yield "}"
