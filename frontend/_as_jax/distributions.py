"""Metadata of `jax` and `jaxlib` for `importlib.metadata`, if axir stands in for them."""

from __future__ import annotations

import os
from importlib.metadata import Distribution
from pathlib import Path

from .version import JAX_VERSION


class StandInDistribution(Distribution):
    """A distribution that is not installed; libraries query its version.

    >>> StandInDistribution("jaxlib").metadata["Name"]
    'jaxlib'
    """

    def __init__(self, name: str):
        self._name = name

    def read_text(self, filename: str) -> str | None:
        """Returns the text of a file of metadata; there is one."""
        if filename != "METADATA":
            return None
        return (
            f"Metadata-Version: 2.1\nName: {self._name}\nVersion: {JAX_VERSION}\n"
            "Summary: axir, under the names of JAX\n"
        )

    def locate_file(self, path: str | os.PathLike[str]) -> Path:
        """Returns where a file of the distribution would be."""
        return Path(__file__).parent / path
