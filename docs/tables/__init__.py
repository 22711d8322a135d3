"""The generated pages, one module each; `docs/generate.py` writes them."""

# First, for it watches axir being imported.
from .declarations import DECLARED

__all__ = ["DECLARED"]
