"""Kernels of users' own: `kernel_call`, what happens in one, and the two machines that run it.

A kernel is a Python function of refs. It runs on a machine: on NumPy arrays (`interpreted.py`), or
so that it builds a kernel of the builders' (`compiled.py`). What is the same on both, above all
which types and positions fit, is in `values.py` and `positions.py`; what a kernel asks of the
machine that it runs on is in `machine.py`. What does not live here: what users call
(`axir.experimental.kernels`), and the builders (`dialect/builders/kernels/`).
"""
