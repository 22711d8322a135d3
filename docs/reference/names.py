"""Public modules, and their names."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import Any, NamedTuple

from axir._made_modules import MadeModule

# Modules below `axir` that programs do not import.
OTHERS = {"axir.as_jax", "axir.cli", "axir.dialect", "axir.passes", "axir.runtime"}


class Name(NamedTuple):
    """A public name of a module, and its object."""

    module: str
    name: str
    value: Any

    @property
    def full(self) -> str:
        """The name with its module."""
        return f"{self.module}.{self.name}"


def modules(root: str = "axir") -> Iterator[ModuleType]:
    """Yields the public modules, each before those within it."""
    module = importlib.import_module(root)
    yield module
    for found in pkgutil.iter_modules(getattr(module, "__path__", ())):
        name = f"{root}.{found.name}"
        if not found.name.startswith("_") and name not in OTHERS:
            yield from modules(name)
    for inside in list(vars(module).values()):  # those that have no file
        if isinstance(inside, MadeModule) and inside.__name__.rpartition(".")[0] == root:
            yield from modules(inside.__name__)


def names_of(module: ModuleType) -> list[Name]:
    """Returns the public names of a module, modules excepted."""
    listed = sorted(getattr(module, "__all__", ()))
    found = (Name(module.__name__, name, getattr(module, name)) for name in listed)
    return [name for name in found if not inspect.ismodule(name.value)]


def has_page(value: Any) -> bool:
    """Tells whether an object has a separate page: axir's functions and classes do."""
    module = getattr(value, "__module__", None) or ""
    documented = callable(value) and bool(inspect.getdoc(value)) and hasattr(value, "__name__")
    return documented and module.partition(".")[0] == "axir"
