"""Parts of programs as kernels: loops with small state, and small programs.

Elsewhere: how kernels are written (`dialect/builders/kernels`), and handwritten kernels, which are
with the ops or passes that use them.
"""
