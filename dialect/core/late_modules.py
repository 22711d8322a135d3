"""Modules that are imported when one of their names is first used.

Imports point one way, from a room to the rooms before it, and form no circle. If a definition needs
a later room nevertheless, it names that room through `late_module`, in a file that states the
reason (`dialect/ops/later_ops.py`). Imports inside functions would hide such needs.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence

from .annotations import Foreign


class LateModule:
    """Stands for a module that need not have been imported yet.

    A name is looked up once and then is an attribute, as fast to read as the module's.
    """

    def __init__(self, name: str):
        self.__name__ = name

    def __getattr__(self, name: str) -> Foreign:
        """Imports the module and remembers the value of the name."""
        if name.startswith("__"):
            raise AttributeError(f"The late module {self.__name__} is not asked for {name}.")
        value = getattr(importlib.import_module(self.__name__), name)
        setattr(self, name, value)
        return value

    def __repr__(self) -> str:
        return f"LateModule({self.__name__!r})"


def late_module(name: str) -> Foreign:
    """Returns an object that stands for the module of that name.

    >>> late_module("math").floor(2.5)
    2
    """
    return LateModule(name)


class LateNames:
    """Names of several modules; each name is looked up once and then becomes an attribute.

    A subclass declares the types of the names.

    Args:
        package: The package in which the modules are.
        modules: The names by module.

    >>> LateNames("os", {"path": ["basename"]}).basename("a/b")
    'b'
    """

    def __init__(self, package: str, modules: Mapping[str, Sequence[str]]):
        self._module_of = {
            name: f"{package}.{module}" for module, names in modules.items() for name in names
        }

    def __getattr__(self, name: str) -> Foreign:
        """Imports the module of a name and remembers its value."""
        module = self.__dict__.get("_module_of", {}).get(name)
        if module is None:
            raise AttributeError(f"No module is known for the late name {name}.")
        value = getattr(importlib.import_module(module), name)
        setattr(self, name, value)
        return value


# Libraries that cost a twentieth to half a second to load, which most programs do not need.
opt_einsum = late_module("opt_einsum")
scipy_fft = late_module("scipy.fft")
scipy_linalg = late_module("scipy.linalg")
scipy_signal = late_module("scipy.signal")
scipy_sparse = late_module("scipy.sparse")
scipy_sparse_linalg = late_module("scipy.sparse.linalg")
scipy_special = late_module("scipy.special")
