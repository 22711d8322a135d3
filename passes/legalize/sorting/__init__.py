"""Sorts as kernels, and the keys that a comparator compares."""
