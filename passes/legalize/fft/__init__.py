"""Fourier transforms: kernels on vectors, or matrix products and elementwise operations."""
