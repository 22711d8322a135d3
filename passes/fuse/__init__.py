"""Parts of programs as kernels: loops with small state.

What does not live here: how kernels are written (`dialect/builders/kernels.py`), and kernels that
are written by hand, which stand with the ops or passes that use them.
"""
