"""Kernels that go through large arrays row by row: reductions and what is around them."""
