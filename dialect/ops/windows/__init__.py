"""Reductions of sliding windows, and their transposes.

What does not live here: convolutions (`axir.dialect.ops.convolution`).
"""
