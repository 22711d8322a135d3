"""Exported functions as C++ models: names, parameters, state.

Private: `axir.export.to_cpp` is the public name. Elsewhere: the text of C++ (`axir.runtime.cpp`).
"""

from __future__ import annotations
