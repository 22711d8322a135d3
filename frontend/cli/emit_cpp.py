"""`axir compile --emit cpp`: from a bundle, or a saved module, to a folder of C++."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from axir._bundles.open_sizes import for_sizes
from axir._cpp.writing import CppOptions, write_cpp

from .bundles import open_functions
from .group import note
from .progress import progress


def emit_cpp(
    file: Path,
    directory: Path,
    rows: Sequence[int],
    shapes: Mapping[str, tuple[int | str, ...]],
    sizes: Sequence[Mapping[str, int]],
    options: CppOptions,
) -> None:
    """Writes functions as the methods of a C++ model: all of a bundle, the public ones of a module.

    Args:
        file: A bundle, or a module of jaxpr or StableHLO.
        directory: The folder to write.
        rows: Sizes of the leading dimension, where it is open.
        shapes: Shapes of arguments that StableHLO leaves open.
        sizes: Combinations of sizes of open dimensions.
        options: As for `axir.export.to_cpp`.
    """
    start = time.perf_counter()
    functions = for_sizes(open_functions(file, shapes), rows, sizes)
    with progress(f"compiling {', '.join(functions)} as C++"):
        files = write_cpp(functions, directory, options)
    size = sum(path.stat().st_size for path in files)
    seconds = time.perf_counter() - start
    note(f"wrote {directory}: {len(files)} files of {size:,} bytes, {seconds:.2f} s")
