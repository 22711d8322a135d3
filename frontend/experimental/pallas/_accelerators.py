"""Names for one kind of accelerator only: importable, and an error when used.

Libraries import them and use them where they have found such a device. They are classes, so that
annotations and `isinstance` work with them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType

from axir._made_modules import MadeModule
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.errors import AxirError


class AcceleratorOnlyError(AxirError, NotImplementedError):
    """A name for one kind of accelerator only was used."""


class _Elsewhere(type):
    device: str
    instead: str

    def __call__(cls, *args: object, **kwargs: object) -> UserObject:
        raise _error(cls)

    def __getattr__(cls, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        raise _error(cls)


def _error(name: _Elsewhere) -> AcceleratorOnlyError:
    return AcceleratorOnlyError(
        f"{name.__module__}.{name.__name__} is for {name.device}; axir runs kernels on CPUs.",
        name.instead,
    )


def only_on(
    device: str, module: str, names: str, instead: str
) -> tuple[Callable[[str], UserObject], Callable[[], list[str]], list[str]]:
    """Returns the `__getattr__`, `__dir__` and `__all__` of a module with names for other devices.

    Args:
        device: The kind of device.
        module: The name of the module.
        names: The names, separated by blanks.
        instead: What to use here.
    """
    known = _elsewhere(device, module, names, instead)

    def find(name: str) -> object:
        if name not in known:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return known[name]

    return find, lambda: list(known), list(known)


def _elsewhere(device: str, module: str, names: str, instead: str) -> dict[str, object]:
    space = {"__module__": module, "device": device, "instead": instead}
    return {name: _Elsewhere(name, (), space) for name in names.split()}


def modules_only_on(device: str, package: str, modules: Mapping[str, tuple[str, str]]) -> None:
    """Makes modules of a package that have only names for other devices.

    Args:
        device: The kind of device.
        package: The name of the package.
        modules: By module, what to use here, and the names, separated by blanks.
    """
    for name, (instead, names) in modules.items():
        path = f"{package}.{name}"
        doc = f"Names of `{path.replace('axir', 'jax', 1)}`, which exist only for {device}."
        MadeModule(path, doc, _elsewhere(device, path, names, instead))


def modules_here(package: str, functions: ModuleType, modules: Mapping[str, str]) -> None:
    """Makes modules of a package from functions that compile for the CPU.

    Args:
        package: The name of the package.
        functions: The module that has the functions.
        modules: By module, names of functions, separated by blanks.
    """
    for name, names in modules.items():
        path = f"{package}.{name}"
        doc = f"Names of `{path.replace('axir', 'jax', 1)}`, which compile for the CPU."
        MadeModule(path, doc, {each: getattr(functions, each) for each in names.split()})
