"""Elementwise operations: arithmetic, comparisons and bits, transcendental functions, conversions.

The rules that all of them share stand in `family.py`. What does not live here: special functions
(`axir.dialect.ops.special.special_functions`).
"""
