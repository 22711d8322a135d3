"""Options with a single choice here: the sharding of results, and the accuracy of a function.

Functions take `sharding`, `out_sharding` and `accuracy` so that programs that pass them run. Values
without meaning are refused instead of ignored.
"""

from __future__ import annotations

from .errors import ParameterError


def one_layout(function: str, sharding: object) -> ParameterError:
    """Returns the error of a function with a sharding for its result."""
    return ParameterError(
        f"{function}: {sharding!r} is no layout that {function} can give.",
        "Leave the argument out, or pass None. axir.device_put(x, sharding) lays an array out.",
    )


def check_layout(function: str, sharding: object) -> None:
    """Raises `ParameterError` for a sharding other than None."""
    if sharding is not None:
        raise one_layout(function, sharding)


# Names of the modes of `axir.lax.AccuracyMode`.
_MODES = ("DEFAULT", "HIGHEST")


def check_accuracy(function: str, accuracy: object) -> None:
    """Raises `ParameterError` for an accuracy that is no mode, such as a tolerance."""
    if accuracy is not None and getattr(accuracy, "name", None) not in _MODES:
        raise ParameterError(
            f"{function}: {accuracy!r} is not an accuracy of {function}, which is computed in one "
            "way.",
            "Leave the argument out, or pass None or a lax.AccuracyMode.",
        )
