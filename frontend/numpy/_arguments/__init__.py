"""Arguments of the functions of `axir.numpy`: checks, dtypes, promotion."""
