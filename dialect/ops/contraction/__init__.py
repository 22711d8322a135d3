"""Products of arrays that sum over dimensions: `dot_general`, and the functions made of it."""
