"""Options as flags of a program's command line, through absl: `--jax_enable_x64=true`.

Here: the work of `config.config_with_absl` and `config.parse_flags_with_absl`. The program provides
absl; axir itself does not need it.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from typing import TypeAlias

from .annotations import OptionValue
from .option_kinds import SYNONYMS, ConfigError
from .options import OPTIONS, option_of_name

Update: TypeAlias = Callable[[str, OptionValue], None]
"""Sets an option by its name: `Config.update`."""


def define_flags(update: Update) -> None:
    """Makes every option a flag of absl; axir reads the flags once `absl.app` runs the program."""
    app, flags = _absl()
    _define_missing(flags)
    app.call_after_init(lambda: adopt_flags(update))


def parse_flags(update: Update) -> None:
    """Makes every option a flag, and takes the flags in `sys.argv` before `--`."""
    _, flags = _absl()
    _define_missing(flags)
    flags.FLAGS(list(itertools.takewhile(lambda word: word != "--", sys.argv)), known_only=True)
    adopt_flags(update)


def adopt_flags(update: Update) -> None:
    """Sets the options to the values of the flags on the command line.

    Raises:
        ConfigError: a flag has a value that its option cannot have.
    """
    _, flags = _absl()
    for name in (*OPTIONS, *SYNONYMS):
        if name in flags.FLAGS and flags.FLAGS[name].present:
            value = flags.FLAGS[name].value
            text = isinstance(value, str)
            update(name, option_of_name(name).parse(value, f"--{name}") if text else value)


def _define_missing(flags):  # type: ignore[no-untyped-def]
    for name in (*OPTIONS, *SYNONYMS):
        if name not in flags.FLAGS:
            option = option_of_name(name)
            define = flags.DEFINE_bool if option.type is bool else flags.DEFINE_string
            define(name, None, option.help, module_name="axir")


def _absl():  # type: ignore[no-untyped-def]
    try:
        from absl import app, flags  # late: not a dependency
    except ImportError as error:
        raise ConfigError(
            "Options become flags of a command line through absl, which is not installed. "
            "Install it (pip install absl-py), or set options in the environment."
        ) from error
    return app, flags
