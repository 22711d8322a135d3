"""Reductions along axes, running ones, and positions of extrema.

Elsewhere: reductions of windows (`axir.dialect.ops.windows.sliding_windows`).
"""
