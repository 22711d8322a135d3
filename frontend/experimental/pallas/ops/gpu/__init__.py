"""Functions that are kernels for GPUs elsewhere."""
