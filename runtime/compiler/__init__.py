"""Compiling: `compile_module`. Nothing else in this room touches `iree.compiler`."""

from __future__ import annotations

from .compilation import compile_command, compile_legalized, compile_module, expect_compilation

__all__ = ["compile_command", "compile_legalized", "compile_module", "expect_compilation"]
