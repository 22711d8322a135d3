"""Puts axir in JAX's place, once in a process."""

from __future__ import annotations

import os
import sys

from axir.dialect.core.config import config
from axir.dialect.core.errors import AxirError, MissingRuleError
from axir.dialect.core.options import OPTIONS

from .errors import RealJaxLoadedError
from .modules import JaxFinder, JaxModule
from .names import rename_arrays
from .names_of_2020 import give_arrays_buffers

# Defaults of today's JAX that differ from axir's.
DEFAULTS = {"jax_threefry_partitionable": True}


def install() -> None:
    """Makes `import jax` import axir in this process, with the defaults of today's JAX.

    Raises:
        RealJaxLoadedError: if JAX itself has been imported before.
    """
    if any(isinstance(finder, JaxFinder) for finder in sys.meta_path):
        return
    check_no_jax()
    for name, value in DEFAULTS.items():
        if not any(os.environ.get(variable) for variable in OPTIONS[name].environment):
            config.update(name, value)
    raise_python_errors()
    give_arrays_buffers()
    rename_arrays()
    # Before all other finders, so that an installed JAX is never found.
    sys.meta_path.insert(0, JaxFinder())


def check_no_jax() -> None:
    """Raises `RealJaxLoadedError` if this process has imported JAX itself."""
    for name in ("jax", "jaxlib"):
        module = sys.modules.get(name)
        if module is not None and not isinstance(module, JaxModule):
            place = getattr(module, "__file__", None) or "an unknown place"
            raise RealJaxLoadedError(
                f"axir.as_jax: this process has imported {name} from {place} before, and one "
                "process cannot have two.",
                "Make `import axir.as_jax` its first import, or run it by `python -m axir.as_jax`.",
            )


def raise_python_errors() -> None:
    """Makes a missing rule raise a `NotImplementedError` itself from now on.

    Documents of JAX's on primitives compare with `type(error) is NotImplementedError`. axir has a
    separate class for missing rules, with the same meaning and texts.
    """
    setattr(MissingRuleError, "__new__", _plain)  # noqa: B010


def _plain(cls: type[MissingRuleError], message: str, way_out: str | None = None) -> Exception:
    return NotImplementedError(str(AxirError(message, way_out)))
