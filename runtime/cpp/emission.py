"""`emit_model`: from traced functions to the folder of a C++ model.

Here: the files that are no sources of the model. They are the parameters, the build file and an
example. Each file of a folder is written whole or not at all.

Elsewhere: the text of the sources (`emitting/`).
"""

from __future__ import annotations

import dataclasses
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from axir.dialect.program.function import Function
from axir.dialect.program.function_rules import HostCall
from axir.passes.transforms.lower_to_stablehlo import lower_functions
from axir.runtime.compiler.architectures import used_features
from axir.runtime.compiler.compilation import compile_object
from axir.runtime.compiler.function_compilation import (
    mark_donated,
    prepare_for_target,
    take_result_storage,
)
from axir.runtime.compiler.target import Target
from axir.runtime.cpp.emitting.c_interface import write_c_header, write_c_source
from axir.runtime.cpp.emitting.description import description_text
from axir.runtime.cpp.emitting.header import unique_callbacks, write_header
from axir.runtime.cpp.emitting.names import identifier
from axir.runtime.cpp.emitting.source import write_data, write_sources
from axir.runtime.cpp.emitting.types import byte_size, element, stored_dtype, stored_shape
from axir.runtime.cpp.program.interface import Given, Interface, Method, Parameter, Variant

from .reading import read_program

# Prefix of object files' symbols: no method's name begins so.
KERNEL_PREFIX = "axir_kernels_of_"
_HEADERS = Path(__file__).parent / "include" / "axir"


def model_files(
    interface: Interface, variants: Sequence[Variant], constants: Sequence[bytes], embed_limit: int
) -> dict[str, bytes]:
    """Returns the content of a model's files by their path in its folder.

    Args:
        interface: The model's interface.
        variants: The methods' programs and their kernels, for one kind of CPU or for several.
        constants: Arrays that the programs share.
        embed_limit: Parameters of up to so many bytes become part of the program; larger ones lie
            in a file, which is mapped into memory.
    """
    name = interface.name
    kept = [*interface.parameters, *interface.states]
    parameters = parameter_file(kept) if kept else b""
    is_embedded = len(parameters) <= embed_limit
    size = len(parameters) if is_embedded else None
    files = {
        f"{name}.hpp": write_header(interface),
        **write_sources(interface, variants, size),
        f"{name}.h": write_c_header(interface),
        f"{name}_c.cpp": write_c_source(interface, description_text(interface, variants)),
        "example.cpp": write_example(interface),
    }
    embedded = parameters if kept and is_embedded else None
    if embedded is not None or constants:
        files[f"{name}_data.cpp"] = write_data(name, embedded, constants)
    sources = [file for file in files if file.startswith(name) and file.endswith(".cpp")]
    is_one = len(variants) == 1
    kernels = {
        f"{name}_kernels{'' if is_one else f'_for_{x.label}'}.o": x.kernels
        for x in variants
        if x.kernels
    }
    data = f"{name}.safetensors" if kept and not is_embedded else None
    files["CMakeLists.txt"] = write_build_file(name, sources, list(kernels), data)
    content = {path: text.encode() for path, text in files.items()}
    content |= kernels
    if data is not None:
        content[data] = parameters
    for header in sorted(_HEADERS.rglob("*.hpp")):
        content[f"include/axir/{header.relative_to(_HEADERS).as_posix()}"] = header.read_bytes()
    return content


def write_folder(directory: Path, files: Mapping[str, bytes]) -> None:
    """Writes files to a folder, which is made; each appears whole, by its name.

    Raises:
        OSError: if they cannot be written.
    """
    for path, content in files.items():
        file = directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(content)
            umask = os.umask(0)
            os.umask(umask)
            os.chmod(temporary, 0o666 & ~umask)
            os.replace(temporary, file)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise


_ALIGNMENT = 64


