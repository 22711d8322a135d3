"""Products of arrays, linear algebra, polynomials, convolutions."""
