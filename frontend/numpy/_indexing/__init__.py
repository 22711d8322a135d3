"""Parts of arrays: NumPy's indexing syntax, updates, choices."""
