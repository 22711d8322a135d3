"""`axir compile --emit cpp`: from a bundle, or a saved module, to a folder of C++."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from axir._bundles.bundle import open_bundle
from axir._bundles.exported import Exported
from axir._cpp.writing import CppOptions, write_cpp
from axir.dialect.text.signature import signatures
from axir.runtime.cpp.emitting.names import identifier

from .group import JobError, note, read_input
from .progress import progress


def emit_cpp(file: Path, directory: Path, rows: Sequence[int], options: CppOptions) -> None:
    """Writes functions as the methods of a C++ model: all of a bundle, the public ones of a module.

    Args:
        file: A bundle, or a module of jaxpr.
        directory: The folder to write.
        rows: Numbers of rows for functions whose leading dimension is open, if they name none.
        options: As for `axir.export.to_cpp`.
    """
    start = time.perf_counter()
    functions = {
        name: each.with_rows(*rows) if rows and each.batch else each
        for name, each in _functions(file).items()
    }
    with progress(f"compiling {', '.join(functions)} as C++"):
        files = write_cpp(functions, directory, options)
    size = sum(path.stat().st_size for path in files)
    seconds = time.perf_counter() - start
    note(f"wrote {directory}: {len(files)} files of {size:,} bytes, {seconds:.2f} s")


def _functions(file: Path) -> Mapping[str, Exported]:
    if file.suffix == ".axir":
        return open_bundle(file)
    module, dialect = read_input(file)
    if dialect != "jaxpr":
        raise JobError(
            f"{file} is a module of {dialect}; C++ is written from jaxpr.\n"
            f"  Raise it: axir opt {file} -p raise-stablehlo -o raised.mlir"
        )
    return {
        identifier(symbol, "function"): Exported.from_module(module, str(file), symbol)
        for symbol in signatures(module)
    }
