"""Reductions along axes, running ones, and positions of extrema.

What does not live here: reductions of windows (`axir.dialect.ops.windows.sliding_windows`).
"""
