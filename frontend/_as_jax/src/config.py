"""Names of `jax._src.config`: the options as objects, each with its value in this thread."""

from __future__ import annotations

from contextlib import AbstractContextManager

from axir.dialect.core.annotations import OptionValue
from axir.dialect.core.config import Config, config, make_user_context
from axir.dialect.core.options import OPTIONS

__all__ = [
    "Config",
    "State",
    "config",
    "config_with_absl",
    "make_user_context",
    "parse_flags_with_absl",
]

config_with_absl = config.config_with_absl
parse_flags_with_absl = config.parse_flags_with_absl


class State:
    """An option: `enable_x64.value` is its value, `with enable_x64(True):` overrides it."""

    def __init__(self, name: str):
        self._name = name

    @property
    def value(self) -> OptionValue:
        """The value in this thread."""
        return config.read(self._name)

    def __call__(self, new_val: OptionValue = True) -> AbstractContextManager[None]:
        """Overrides the option in this thread."""
        return config(**{self._name: new_val})

    def __bool__(self) -> bool:
        raise TypeError(f"{self._name!r} is an option: its value is what .value gives.")


def __getattr__(name: str) -> State:
    for full in (f"jax_{name}", name):
        if full in OPTIONS:
            return State(full)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
