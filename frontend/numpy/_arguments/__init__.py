"""What the functions of `axir.numpy` do with their arguments: checks, dtypes, promotion."""
