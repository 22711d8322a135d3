"""The errors of code that builds kernels: mismatches are found while a kernel is built.

Elsewhere: errors of programs (`dialect/core/errors.py`).
"""

from __future__ import annotations

import sys

from axir.dialect.core.errors import AxirError

_BUILDERS = __name__.rpartition(".")[0]


class KernelError(AxirError):
    """The parts of a kernel do not fit together; `where` is the line of the kernel."""

    def __init__(self, message: str, way_out: str):
        super().__init__(message, way_out, _line_of_kernel())


class KernelPositionError(KernelError, IndexError):
    """A position in the memory of a kernel has the wrong rank or type, or lies outside."""


class KernelTypeError(KernelError, TypeError):
    """Numbers of different types meet in a kernel, or in its memory."""


class KernelCarryError(KernelError, TypeError):
    """A loop or branch in a kernel passes on other numbers than it must."""


class KernelVectorError(KernelError, ValueError):
    """A vector in a kernel has an impossible width, or reaches over the end of a row."""


class KernelStackError(KernelError, ValueError):
    """The private memory that a kernel wants does not fit on the stack."""


class KernelArrayError(KernelError, ValueError):
    """A kernel gets an array, or a place for its result, that it cannot use."""


def _line_of_kernel() -> str:
    """Describes the innermost line that is not one of the builders."""
    frame = sys._getframe(2)
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(_BUILDERS):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"
