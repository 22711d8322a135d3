"""Parts of symbolic dimensions: their terms, simplification, bounds, and texts.

Elsewhere: symbolic dimensions and the functions of extents (`dialect/core/symbolic_dims.py`).
"""
