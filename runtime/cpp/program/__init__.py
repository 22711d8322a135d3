"""Programs that call kernels, as plain data: what is read from IREE and written as C++."""

from __future__ import annotations
