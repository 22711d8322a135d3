"""Fourier transforms as matrix products and elementwise operations."""
