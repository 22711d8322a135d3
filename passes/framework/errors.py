"""The errors of passes and of pipelines written as text."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from axir.dialect.core.errors import AxirError


class PipelineError(AxirError, ValueError):
    """Something is wrong with a pipeline of passes, before any pass has run."""


class PipelineSyntaxError(PipelineError):
    """The text of a pipeline cannot be read."""

    def __init__(self, text: str, position: int, expected: str):
        super().__init__(
            f"malformed pipeline: expected {expected} at column {position + 1}\n"
            f"  {text}\n  {' ' * position}^",
            "A pipeline is 'pass,pass{option=value,option=value},…'; values are numbers, true, "
            "false, none, words, \"quoted text\", tuples '(0,none)' and mappings '{a=0,b=1}'.",
        )


class UnknownPassError(PipelineError):
    """A pipeline names a pass that does not exist."""

    def __init__(self, name: str, known: Iterable[str]):
        known = sorted(known)
        super().__init__(
            f"there is no pass named {name!r}.",
            _nearest(name, known) or f"There are {len(known)}; `axir passes` lists them.",
        )


class UnknownPassOptionError(PipelineError):
    """A pass was given an unknown option."""

    def __init__(self, pass_name: str, option: str, known: Iterable[str]):
        known = sorted(known)
        listing = f"Its options are: {', '.join(known)}." if known else "It has no options."
        super().__init__(
            f"the pass {pass_name!r} has no option {option!r}.", _nearest(option, known) or listing
        )


class OptionValueError(PipelineError):
    """An option of a pass is missing, or has an invalid value."""


class MissingFunctionError(AxirError, ValueError):
    """A module lacks the function that a pass works on."""


class RaisingError(AxirError, ValueError):
    """A module of StableHLO holds an operation without a counterpart in the jaxpr dialect."""


class QuantizationError(RaisingError):
    """An operation on quantized numbers is undefined, or their type is invalid."""


class PassFailedError(AxirError, RuntimeError):
    """MLIR rejected the module that a pass left behind."""


def _nearest(name: str, known: list[str]) -> str | None:
    """Returns a sentence that offers the names which look like `name`, if any do."""
    matches = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    return f"Did you mean {' or '.join(map(repr, matches))}?" if matches else None
