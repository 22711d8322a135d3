"""Generators of random numbers as kernels, under names that exist only for TPUs."""
