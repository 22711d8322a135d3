"""Generators of random numbers as kernels, under names that are for TPUs alone."""
