"""Modules that a table describes, without a file for each: `axir.scipy.stats.norm`, for example.

A package makes them when it is imported, so `import package.name` finds them like other modules.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib.machinery import ModuleSpec
from types import ModuleType

from axir.dialect.core.annotations import UserObject


class MadeModule(ModuleType):
    """A module with given names; `dir` and `__all__` show the public ones.

    Args:
        name: Full name of the module; its package must be the one that is being imported, or an
            earlier module of the same table.
        doc: The docstring.
        names: Names with their values.
        find: Returns the value of another name, or raises `AttributeError`.

    >>> module = MadeModule("axir.scipy.one", "A module of one name.", {"one": 1})
    >>> from axir.scipy.one import one
    >>> one, dir(module)
    (1, ['one'])
    """

    __all__: list[str]

    def __init__(
        self,
        name: str,
        doc: str | None,
        names: Mapping[str, object],
        find: Callable[[str], UserObject] | None = None,
    ):
        super().__init__(name, doc)
        self.__spec__ = ModuleSpec(name, None)
        self.__package__ = name.rpartition(".")[0]
        vars(self).update(names)
        self.__all__ = sorted(each for each in names if not each.startswith("_"))
        if find is not None:
            vars(self)["__getattr__"] = find
        sys.modules[name] = self

    def __dir__(self) -> list[str]:
        return list(self.__all__)
