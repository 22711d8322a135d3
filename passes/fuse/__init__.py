"""Parts of programs as kernels: loops with small state, and small programs.

What does not live here: how kernels are written (`dialect/builders/kernels`), and kernels that are
written by hand, which stand with the ops or passes that use them.
"""
