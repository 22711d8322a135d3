"""The module names of classes and functions: JAX's modules in place of axir's.

Libraries read `__module__` of an array's class to find its library, and look there for functions.
"""

from __future__ import annotations

from types import FunctionType, ModuleType

from axir.dialect.core.array import Array, ConcreteArray
from axir.dialect.program.tracer import Tracer

_OURS = "axir"
# JAX's modules for the classes of arrays. Libraries look only at the first word.
_ARRAYS = {
    Array: "jax",
    ConcreteArray: "jaxlib._jax",
    Tracer: "jax._src.core",
}


def rename_arrays() -> None:
    """Sets the `__module__` of array classes to JAX's modules."""
    for kind, module in _ARRAYS.items():
        kind.__module__ = module


def rename(value: object) -> None:
    """Sets the `__module__` of a class or function to JAX's module of the same name.

    For a module, it does so for all its classes and functions.
    """
    if isinstance(value, ModuleType):
        if value.__name__.startswith(f"{_OURS}."):
            rename_all(value)
        return
    if not isinstance(value, (type, FunctionType)):
        return
    own = value.__module__ or ""
    if own == _OURS or own.startswith(f"{_OURS}."):
        value.__module__ = "jax" + own.removeprefix(_OURS)


def rename_all(module: ModuleType) -> None:
    """Renames the public classes and functions of a module."""
    for name, value in list(vars(module).items()):
        if not name.startswith("_") and not isinstance(value, ModuleType):
            rename(value)
