"""Errors of the stand-in for JAX."""

from __future__ import annotations

from axir.dialect.core.errors import AxirError

from .version import JAX_VERSION

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
