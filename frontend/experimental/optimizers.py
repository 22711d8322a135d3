"""`axir.example_libraries.optimizers`, under its name of 2020."""

from __future__ import annotations

from axir.example_libraries.optimizers import *  # noqa: F403
from axir.example_libraries.optimizers import __all__ as __all__
