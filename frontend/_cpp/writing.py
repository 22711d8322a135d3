"""`write_cpp`: writes exported functions as a folder of C++.

Elsewhere: functions as methods (`models.py`).
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from axir._bundles.exported import Exported
from axir._bundles.manifest import Sizes, key_text
from axir._bundles.open_sizes import name_of_sizes
from axir._bundles.programs import instances
from axir.dialect.core.errors import ParameterError
from axir.runtime.compiler.architectures import cpu_levels
from axir.runtime.compiler.target import Target
from axir.runtime.cpp.emission import emit_model, write_folder
from axir.runtime.cpp.emitting.names import identifier

from .models import ModelBuilder

_OWN_METHODS = frozenset(("Model", "create", "load", "save", "set_profiler", "share", "target_cpu"))


@dataclass(frozen=True)
class CppOptions:
    """Options of `axir.export.to_cpp`, which describes them."""

    name: str = "model"
    errors: str = "exceptions"
    target_cpu: str | Sequence[str] | None = None
    target_triple: str | None = None
    opt_level: int = 2
    embed_limit: int = 1 << 20


def fixed_sizes(
    functions: Mapping[str, Exported],
) -> tuple[dict[str, Exported], dict[str, Sizes]]:
    """Returns functions with their symbolic dimensions replaced by the sizes that they name.

    Returns:
        All functions by the names of methods, and the sizes of those that have some.

    Raises:
        ParameterError: if one names no sizes, or the name of a function of fixed sizes is taken.
    """
    fixed_names = {name for name, each in functions.items() if each.open is None}
    found: dict[str, Exported] = {}
    sizes: dict[str, Sizes] = {}
    for name, each in functions.items():
        if each.open is None:
            found[name] = each
            continue
        for key, fixed in instances(name, each):
            assert not isinstance(key, int)
            method = name_of_sizes(name, key)
            if method in fixed_names or method in found:
                raise ParameterError(
                    f"to_cpp: {name!r} for {key_text(key)} would be called {method!r}, as another "
                    "function is.",
                    "Name one of the functions in another way.",
                )
            found[method], sizes[method] = fixed, key
    return found, sizes


def write_cpp(
    functions: Mapping[str, Exported],
    directory: Path,
    options: CppOptions,
) -> list[Path]:
    """Writes a model; see `axir.export.to_cpp`."""
    if options.errors not in ("exceptions", "status"):
        raise ParameterError(
            f"to_cpp: errors cannot be {options.errors!r}.", "Choose 'exceptions' or 'status'."
        )
    functions, sizes = fixed_sizes(functions)
    for name in (options.name, *functions):
        if identifier(name) != name:
            raise ParameterError(
                f"to_cpp: {name!r} is no name in C++.",
                f"Choose one such as {identifier(name, 'model')!r}.",
            )
    for name in _OWN_METHODS.intersection(functions):
        raise ParameterError(
            f"to_cpp: models have a method {name!r} of their own.",
            f"Name the function in another way, such as {name + '_1'!r}.",
        )
    cpus = options.target_cpu
    if cpus is None:
        cpus = cpu_levels(options.target_triple)
    cpus = [cpus] if isinstance(cpus, str) else list(dict.fromkeys(cpus))
    targets = [
        Target(cpu=cpu, opt_level=options.opt_level, triple=options.target_triple) for cpu in cpus
    ]
    if not targets:
        raise ParameterError("to_cpp: target_cpu names no CPU.", "Write target_cpu='generic'.")
    throws = options.errors == "exceptions"
    builder = ModelBuilder(options.name, functions, throws, sizes)
    files = emit_model(
        builder.functions,
        builder.interface,
        builder.donated,
        targets,
        options.name,
        options.embed_limit,
    )
    write_folder(directory, files)
    _remove_others(directory, options.name, files)
    return [directory / path for path in files]


def _remove_others(directory: Path, name: str, files: Container[str]) -> None:
    """Removes the model's files for other CPUs; a build of all files would include them, too."""
    for pattern in (f"{name}_for_*.cpp", f"{name}_kernels*.o", f"{name}_program.hpp"):
        for path in directory.glob(pattern):
            if path.name not in files:
                path.unlink()
