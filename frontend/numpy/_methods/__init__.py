"""NumPy's operators and methods on arrays and tracers."""
