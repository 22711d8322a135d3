"""The generated pages, one module each; `docs/generate.py` writes them."""

# First, because it watches the import of axir.
from .declarations import DECLARED

__all__ = ["DECLARED"]
