"""The errors of compiling and of devices: one class per cause, each with the way out.

What does not live here: errors about operations, shapes and dtypes (`dialect/errors.py`).
"""

from __future__ import annotations

from axir.dialect.errors import AxirError


class CompileError(AxirError, RuntimeError):
    """IREE could not compile a program.

    `diagnostics` holds the compiler's full messages; the text of the error only their first lines.
    """

    diagnostics: tuple[str, ...] = ()


class DeviceNotFoundError(AxirError, RuntimeError):
    """The machine has no such device, or its driver is not installed."""


class RuntimeExecutionError(AxirError, RuntimeError):
    """A compiled program failed while it ran."""


class HostCallError(AxirError, RuntimeError):
    """A Python function that a compiled program calls gave something else than was declared."""


class LoadError(AxirError, RuntimeError):
    """A compiled program could not be loaded: another target, or damaged."""
