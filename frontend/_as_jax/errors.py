"""What goes wrong where axir stands in for JAX."""

from __future__ import annotations

from axir.dialect.core.errors import AxirError

PAGE = "docs/as_jax.md of axir tells what is offered, and what is not."


class RealJaxLoadedError(AxirError, ImportError):
    """JAX itself had been imported before axir was to stand in for it."""


class JaxNameError(AxirError, AttributeError):
    """axir, which stands in for JAX, has no function or class of this name."""

    def __init__(self, module: str, name: str):
        super().__init__(
            f"module {module!r} is axir here, which has no attribute {name!r}.",
            f"{PAGE} JAX itself runs where axir.as_jax is not imported.",
        )
        self.name = name


class JaxModuleNotFoundError(AxirError, ModuleNotFoundError):
    """axir, which stands in for JAX, has no module of this name."""

    def __init__(self, name: str, own_name: str):
        super().__init__(
            f"No module named {name!r}: 'jax' is axir here, which has no {own_name!r}.",
            f"{PAGE} JAX itself runs where axir.as_jax is not imported.",
        )
        # Not the name under which it was asked for: Python then replaces `from jax import name`'s
        # error by one that does not say whose module it was.
        self.name = own_name
