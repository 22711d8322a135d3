"""Programs that call kernels, as plain data: read from IREE and written as C++."""

from __future__ import annotations
