"""Special functions: Bessel, gamma, beta and zeta functions, error functions' relatives.

The operations stand in `special_functions.py`, `integrals.py` and `hypergeometric.py`, and their
shared code in `formula_ops.py`. The other files hold their formulas.
"""
