"""Transformations of users' functions: `grad`, `vmap`, `jit` and others.

Private: their public names are in `axir`.
"""
