"""Parts of arrays, read and replaced: slices, gathers, scatters.

Elsewhere: NumPy's indexing syntax (`axir.numpy`).
"""