def parameter_file(parameters: Sequence[Parameter]) -> bytes:
    """Returns the content of the file."""
    ordered = sorted(parameters, key=lambda x: byte_size(x.type) % _ALIGNMENT != 0)
    table: dict[str, dict[str, str | list[int]]] = {}
    parts, offset = [], 0
    for x in ordered:
        content = np.ascontiguousarray(x.value).tobytes()
        table[x.label] = {
            "dtype": stored_dtype(x.type),
            "shape": list(stored_shape(x.type)),
            "data_offsets": [offset, offset + len(content)],
        }
        parts.append(content)
        offset += len(content)
    header = json.dumps(table, separators=(",", ":"), ensure_ascii=False).encode()
    header += b" " * (-(len(header) + 8) % _ALIGNMENT)
    return len(header).to_bytes(8, "little") + header + b"".join(parts)


def write_build_file(
    name: str, sources: Sequence[str], objects: Sequence[str], data: str | None
) -> str:
    """Returns the text of the file.

    Args:
        name: The model's name.
        sources: C++ sources.
        objects: Object files.
        data: The file of parameters, or None.
    """
    listed = "\n  ".join([*sources, *objects])
    lines = [
        f"# {name}: a model written by axir. Use it by add_subdirectory, or build the example.",
        "cmake_minimum_required(VERSION 3.25)",
        f"project({name} LANGUAGES C CXX)",
        "",
        "find_package(Threads REQUIRED)",
        "",
        f"add_library({name} STATIC\n  {listed})",
        f"target_include_directories({name} PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}} "
        "${CMAKE_CURRENT_SOURCE_DIR}/include)",
        f"target_compile_features({name} PUBLIC cxx_std_17)",
        f"target_link_libraries({name} PUBLIC Threads::Threads m)",
        "",
        f"add_executable({name}_example example.cpp)",
        f"target_link_libraries({name}_example PRIVATE {name})",
    ]
    if data is not None:
        lines += [
            "# The parameters stand where the example is run.",
            f"configure_file({data} ${{CMAKE_CURRENT_BINARY_DIR}}/{data} COPYONLY)",
        ]
    return "\n".join(lines) + "\n"


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


def emit_model(
    functions: Mapping[str, Function],
    describe: Callable[[Sequence[HostCall]], Interface],
    donated: Mapping[str, Mapping[int, int]],
    targets: Sequence[Target],
    name: str,
    embed_limit: int,
) -> dict[str, bytes]:
    """Compiles functions and writes them as C++.

    Args:
        functions: By the names of the methods. Their captures are passed as arguments.
        describe: Returns the model's interface, given the callbacks that the functions call.
        donated: For each function, the arguments that are donated, with the numbers of the results
            that take their memory.
        targets: The CPUs to compile for, of one architecture.
        name: The name of the model.
        embed_limit: As for `model_files`.

    Returns:
        The files by their path in the model's folder.

    Raises:
        CompileError: if IREE cannot compile the functions.
        CppEmissionError: if the program has an operation that cannot be written as C++.
    """
    calls: list[HostCall] = []
    variants, constants = [], list[bytes]()
    for target in targets:
        calls.clear()  # they are the same for all
        module = lower_functions(functions, host_functions=calls, is_portable=True)
        mark_donated(module, {symbol: set(pairs) for symbol, pairs in donated.items()})
        target = dataclasses.replace(target, linkage="object")
        prepare_for_target(module, target)
        take_result_storage(module, {s: set(donated.get(s, {}).values()) for s in functions})
        prefix = KERNEL_PREFIX + name
        if len(targets) > 1:
            prefix += f"_for_{identifier(target.cpu)}"
        text, kernels = compile_object(module, target, prefix, name)
        program = read_program(text, constants)
        features = program.machine.features if program.machine else ""
        used = used_features(target.architecture, features)
        variants.append(Variant(target.cpu, target.architecture, used, program, kernels, prefix))
    variants.sort(key=lambda variant: len(variant.features), reverse=True)
    return model_files(describe(calls), variants, constants, embed_limit)
