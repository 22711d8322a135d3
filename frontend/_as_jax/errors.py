"""Errors of the stand-in for JAX: names that axir lacks, with the library that asks for them.

Modules under JAX's names are axir's modules, so they get a `__getattr__` that is called last.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable
from types import FrameType, ModuleType

from axir.dialect.core.annotations import UserObject
from axir.dialect.core.context import is_user_file
from axir.dialect.core.errors import AxirError

from . import JAX_VERSION

PAGE = "docs/libraries.md of axir tells which libraries run"


class RealJaxLoadedError(AxirError, ImportError):
    """JAX itself was imported before `axir.as_jax`."""


def _way_out(library: str) -> str:
    """Returns the advice for a missing name."""
    if not library:
        return (
            f"The names are those of JAX {JAX_VERSION}; {PAGE}. JAX itself runs where axir.as_jax "
            "is not imported."
        )
    return (
        f"{PAGE}. The names are those of JAX {JAX_VERSION}: take a version of {library} that is "
        f"for it, or run {library} on JAX itself, without axir.as_jax."
    )


def _asked(library: str, name: str) -> str:
    return f"{library or 'The program'} asks for {name}"


class JaxNameError(AxirError, AttributeError):
    """axir, which stands in for JAX, has no function or class of this name."""

    def __init__(self, module: str, name: str, library: str = ""):
        super().__init__(
            f"{_asked(library, f'{module}.{name}')}: module {module!r} is axir here, which has no "
            f"attribute {name!r}.",
            _way_out(library),
        )
        self.name = name


class JaxImportError(AxirError, ImportError):
    """axir, which stands in for JAX, has no function or class of this name to import."""

    def __init__(self, module: str, name: str, library: str = ""):
        super().__init__(
            f"{_asked(library, f'{module}.{name}')}: cannot import name {name!r} from {module!r}, "
            "which is axir here.",
            _way_out(library),
        )
        self.name = module


class JaxModuleNotFoundError(AxirError, ModuleNotFoundError):
    """axir, which stands in for JAX, has no module of this name."""

    def __init__(self, name: str, own_name: str, library: str = ""):
        super().__init__(
            f"{_asked(library, name)}: No module named {name!r}: 'jax' is axir here, which has no "
            f"{own_name!r}.",
            _way_out(library),
        )
        # Not the requested name: with it, Python would replace this error of `from jax import name`
        # by one that does not say which module was meant.
        self.name = own_name


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
