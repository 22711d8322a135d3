"""Proves that the rooms inside the rooms have an order, and that no import is hidden.

`test_layers.py` proves the order of the four rooms. Here every folder in them has its place: it
imports what stands before it in `ORDER`, and nothing after it. Modules import each other without
circles, also for types and inside functions. An import inside a function states its reason, and
modules are named to be loaded late only in the files that `LATE` lists.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.source_imports import ROOT, imports_of, module_name, source_files

# From first to last. A folder that is not listed belongs to the nearest listed one above it.
ORDER = (
    "dialect/core",
    "dialect/builders",
    "dialect/program",
    "dialect/ops/elementwise",
    "dialect/ops/shape",
    "dialect/ops/reductions",
    "dialect/ops/indexing",
    "dialect/ops/special",
    "dialect/ops/contraction",
    "dialect/ops/convolution",
    "dialect/ops/windows",
    "dialect/ops/sorting",
    "dialect/ops/collectives",
    "dialect/ops/calls",
    "dialect/ops/sharding",
    "dialect/ops/random",
    "dialect/ops/control_flow",
    "dialect/ops/custom_rules",
    "dialect/ops/linalg",
    "dialect/ops",
    "dialect/text",
    "dialect",
    "passes/framework",
    "passes/transforms",
    "passes/partition",
    "passes/legalize",
    "passes/legalize/buffers",
    "passes/legalize/numbers",
    "passes/legalize/complex",
    "passes/legalize/contractions",
    "passes/legalize/fft",
    "passes/legalize/indices",
    "passes/legalize/loops",
    "passes/legalize/sorting",
    "passes/legalize/windows",
    "passes/raising/dimensions",
    "passes/raising",
    "passes/fuse",
    "passes/fuse/moves",
    "passes/fuse/shares",
    "passes/tune/rows",
    "passes/tune",
    "passes/tune/products",
    "passes",
    "runtime/errors",
    "runtime/processes",
    "runtime/device",
    "runtime/native",
    "runtime/compiler",
    "runtime/calls",
    "runtime/spmd",
    "runtime/cpp/program",
    "runtime/cpp/reading",
    "runtime/cpp/emitting",
    "runtime/cpp",
    "runtime",
    "frontend/_trees",
    "frontend/_arguments",
    "frontend/_devices",
    "frontend/_transforms",
    "frontend/custom_derivatives",
    "frontend/numpy/_arguments",
    "frontend/numpy/_elementwise",
    "frontend/numpy/_reductions",
    "frontend/numpy/_shape",
    "frontend/numpy/_arrays",
    "frontend/numpy/_indexing",
    "frontend/numpy/_sorting",
    "frontend/numpy/_products",
    "frontend/numpy/_statistics",
    "frontend/numpy/_functions",
    "frontend/numpy/_methods",
    "frontend/numpy",
    "frontend/_programs",
    "frontend/_bundles",
    "frontend/_foreign",
    "frontend/_cpp",
    "frontend/_checkpoints",
    "frontend/_profiling",
    "frontend",
)
# Where imports point back, each with the reason in its own text.
LATE = {
    "axir.dialect.ops.later_ops": "rules of families that need later ones",
    "axir.dialect.program.operation": "views of a function, at the end of its room",
    "axir._later": "what is made of all of the frontend, and what few programs name",
    "axir.dialect.core.symbolic_dims": "arithmetic on extents, which simplifies by their bounds",
}
MECHANISM = "axir.dialect.core.late_modules"
REASON = re.compile(r"#\s*late: \w+")

MODULES = {module_name(path): path for path in source_files()}
DIRECTORIES = sorted({str(path.parent.relative_to(ROOT)) for path in source_files()})


def room_of(module: str) -> str:
    place = str(MODULES[module].relative_to(ROOT).with_suffix(""))
    while place not in ORDER:
        place = place.rpartition("/")[0]
    return place


@pytest.fixture(scope="module")
def edges() -> dict[str, list[tuple[int, str]]]:
    """The line and the name of the modules that each module imports when it runs."""
    return {module: list(edges_of(module)) for module in MODULES}


def edges_of(module: str) -> Iterator[tuple[int, str]]:
    for found in imports_of(MODULES[module]):
        name = found.name if found.name in MODULES else found.name.rpartition(".")[0]
        if name in MODULES and name != module and not found.is_for_types:
            yield found.line, name


def test_every_folder_has_a_place() -> None:
    homeless = [folder for folder in ORDER if not (ROOT / folder).is_dir()]
    assert homeless == ["runtime/errors"]  # a file, which all of its room may import
    flat = [folder for folder in DIRECTORIES if folder.count("/") == 1 and folder not in ORDER]
    assert [f for f in flat if not f.startswith("frontend/")] == []


@pytest.mark.parametrize("room", ORDER)
def test_a_room_imports_what_stands_before_it(
    room: str, edges: dict[str, list[tuple[int, str]]]
) -> None:
    allowed = ORDER[: ORDER.index(room) + 1]
    found = [
        f"{MODULES[module].relative_to(ROOT)}:{line} imports {name}"
        for module in MODULES
        if room_of(module) == room
        for line, name in edges[module]
        if name not in LATE and room_of(name) not in allowed and not is_public(name)
        if not has_reason(module, line)
    ]
    assert not found, "\n".join(found)


def is_public(name: str) -> bool:
    """Tells whether a name is a package of the public API; other tests check its contents."""
    return MODULES[name].name == "__init__.py" and room_of(name) == "frontend"


def test_no_circles() -> None:
    """Follows every import, those for types and those inside functions too, and comes never back.

    Packages are left out: they name what their modules offer.
    """
    below = {module: needs_of(module) for module in MODULES}
    finished: set[str] = set()
    path: list[str] = []

    def follow(module: str) -> None:
        assert module not in path, " -> ".join([*path[path.index(module) :], module])
        if module in finished:
            return
        path.append(module)
        for name in below[module]:
            follow(name)
        path.pop()
        finished.add(module)

    for module in MODULES:
        follow(module)


def needs_of(module: str) -> list[str]:
    """Returns the modules, other than packages, that a module names in imports of any kind."""
    if is_package(module):
        return []
    named = {
        name
        for found in imports_of(MODULES[module])
        for name in (found.name, found.name.rpartition(".")[0])
        if name in MODULES and name != module and not is_package(name)
    }
    return sorted(named)


def is_package(module: str) -> bool:
    return MODULES[module].name == "__init__.py"


def has_reason(module: str, line: int) -> bool:
    return bool(REASON.search(lines_of(MODULES[module])[line - 1]))


@functools.cache
def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines()


def test_imports_inside_functions_state_their_reason() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{each.line}: {each.name}"
        for module, path in MODULES.items()
        for each in imports_of(path)
        if each.is_in_function and not has_reason(module, each.line)
    ]
    assert not found, "\n".join(found)


def test_late_modules_are_named_where_they_are_listed() -> None:
    callers = {
        module
        for module, path in MODULES.items()
        if re.search(r"\blate_module\(\"|\bLateNames\b", path.read_text()) and module != MECHANISM
    }
    assert callers == set(LATE)


@pytest.mark.parametrize("folder", DIRECTORIES)
def test_a_folder_says_what_lives_there(folder: str) -> None:
    init = ROOT / folder / "__init__.py"
    assert init.exists(), f"{folder} has no __init__.py"
    assert len(ast.get_docstring(ast.parse(init.read_text())) or "") > 20


@pytest.mark.parametrize("room", [room for room in ORDER if (ROOT / room).is_dir()])
def test_the_design_shows_the_room(room: str) -> None:
    """Finds the first sentence of the room's docstring in the table of rooms, in its order."""
    docstring = ast.get_docstring(ast.parse((ROOT / room / "__init__.py").read_text()))
    assert docstring is not None
    row = f"| `{room}/` | {docstring.partition(chr(10))[0]} |"
    assert row in (ROOT / "docs" / "design.md").read_text()
