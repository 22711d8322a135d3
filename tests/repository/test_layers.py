"""Proves that imports point one way: frontend -> runtime -> passes -> dialect.

Every import counts: absolute and relative ones, inside functions, for type checking only, and
`importlib.import_module` of a literal name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from support.source_imports import (
    PACKAGES,
    ROOMS,
    ROOT,
    Import,
    found_imports,
    imports_of,
    module_name,
    source_files,
)

# The parts of the runtime that talk to the compiler, or read its output.
COMPILER_ROOMS = ("axir.runtime.compiler", "axir.runtime.cpp.reading")
# Needed by tests and benchmarks only.
FOREIGN = ("jax", "jaxlib", "pytest", "hypothesis")


def room_of(module: str) -> str:
    for room in ("runtime", "passes", "dialect"):
        if is_within(module, PACKAGES[room]):
            return room
    return "frontend"


def is_within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def violations(source: str, module: str, is_package: bool = False) -> list[str]:
    """Describes every import of `source` that its room does not allow."""
    return violations_among(found_imports(source, module, is_package), module)


def violations_among(imports: Iterable[Import], module: str) -> list[str]:
    room = room_of(module)
    return [
        f"{module}, line {each.line}: import of {each.name}: {reason}"
        for each in imports
        for reason in reasons_against(each.name, module, room)
    ]


def reasons_against(name: str, module: str, room: str) -> Iterator[str]:
    if is_within(name, "axir") and ROOMS.index(room_of(name)) < ROOMS.index(room):
        yield f"{room} must not import {room_of(name)}"
    is_compiler = any(is_within(module, name) for name in COMPILER_ROOMS)
    may_compile = room in ("dialect", "passes") or is_compiler
    # `import iree` and `from iree import *` would reach both wheels.
    if is_within(name, "iree.compiler") or name in ("iree", "iree.*"):
        if not may_compile:
            yield f"iree.compiler belongs to dialect, passes and {' and '.join(COMPILER_ROOMS)}"
    if is_within(name, "iree.runtime") or name in ("iree", "iree.*"):
        if room != "runtime":
            yield "iree.runtime belongs to runtime"
    if name.partition(".")[0] in FOREIGN:
        yield "only tests and benchmarks may import it"
    if name.partition(".")[0] in ROOMS:
        yield "a room is imported under its name in axir"


@pytest.mark.parametrize("path", source_files(), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_to_the_right(path: Path) -> None:
    found = violations_among(imports_of(path), module_name(path))
    assert not found, "\n".join(found)


def test_every_room_has_sources() -> None:
    assert {path.relative_to(ROOT).parts[0] for path in source_files()} == set(ROOMS)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("axir.dialect.types", "import axir.passes.jvp"),
        ("axir.dialect.types", "from axir import passes"),
        ("axir.dialect.types", "from axir.runtime import devices"),
        ("axir.dialect.types", "from .. import runtime"),
        ("axir.dialect.types", "from ..passes import jvp"),
        ("axir.dialect.types", "import axir.numpy as jnp"),
        ("axir.dialect.types", "import axir"),
        ("axir.dialect.ops.dot", "from ...passes.base import Pass"),
        ("axir.dialect.ops.dot", "def rule():\n    from ... import numpy"),
        ("axir.dialect.ops.dot", "if TYPE_CHECKING:\n    from axir.runtime.cache import Cache"),
        ("axir.dialect.ops.dot", "import importlib\nimportlib.import_module('axir.runtime')"),
        ("axir.dialect.array", "import iree.runtime"),
        ("axir.dialect.array", "from iree import runtime"),
        ("axir.dialect.array", "import iree"),
        ("axir.passes.vmap", "from ..runtime import cache"),
        ("axir.passes.vmap", "from axir.lax import add"),
        ("axir.passes.vmap", "from iree.runtime import VmModule"),
        ("axir.passes.kernels.sort", "from ...runtime import cache"),
        ("axir.runtime.cache", "from .. import jit"),
        ("axir.runtime.cache", "from iree.compiler import ir"),
        ("axir.runtime.compilers", "from iree.compiler import ir"),
        ("axir.runtime.cache", "import jax"),
        ("axir.cli", "from iree.compiler import ir"),
        ("axir.cli", "def run():\n    import iree.runtime"),
        ("axir.numpy", "import jax.numpy"),
        ("axir.numpy", "from dialect import types"),
    ],
)
def test_an_import_to_the_left_is_found(module: str, source: str) -> None:
    assert len(violations(source, module)) >= 1


def test_relative_imports_of_a_package_start_at_the_package() -> None:
    source = "from ..passes import jvp"
    assert len(violations(source, "axir.dialect", is_package=True)) == 1
    assert violations(source, "axir.dialect.ops", is_package=True) == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("axir.numpy", "from axir.runtime import cache\nfrom axir.passes import jvp"),
        ("axir.numpy", "from . import lax\nfrom .dialect import types"),
        ("axir.runtime.cache", "from ..passes import jvp\nimport iree.runtime"),
        ("axir.runtime.compiler", "from iree.compiler import api"),
        ("axir.runtime.compiler.invocation", "from iree.compiler import api"),
        ("axir.passes.vmap", "from ..dialect.primitive import Primitive\nimport iree.compiler.ir"),
        ("axir.dialect.types", "from iree.compiler import ir\nimport numpy"),
    ],
)
def test_an_import_to_the_right_is_allowed(module: str, source: str) -> None:
    assert violations(source, module) == []
