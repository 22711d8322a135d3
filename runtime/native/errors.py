"""Errors of machine code that is loaded into this process."""

from __future__ import annotations

from axir.runtime.errors import LoadError


class ObjectFileError(LoadError):
    """An object file cannot be loaded."""


class ForbiddenCodeError(ObjectFileError):
    """The system refuses to run code that is not in a file."""
