"""Writes programs that call kernels as C++: text from plain data.

Elsewhere: reading IREE's program (`reading/`), files (`runtime/cpp/emission.py`).
"""

from __future__ import annotations
