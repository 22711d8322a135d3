"""Kernels that go through large arrays row by row: reductions and operations around them."""
