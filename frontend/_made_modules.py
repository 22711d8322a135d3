"""Modules that a table describes, without a file for each: `axir.scipy.stats.norm`, for example.

A package makes them when it is imported, so `import package.name` finds them like other modules.
Type checkers see the names of the package, not these modules.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping
from importlib.machinery import ModuleSpec
from types import ModuleType

from axir.dialect.core.annotations import UserObject


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


def _nothing(name: str) -> None:
    return None


class LazyModule(MadeModule):
    """A module that names parts of other modules; a name is looked up when it is first asked for.

    Args:
        name, doc, is_package: As of `MadeModule`.
        sources: By module, the names that are from it, separated by blanks. `name=other` renames
            another one, and `*` is all of the module.
        find: Returns the value of a name that no table lists, or None.
        listed: Returns the names that `find` knows.

    >>> import axir.scipy
    >>> module = LazyModule("axir.scipy.two", "Two names.", {"math": "pi root=sqrt"})
    >>> module.root(4.0), dir(module)
    (2.0, ['pi', 'root'])
    """

    def __init__(
        self,
        name: str,
        doc: str,
        sources: Mapping[str, str],
        find: Callable[[str], UserObject] = _nothing,
        listed: Callable[[], Iterable[str]] = tuple,
        is_package: bool = False,
    ):
        super().__init__(name, doc, {}, is_package)
        self._sources: dict[str, tuple[str, str]] = {}
        self._wholes = []
        for source, names in sources.items():
            for each, _, original in (word.partition("=") for word in names.split()):
                if each == "*":
                    self._wholes.append(source)
                else:
                    self._sources[each] = source, original or each
        self._search, self._listed = find, listed
        del self.__all__
        vars(self)["__getattr__"] = self._find

    def _find(self, name: str) -> UserObject:
        if name == "__all__":
            return [each for each in dir(self) if not each.startswith("_")]
        if name in self._sources:
            value = vars(self)[name] = self.value(*self._sources[name])
            return value
        found = None if name.startswith("__") else self._search(name)
        for source in () if found is not None or name.startswith("__") else self._wholes:
            module = importlib.import_module(source)
            if hasattr(module, name):
                return getattr(module, name)
        if found is None:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return found

    def value(self, source: str, name: str) -> UserObject:
        """Returns the value of a name in a source."""
        return getattr(importlib.import_module(source), name)

    def __dir__(self) -> list[str]:
        modules = [name for name, value in vars(self).items() if isinstance(value, ModuleType)]
        wholes = [name for source in self._wholes for name in dir(importlib.import_module(source))]
        return sorted({*modules, *self._sources, *self._listed(), *wholes})
