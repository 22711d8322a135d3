"""Completion in a shell shows the API of public modules: the names in `__all__`, no imports."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType

import axir

# Modules that users do not import from: the engine, the command line, and JAX's names for modules.
_OTHERS = ("axir.dialect", "axir.passes", "axir.runtime", "axir.cli", "axir.as_jax")


def public_modules() -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(axir.__path__, "axir."):
        is_private = any(part.startswith("_") for part in found.name.split("."))
        if not is_private and not found.name.startswith(_OTHERS):
            yield importlib.import_module(found.name)


def test_dir_of_public_modules_has_the_names_of_all() -> None:
    modules = list(public_modules())
    assert len(modules) > 100
    for module in modules:
        offered = {
            name
            for name in dir(module)
            if not name.startswith("_") and not isinstance(getattr(module, name), ModuleType)
        }
        assert offered <= {*getattr(module, "__all__", ()), "annotations"}, module.__name__
