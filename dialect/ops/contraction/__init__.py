"""Products of arrays that sum over dimensions, such as `dot_general`, and Fourier transforms."""
