"""`axir.example_libraries.stax`, under its name of 2020."""

from __future__ import annotations

from axir.example_libraries.stax import *  # noqa: F403
from axir.example_libraries.stax import __all__ as __all__
