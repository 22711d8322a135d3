"""axir's modules under JAX's names: the finder that answers `import jax`.

`jax.numpy` is the very module `axir.numpy`: both names refer to one object, so that classes and
states exist once. Only `jax` itself is another object than `axir`, since it has another version.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder
from pathlib import Path
from types import ModuleType

import axir
from axir.dialect.core.annotations import UserObject

from . import JAX_VERSION, __version__, __version_info__
from .errors import (
    JaxModuleNotFoundError,
    JaxNameError,
    library_of,
    tell_what_is_missing,
)
from .names import ALIASES, HERE, MODULES_OF_2020, NAMES_OF_2020, rename, rename_all

# Modules that axir has under another name: the longest matching prefix counts.
PLACES = {
    "jax": "axir",
    "jax._src": "axir._as_jax.src",
    "jax.lib": "axir._as_jax.lib",
    "jax.version": "axir._as_jax.version",
    "jaxlib": "axir._as_jax.jaxlib",
    **{
        f"{package}{inside}": place
        for package in ("jaxlib.mlir", "jax._src.lib.mlir", "jax.extend.mlir")
        for inside, place in (
            ("", "axir._as_jax.jaxlib.mlir"),
            (".ir", "iree.compiler.ir"),
            (".passmanager", "iree.compiler.passmanager"),
            (".dialects.hlo", "axir._as_jax.jaxlib.mlir.dialects.stablehlo"),
            (".dialects.mhlo", "axir._as_jax.jaxlib.mlir.dialects.stablehlo"),
        )
    },
    **MODULES_OF_2020,
    **{f"jax._src.{name}": place for name, place in ALIASES.items()},
}

EVERYTHING = DistributionFinder.Context()


def own_name(name: str) -> str:
    """Returns the name of axir's module for a name of JAX's.

    >>> own_name("jax.numpy.linalg"), own_name("jax._src.core")
    ('axir.numpy.linalg', 'axir._as_jax.src.core')
    """
    head, tail = name, ""
    while head not in PLACES:
        head, _, last = head.rpartition(".")
        tail = f".{last}{tail}"
    return PLACES[head] + tail


class JaxModule(ModuleType):
    """The module `jax`: the names of `axir`, with JAX's version."""

    def __init__(self) -> None:
        super().__init__("jax", axir.__doc__)
        public = {name: value for name, value in vars(axir).items() if not name.startswith("_")}
        vars(self).update(public)
        for name, value in public.items():
            rename(value)
            if isinstance(value, ModuleType):
                tell_what_is_missing(value, f"jax.{name}")
        self.__version__ = __version__
        self.__version_info__ = __version_info__
        self.__file__ = axir.__file__
        # Nothing is looked for in folders: the finder answers for all modules.
        self.__path__: list[str] = []

    def __setattr__(self, name: str, value: object) -> None:
        # Importing the module `jax.config` of 2020 leaves `jax.config` unchanged.
        if not (name == "config" and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __getattr__(self, name: str) -> UserObject:
        if not name.startswith("_") and hasattr(axir, name):
            value = vars(self)[name] = getattr(axir, name)  # libraries ask in their inner loops
            rename(value)
            if isinstance(value, ModuleType):
                tell_what_is_missing(value, f"jax.{name}")
            return value
        # JAX imports these eagerly.
        if name in ("_src", "lib", "version"):
            return importlib.import_module(f"jax.{name}")
        if name in NAMES_OF_2020:
            return getattr(importlib.import_module(f"{HERE}.names_of_2020"), name)
        raise JaxNameError("jax", name, library_of(sys._getframe(1)))

    def __dir__(self) -> list[str]:
        return sorted({*vars(self), *dir(axir)})


def _exists(module: str) -> bool:
    package = module.rpartition(".")[0]
    try:
        if package:
            importlib.import_module(package)  # which may make the module
        return module in sys.modules or importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # the module's package is missing, too
        return False


class StandInDistribution(Distribution):
    """A distribution that is not installed, for libraries that ask for its version.

    >>> StandInDistribution("jaxlib").metadata["Name"]
    'jaxlib'
    """

    def __init__(self, name: str):
        self._name = name

    def read_text(self, filename: str) -> str | None:
        """Returns the text of a metadata file; only `METADATA` exists."""
        if filename != "METADATA":
            return None
        return (
            f"Metadata-Version: 2.1\nName: {self._name}\nVersion: {JAX_VERSION}\n"
            "Summary: axir, under the names of JAX\n"
        )

    def locate_file(self, path: str | os.PathLike[str]) -> Path:
        """Returns where a file of the distribution would be."""
        return Path(__file__).parent / path


class JaxFinder(DistributionFinder, Loader):
    """Finds `jax`, `jaxlib` and their modules in axir, and the distributions of these names."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Returns the loader of a module of JAX's, or None for modules of other packages.

        Raises:
            JaxModuleNotFoundError: if axir has no such module.
        """
        if fullname.partition(".")[0] not in PLACES:
            return None
        own = own_name(fullname)
        is_private = own.startswith("axir._") and fullname not in PLACES
        is_private = is_private and not own.startswith("axir._as_jax.")
        if is_private or not _exists(own):
            raise JaxModuleNotFoundError(fullname, own, library_of(sys._getframe(1)))
        return ModuleSpec(fullname, self, origin=axir.__file__, is_package=fullname == "jax")

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Returns the module `jax`; for others, Python makes an empty one, which is replaced."""
        return JaxModule() if spec.name == "jax" else None

    def exec_module(self, module: ModuleType) -> None:
        """Puts axir's module into `sys.modules` under the requested name."""
        if not isinstance(module, JaxModule):
            name = module.__name__
            sys.modules[name] = importlib.import_module(own_name(name))
            rename_all(sys.modules[name])
            tell_what_is_missing(sys.modules[name], name)

    def find_distributions(
        self, context: DistributionFinder.Context = EVERYTHING
    ) -> Iterator[Distribution]:
        """Yields the replacements of JAX's distributions, if they are requested."""
        for name in ("jax", "jaxlib"):
            if context.name is None or context.name.lower() == name:
                yield StandInDistribution(name)
