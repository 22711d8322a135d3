"""Kernels whose workgroups share a result: sums, sliding windows, convolutions.

Elsewhere: the same operations in kernels of one thread (`sums.py`, `reductions.py` and `windows.py`
of `passes/fuse`), and products and rows, whose kernels are tuned (`passes/tune`).
"""
