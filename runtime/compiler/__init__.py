"""The compile session: `compile_module`. Nothing else in this room touches `iree.compiler`."""

from __future__ import annotations

from .session import compile_command, compile_module

__all__ = ["compile_command", "compile_module"]
