"""Large arrays in another order, or put together from pieces, as kernels.

What does not live here: the operations that move elements in kernels of any kind (`views.py`,
`gathers.py` and `rearranged.py` of `passes/fuse`).
"""
