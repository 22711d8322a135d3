"""The files of axir's rooms, their statements, and their imports."""

from __future__ import annotations

import ast
import dataclasses
import functools
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
# From left to right; a room imports itself and the rooms to its right.
ROOMS = ("frontend", "runtime", "passes", "dialect")
PACKAGES = {
    "frontend": "axir",
    "runtime": "axir.runtime",
    "passes": "axir.passes",
    "dialect": "axir.dialect",
}


def source_files() -> list[Path]:
    return sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))


def module_name(path: Path) -> str:
    room, *rest = path.relative_to(ROOT).with_suffix("").parts
    parts = [PACKAGES[room], *rest]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@dataclasses.dataclass(frozen=True)
class Import:
    """An import of a source.

    Attributes:
        line: Its line.
        name: The absolute name of the imported object; `package.name` for
            `from package import name`, since `name` may be a module.
        is_in_function: Whether it is a statement in a function.
        is_for_types: Whether only type checkers see it.
    """

    line: int
    name: str
    is_in_function: bool
    is_for_types: bool


@functools.cache
def imports_of(path: Path) -> tuple[Import, ...]:
    """The imports of a file of axir's."""
    return tuple(found_imports(path.read_text(), module_name(path), path.name == "__init__.py"))


def found_imports(source: str, module: str, is_package: bool) -> Iterator[Import]:
    """Yields every import of a source, calls of `importlib.import_module` included."""
    tree = ast.parse(source)
    for node, is_in_function, is_for_types in statements(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = absolute_base(node, module, is_package)
            names = [f"{base}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from (Import(node.lineno, name, is_in_function, is_for_types) for name in names)
    if "import_module" in source or "__import__" in source:
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and is_import_call(node.func) and node.args:
                name = node.args[0]
                if isinstance(name, ast.Constant) and isinstance(name.value, str):
                    yield Import(node.lineno, name.value, False, False)


def statements(
    node: ast.AST, is_in_function: bool = False, is_for_types: bool = False
) -> Iterator[tuple[ast.stmt, bool, bool]]:
    """Yields the statements below a node, a fifth of the nodes that `ast.walk` visits.

    With each, whether it stands in a function, and whether only type checkers see it.
    """
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        below: object = getattr(node, field, ())
        if not isinstance(below, list):  # the body of a lambda or of a condition
            continue
        hides = field == "body" and isinstance(node, ast.If) and _asks_for_types(node)
        for child in below:
            if isinstance(child, ast.stmt):
                yield child, is_in_function, is_for_types or hides
            starts = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef))
            yield from statements(child, is_in_function or starts, is_for_types or hides)


def _asks_for_types(node: ast.If) -> bool:
    return "TYPE_CHECKING" in ast.unparse(node.test)


def absolute_base(node: ast.ImportFrom, module: str, is_package: bool) -> str:
    if node.level == 0:
        return node.module or ""
    parts = module.split(".")
    kept = len(parts) - node.level + (1 if is_package else 0)
    return ".".join([*parts[:kept], *([node.module] if node.module else [])])


def is_import_call(function: ast.expr) -> bool:
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in ("import_module", "__import__")
