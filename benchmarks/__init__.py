"""Speed, first calls and memory of axir beside JAX, NumPy and PyTorch; see README.md."""
