"""The form of an option: its legal values, and their spelling in the environment.

Elsewhere: the table of options (`options.py`), their values (`config.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from .annotations import OptionValue

TRUE_WORDS = ("1", "true", "t", "yes", "y", "on")


FALSE_WORDS = ("0", "false", "f", "no", "n", "off")


class ConfigError(ValueError):
    """An option was given a value that it cannot have."""


_KINDS: Mapping[type, str] = {
    bool: "True, False",
    int: "an integer",
    float: "a number",
    str: "a string",
}


# JAX's names of options that have another name in axir.
SYNONYMS = {
    "jax_compilation_cache_dir": "axir_cache_dir",
    "jax_compilation_cache_max_size": "axir_cache_max_bytes",
    "jax_dump_ir_to": "axir_dump_dir",
    "jax_platform_name": "jax_platforms",
}


@dataclass(frozen=True)
class Option:
    """One row of the table.

    Attributes:
        name: starts with `jax_` when JAX has the option too, else with `axir_`.
        type: bool, int, str or object; a default of None makes None a legal value as well.
        default: the value when nothing sets another.
        help: one or two sentences for the documentation.
        is_in_cache_key: whether a traced or compiled program depends on the value.
        choices: the legal values, when they can be listed.
        minimum: the least legal integer.
        has_effect: whether the option has any effect in axir.
    """

    name: str
    type: type
    default: OptionValue
    help: str
    is_in_cache_key: bool = False
    choices: tuple[str | int, ...] = ()
    minimum: float | None = None
    has_effect: bool = True

    @property
    def environment(self) -> tuple[str, ...]:
        """Environment variables that set the option, the strongest first."""
        prefix, _, rest = self.name.partition("_")
        own = (f"{p}_{rest}".upper() for p in ("axir", prefix))
        synonyms = (name.upper() for name, meant in SYNONYMS.items() if meant == self.name)
        return tuple(dict.fromkeys((*own, *synonyms)))

    @property
    def legal_values(self) -> str:
        """The legal values in words, for messages and the documentation."""
        if self.choices:
            words = ", ".join(repr(choice) for choice in self.choices)
        elif self.minimum is not None:
            kind = "an integer" if self.type is int else "a number"
            words = f"{kind}, at least {self.minimum}"
        else:
            words = _KINDS.get(self.type, "any object")
        return f"None, {words}" if self.default is None else words

    def check(self, value: OptionValue, source: str) -> OptionValue:
        """Returns `value` as the option's type; raises ConfigError, naming `source`."""
        if value is None and self.default is None:
            return None
        if self.type is bool and isinstance(value, (int, np.bool_)) and value in (0, 1):
            return bool(value)
        if self._is_legal(value):
            return value
        raise ConfigError(
            f"{source}={value!r} is not a legal value of the option {self.name}. "
            f"Legal values: {self.legal_values}."
        )

    def parse(self, text: str, source: str) -> OptionValue:
        """Reads the option from the text of an environment variable."""
        word = text.strip()
        if self.default is None and word.lower() == "none":
            return None
        if self.type is bool and word.lower() in TRUE_WORDS + FALSE_WORDS:
            return word.lower() in TRUE_WORDS
        if self.type in (int, float):
            try:
                return self.check(self.type(word), source)
            except ValueError:
                return self.check(word, source)
        return self.check(word, source)

    def _is_legal(self, value: OptionValue) -> bool:
        if self.type is object:
            return True
        # bool is an int to Python, but a cache of True bytes is a mistake.
        is_of_type = isinstance(value, (int, float) if self.type is float else self.type)
        if not is_of_type or (self.type in (int, float) and isinstance(value, bool)):
            return False
        if self.choices:
            return value in self.choices
        return self.minimum is None or value >= self.minimum
