"""Models of PyTorch and ONNX: made by random seeds, checked, and timed beside their own runtimes.

Elsewhere: programs that are written for JAX (`benchmarks/programs/`).
"""
