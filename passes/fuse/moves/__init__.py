"""Large arrays that are reordered, or concatenated from pieces, as kernels.

Elsewhere: the operations that move elements in kernels of any kind (`views.py`, `gathers.py` and
`rearranged.py` of `passes/fuse`).
"""
