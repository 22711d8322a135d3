"""Names that axir lacks: the error says which library asked for which name.

Modules under JAX's names are axir's modules, so they get a `__getattr__` that is called last.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable
from types import FrameType, ModuleType

from axir.dialect.core.annotations import UserObject
from axir.dialect.core.context import is_user_file

from .errors import JaxImportError, JaxNameError

_IMPORT_FROM = dis.opmap["IMPORT_FROM"]


def tell_what_is_missing(module: ModuleType, name: str) -> None:
    """Makes a module of axir's raise errors that name the JAX module it stands for.

    The same holds for the modules among its attributes.

    Args:
        module: The module.
        name: The name that it was imported by.
    """
    own = vars(module).get("__getattr__")
    if not module.__name__.startswith("axir.") or isinstance(own, _LastResort):
        return
    module.__getattr__ = _LastResort(module, name, own)  # type: ignore[method-assign]
    for attribute, inside in list(vars(module).items()):
        is_inside = isinstance(inside, ModuleType) and not attribute.startswith("_")
        if is_inside and inside.__name__ == f"{module.__name__}.{attribute}":
            tell_what_is_missing(inside, f"{name}.{attribute}")


class _LastResort:
    """Looks up the names that a module lacks: in its own function, then it raises this error."""

    def __init__(self, module: ModuleType, name: str, own: Callable[..., object] | None):
        self._module, self._name, self._own = module, name, own

    def __call__(self, attribute: str) -> UserObject:
        if self._own is not None:
            try:
                return self._own(attribute)
            except AttributeError as error:
                if type(error) is not AttributeError:  # which says more than that it is missing
                    raise
        if attribute.startswith("__"):
            raise AttributeError(f"module {self._name!r} has no attribute {attribute!r}")
        frame = sys._getframe(1)
        if not _is_from_import(frame):
            raise JaxNameError(self._name, attribute, library_of(frame))
        inside = sys.modules.get(f"{self._module.__name__}.{attribute}")
        if inside is not None:  # one that is being imported, which is no attribute yet
            return inside
        raise JaxImportError(self._name, attribute, library_of(frame))


def _is_from_import(frame: FrameType) -> bool:
    """Tells whether a frame is about to import a name from a module."""
    return frame.f_lasti >= 0 and frame.f_code.co_code[frame.f_lasti] == _IMPORT_FROM


def library_of(frame: FrameType | None) -> str:
    """Returns the package that the code of a frame or its caller belongs to; "" for a program."""
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        is_python = name.partition(".")[0] in ("importlib", "axir", "jax") or name == "axir"
        if not is_python and is_user_file(frame.f_code.co_filename):
            return "" if name == "__main__" else name.partition(".")[0]
        frame = frame.f_back
    return ""
