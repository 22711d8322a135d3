"""Products of arrays, and what is made of them: linear algebra, polynomials, convolutions."""
