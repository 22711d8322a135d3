"""Parts of arrays, read and replaced: slices, gathers, scatters.

What does not live here: NumPy's indexing syntax (`axir.numpy`).
"""
