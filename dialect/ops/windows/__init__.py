"""Reductions of sliding windows, and their transposes.

Elsewhere: convolutions (`axir.dialect.ops.convolution`).
"""
