"""Functions that are kernels for TPUs elsewhere."""
