"""The folder of the disk cache of compiled programs: the option `axir_cache_dir`.

The functions are names of the module `compilation_cache` in this one.

Elsewhere: the cache, which works by default (`axir.runtime.compiler.cache`).
"""

from __future__ import annotations

import os

from axir._made_modules import MadeModule
from axir.dialect.core.config import config
from axir.runtime.compiler.cache import cache_directory

__all__ = ["compilation_cache"]


# Of modules that are made here.
__path__: list[str] = []


def __dir__() -> list[str]:
    return __all__


def set_cache_dir(path: str | os.PathLike[str]) -> None:
    """Keeps compiled programs in a folder from now on.

    Args:
        path: The folder, which is made when it is needed.

    >>> import axir
    >>> before = axir.config.axir_cache_dir
    >>> set_cache_dir("/tmp/programs")
    >>> get_cache_dir()
    '/tmp/programs'
    >>> axir.config.update("axir_cache_dir", before)
    """
    config.update("axir_cache_dir", os.fspath(path))


def get_cache_dir() -> str:
    """Returns the folder where compiled programs are kept."""
    return str(cache_directory())


def reset_cache() -> None:
    """Keeps compiled programs in the user's cache folder again; no file is deleted."""
    config.update("axir_cache_dir", None)


compilation_cache = MadeModule(
    f"{__name__}.compilation_cache",
    __doc__,
    {
        "get_cache_dir": get_cache_dir,
        "initialize_cache": set_cache_dir,
        "reset_cache": reset_cache,
        "set_cache_dir": set_cache_dir,
    },
)
