"""Elementwise operations: arithmetic, comparisons and bits, transcendental functions, conversions.

The rules that all of them share stand in `family.py`. Elsewhere: special functions
(`axir.dialect.ops.special.special_functions`).
"""
