"""Errors of exactly Python's class, where programs ask whether an error is of it.

Documents of JAX's on primitives compare with `type(error) is NotImplementedError`. axir has a
subclass for missing rules, with the same meaning and texts.
"""

from __future__ import annotations

from axir.dialect.core.errors import AxirError, MissingRuleError


def raise_python_errors() -> None:
    """Makes a missing rule raise a `NotImplementedError` itself from now on."""
    setattr(MissingRuleError, "__new__", _plain)  # noqa: B010


def _plain(cls: type[MissingRuleError], message: str, way_out: str | None = None) -> Exception:
    return NotImplementedError(str(AxirError(message, way_out)))
