"""Transformations of users' functions: `grad`, `vmap`, `jit` and their like.

Private: their public names stand in `axir`.
"""
