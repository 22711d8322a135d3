"""Writes programs that call kernels as C++: text from plain data.

What does not live here: reading IREE's program (`reading/`), files (`packaging/`).
"""

from __future__ import annotations
