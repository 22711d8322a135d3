"""Calls: of traced functions, of Python functions, and of code hidden from the compiler.

Elsewhere: loops and branches (`axir.dialect.ops.control_flow`), and calls with custom derivatives
(`axir.dialect.ops.custom_rules`).
"""
