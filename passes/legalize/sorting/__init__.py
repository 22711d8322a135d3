"""Sorts as kernels, and what a comparator compares."""
