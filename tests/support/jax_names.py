"""JAX's public names by module, read from its sources, and which of them axir has.

A module offers its definitions and its imports under an `as` (`from a import b as b`). That is the
rule of typed packages, which JAX follows; other imports are private.
`python -m support.jax_names [module ...]` in `tests/` prints which are missing.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import sys
import warnings
from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import Any

import jax

# Modules that programs do not import, each with the reason.
OTHER_MODULES = {
    "jax.cloud_tpu_init": "sets up machines of one cloud",
    "jax.collect_profile": "a program, not a library",
    "jax.experimental.array_serialization": "needs tensorstore",
    "jax.experimental.buffer_callback": "XLA's calls of Python with its buffers",
    "jax.experimental.colocated_python": "Python on other machines",
    "jax.experimental.compute_on": "offloads parts of XLA's programs to hosts of accelerators",
    "jax.experimental.control_deps": "hints for XLA's scheduler",
    "jax.experimental.custom_partitioning": "callbacks of XLA's partitioner",
    "jax.experimental.fused": "hints for XLA's fusion",
    "jax.experimental.jax2tf": "needs TensorFlow",
    "jax.experimental.mosaic": "XLA's kernels for accelerators",
    "jax.experimental.pallas.mosaic_gpu": "imports where jaxlib is that of a GPU",
    "jax.experimental.pallas.ops": "constants and helpers of kernels that are for accelerators",
    "jax.experimental.profiler": "reads XLA's profiles of its own compilation",
    "jax.experimental.roofline": "models of accelerators",
    "jax.experimental.scheduling_groups": "hints for XLA's scheduler",
    "jax.experimental.shard_alike": "a hint for XLA's partitioner",
    "jax.experimental.source_mapper": "reads XLA's dumps",
    "jax.experimental.sparse.test_util": "JAX's own tests",
    "jax.experimental.topologies": "topologies of accelerators",
    "jax.experimental.transfer": "XLA's transfer servers",
    "jax.extend.ifrt_programs": "XLA's runtime",
    "jax.extend.lowering": "for rules that write XLA's modules; axir's: interpreters.mlir",
    "jax.extend.mlir": "MLIR's own Python bindings; axir's are those of iree.compiler",
    "jax.extend.pallas": "a kernel language for accelerators",
    "jax.extend.sharding": "XLA's form of shardings",
    "jax.extend.xla": "passes over XLA's modules",
    "jax.interpreters.pxla": "XLA's executables",
    "jax.tools": "programs, not libraries",
}


@cache
def modules() -> tuple[str, ...]:
    """Returns the names of JAX's public modules, `jax` first."""
    found = ["jax"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in pkgutil.walk_packages(jax.__path__, "jax.", onerror=lambda name: None):
            if not is_private(module.name) and not is_other(module.name):
                found.append(module.name)
    return tuple(found)


def is_private(module: str) -> bool:
    return any(part.startswith("_") for part in module.split("."))


def is_other(module: str) -> bool:
    return any(module == other or module.startswith(other + ".") for other in OTHER_MODULES)


def public_names(module: str) -> list[str]:
    """Returns the public names of a module of JAX that exist."""
    loaded = load(module)
    assert loaded is not None, module
    offered = set(getattr(loaded, "__all__", ()))
    offered.update(names_in(ast.parse(inspect.getsource(loaded)).body))
    return sorted(n for n in offered if not n.startswith("_") and counts(loaded, n))


def names_in(statements: list[ast.stmt]) -> Iterator[str]:
    for statement in statements:
        match statement:
            case ast.ImportFrom(names=names) | ast.Import(names=names):
                yield from (
                    a.asname for a in names if a.asname and a.asname == a.name.split(".")[-1]
                )
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Assign(targets=targets):
                yield from (
                    node.id for target in targets for node in ast.walk(target)
                    if isinstance(node, ast.Name)
                )  # fmt: skip
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name
            case ast.If(body=body, orelse=other):
                yield from (*names_in(body), *names_in(other))


def counts(module: ModuleType, name: str) -> bool:
    """Tells whether a name is one of the API: neither a module of JAX's nor a type variable."""
    missing = object()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value = getattr(module, name, missing)
    if value is missing or type(value).__name__ in ("TypeVar", "ParamSpec", "Logger"):
        return False
    if isinstance(value, ModuleType):
        return value.__name__.startswith("jax.") and not is_private(value.__name__)
    return True


def load(module: str) -> ModuleType | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return importlib.import_module(module)
        except ImportError:
            return None


def counterpart(module: str) -> str:
    return "axir" + module.removeprefix("jax")


def missing_names(module: str) -> list[str]:
    """Returns the public names of a module of JAX that axir's module lacks."""
    ours = load(counterpart(module))
    return [name for name in public_names(module) if not has(ours, name)]


def has(module: ModuleType | None, name: str) -> bool:
    """Tells whether a module has a name, or a module of that name inside."""
    if module is None:
        return False
    return hasattr(module, name) or load(f"{module.__name__}.{name}") is not None


def function(package: ModuleType, path: str) -> Any:
    """Returns the object at a dotted path inside a package."""
    found: Any = package
    for name in path.split("."):
        found = getattr(found, name)
    return found


def report(chosen: list[str]) -> None:
    """Prints the missing names, by module."""
    total = lacking = 0
    for module in chosen or modules():
        names, missing = public_names(module), missing_names(module)
        total, lacking = total + len(names), lacking + len(missing)
        print(f"{module}: {len(names) - len(missing)} of {len(names)}", *missing)
    print(f"{total - lacking} of {total}, {1 - lacking / max(total, 1):.1%}")


if __name__ == "__main__":
    report(sys.argv[1:])
