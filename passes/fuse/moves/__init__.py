"""Large arrays in another order, or put together from pieces, as kernels.

Elsewhere: the operations that move elements in kernels of any kind (`views.py`, `gathers.py` and
`rearranged.py` of `passes/fuse`).
"""
