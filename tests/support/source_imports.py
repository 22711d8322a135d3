"""The files of axir's rooms, and what they import."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
# From left to right; a room imports itself and what stands to its right.
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


def imported_modules(source: str, module: str, is_package: bool) -> Iterator[tuple[int, str]]:
    """Yields line and name of everything that `module` imports, names made absolute.

    `from package import name` yields `package.name`, for `name` may be a module.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = absolute_base(node, module, is_package)
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call) and is_import_call(node.func) and node.args:
            name = node.args[0]
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                yield node.lineno, name.value


def absolute_base(node: ast.ImportFrom, module: str, is_package: bool) -> str:
    if node.level == 0:
        return node.module or ""
    parts = module.split(".")
    kept = len(parts) - node.level + (1 if is_package else 0)
    return ".".join([*parts[:kept], *([node.module] if node.module else [])])


def is_import_call(function: ast.expr) -> bool:
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in ("import_module", "__import__")
