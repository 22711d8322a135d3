"""Kernels with a result divided among workgroups: sums, sliding windows, convolutions.

Elsewhere: the same operations in kernels of one thread (`sums.py`, `reductions.py` and `windows.py`
of `passes/fuse`), and tuned kernels of products and rows (`passes/tune`).
"""
