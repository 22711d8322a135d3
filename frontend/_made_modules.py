"""Modules that a table describes, without a file for each: `axir.scipy.stats.norm`, for example.

A package makes them when it is imported, so `import package.name` finds them like other modules.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.machinery import ModuleSpec
from types import ModuleType


class MadeModule(ModuleType):
    """A module with given names; `__all__` has the public ones, `dir` also modules in it.

    Args:
        name: Full name of the module; its package must be the one that is being imported, or an
            earlier module of the same table.
        doc: The docstring.
        names: Names with their values.
        is_package: Whether there are modules in it.

    >>> import axir.scipy
    >>> module = MadeModule("axir.scipy.one", "A module of one name.", {"one": 1})
    >>> from axir.scipy.one import one
    >>> one, dir(module)
    (1, ['one'])
    """

    __all__: list[str]

    def __init__(
        self, name: str, doc: str | None, names: Mapping[str, object], is_package: bool = False
    ):
        super().__init__(name, doc)
        self.__spec__ = ModuleSpec(name, None, is_package=is_package)
        self.__package__ = name.rpartition(".")[0]
        self.__all__ = []
        self.offer(names)
        if is_package:
            self.__path__: list[str] = []
        sys.modules[name] = self
        setattr(sys.modules[self.__package__], name.rpartition(".")[2], self)

    def offer(self, names: Mapping[str, object]) -> None:
        """Adds names with their values."""
        vars(self).update(names)
        self.__all__ += sorted(each for each in names if not each.startswith("_"))

    def __dir__(self) -> list[str]:
        modules = [name for name, value in vars(self).items() if isinstance(value, ModuleType)]
        return sorted({*self.__all__, *modules})
