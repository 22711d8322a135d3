"""C++ models in tests: built with the compiler of the system, and called through a driver.

The driver reads the arguments of each method from files of raw bytes and writes its results to such
files, so that Python can compare them bit for bit.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from axir._cpp.models import ModelBuilder
from axir.dialect.program.function_rules import HostCall
from axir.export import Exported
from axir.runtime.compiler.target import Target
from axir.runtime.cpp.emission import emit_model, write_folder
from axir.runtime.cpp.emitting.header import argument_view
from axir.runtime.cpp.emitting.types import element
from axir.runtime.cpp.program.interface import Given, Interface


@dataclass(frozen=True)
class EmittedModel:
    """An emitted model.

    Attributes:
        folder: Its folder.
        interface: Its public interface.
    """

    folder: Path
    interface: Interface


def emit(
    exported: Mapping[str, Exported],
    folder: Path,
    name: str,
    *,
    throws: bool = True,
    embed_limit: int = 1 << 20,
    targets: Sequence[Target] = (),
) -> EmittedModel:
    """Writes functions as a model, by default for this machine; see `axir.export.to_cpp`."""
    builder = ModelBuilder(name, exported, throws)
    interfaces = []

    def describe(calls: Sequence[HostCall]) -> Interface:
        interfaces.append(builder.interface(calls))
        return interfaces[0]

    targets = targets or [Target(cpu="host")]
    files = emit_model(builder.functions, describe, builder.donated, targets, name, embed_limit)
    write_folder(folder, files)
    return EmittedModel(folder, interfaces[0])


WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror")


def build(
    folder: Path,
    program: str,
    source: str,
    flags: Sequence[str] = ("-O0",),
    compiler: str = "g++",
) -> Path:
    """Compiles a model with a program of the test's, without warnings.

    The parts of the model are compiled once for all programs.
    """
    file = folder / "programs" / f"{program}.cpp"
    file.parent.mkdir(exist_ok=True)
    file.write_text(source)
    objects = [*compile_model(folder, flags, compiler), _compiled(folder, file, flags, compiler)]
    output = folder / program
    _check([compiler, *flags, *objects, "-o", str(output), "-pthread", "-lm"])
    return output


def compile_model(
    folder: Path, flags: Sequence[str] = ("-O0",), compiler: str = "g++"
) -> list[str]:
    """Compiles the sources of a model; returns its object files."""
    parts = [p for p in sorted(folder.glob("*.cpp")) if p.name != "example.cpp"]
    objects = [_compiled(folder, p, flags, compiler) for p in parts]
    return [*objects, *map(str, folder.glob("*.o"))]


def check_syntax(source: Path, folder: Path, compiler: str = "g++") -> None:
    """Lets a compiler check a source that includes headers of a model."""
    _check([compiler, "-std=c++17", *WARNINGS, *_includes(folder), "-fsyntax-only", str(source)])


def _compiled(folder: Path, source: Path, flags: Sequence[str], compiler: str) -> str:
    name = Path(compiler).name  # the path of a compiler would lead out of the folder
    output = folder / "objects" / f"{name}{'_'.join(flags)}_{source.stem}.o"
    output.parent.mkdir(exist_ok=True)
    if not output.exists():
        command = [compiler, "-std=c++17", *flags, *WARNINGS, *_includes(folder)]
        _check([*command, "-c", str(source), "-o", str(output)])
    return str(output)


def _includes(folder: Path) -> tuple[str, str]:
    return f"-I{folder / 'include'}", f"-I{folder}"


def _check(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]
    assert not done.stderr, done.stderr[:4000]


def run(program: Path, *arguments: str) -> str:
    """Runs a program in its folder; returns its output."""
    done = subprocess.run(
        [str(program), *arguments], capture_output=True, text=True, cwd=program.parent, check=False
    )
    assert done.returncode == 0, f"{done.returncode}: {done.stdout}\n{done.stderr}"[:4000]
    return done.stdout


def driver(interface: Interface, setup: str = "", options: str = "") -> str:
    """Returns a program that calls each method on the bytes of files.

    Args:
        interface: The interface of the model.
        setup: Statements before the model is made.
        options: Arguments of its constructor.
    """
    lines = [
        f'#include "{interface.name}.hpp"',
        "#include <cstdio>",
        "#include <cstdlib>",
        "#include <string>",
        "#include <vector>",
        "template <class T> std::vector<T> read(const std::string& path, std::size_t count) {",
        "  std::vector<T> data(count);",
        '  std::FILE* file = std::fopen(path.c_str(), "rb");',
        "  if (!file || std::fread(data.data(), sizeof(T), count, file) != count) std::abort();",
        "  std::fclose(file);",
        "  return data;",
        "}",
        "template <class V> void write(const std::string& path, const V& view) {",
        '  std::FILE* file = std::fopen(path.c_str(), "wb");',
        "  std::fwrite(view.data(), sizeof(*view.data()), view.size(), file);",
        "  std::fclose(file);",
        "}",
        "int main() {",
        setup,
        f"  {interface.name}::Model model{options};",
    ]
    for method in interface.methods:
        lines.append("  {")
        for x in method.arguments:
            # One element more, so that the arguments of tests are not aligned.
            kind = "unsigned char" if element(x.type) == "bool" else element(x.type)
            path = f"{method.name}.{x.name}.in"
            lines.append(f'    auto {x.name}_data = read<{kind}>("{path}", {x.type.size});')
            pointer = f"reinterpret_cast<{element(x.type)}*>({x.name}_data.data())"
            lines.append(f"    {argument_view(x)} {x.name}({pointer});")
        names = ", ".join(x.name for x in method.arguments)
        kept = "const auto result = " if method.results else ""
        lines.append(f"    {kept}model.{method.name}({names});")
        for y in method.outputs:
            if isinstance(y, Given):
                lines.append(f'    write("{method.name}.{y.name}.out", result.{y.name});')
        lines.append("  }")
    return "\n".join([*lines, "  return 0;", "}", ""])


def write_inputs(
    folder: Path, interface: Interface, arguments: Mapping[str, Sequence[np.ndarray]]
) -> None:
    """Writes the arguments of each method where its driver reads them."""
    for method in interface.methods:
        for x, value in zip(method.arguments, arguments[method.name], strict=True):
            path = folder / f"{method.name}.{x.name}.in"
            path.write_bytes(np.ascontiguousarray(value, x.type.dtype).tobytes())


def read_outputs(folder: Path, interface: Interface, method: str) -> list[np.ndarray]:
    """Returns the results that a driver has written for a method."""
    found = next(m for m in interface.methods if m.name == method)
    return [
        np.frombuffer((folder / f"{method}.{y.name}.out").read_bytes(), y.type.dtype).reshape(
            y.type.shape
        )
        for y in found.results
    ]
