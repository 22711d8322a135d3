"""Calls: of traced functions, of Python functions, and of what the compiler must not touch.

Elsewhere: loops and branches (`axir.dialect.ops.control_flow`), and calls with derivatives of their
own (`axir.dialect.ops.custom_rules`).
"""
