"""Where classes and functions say that they come from: JAX's modules, in the place of axir's.

Libraries ask an array's class for its module to find out whose it is, and look there for functions.
"""

from __future__ import annotations

from types import FunctionType, ModuleType

from axir.dialect.core.array import Array, ConcreteArray
from axir.dialect.program.tracer import Tracer

_OURS = "axir"
# Where JAX has the classes of arrays. What libraries look at is the first word.
_ARRAYS = {
    Array: "jax",
    ConcreteArray: "jaxlib._jax",
    Tracer: "jax._src.core",
}


def rename_arrays() -> None:
    """Has the classes of arrays say that they are JAX's."""
    for kind, module in _ARRAYS.items():
        kind.__module__ = module


def rename(value: object) -> None:
    """Has a class or function of axir's say that it is JAX's, of the module of the same name.

    Those of a module do so with it.
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
