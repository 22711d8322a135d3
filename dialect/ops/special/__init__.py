"""Special functions: Bessel, gamma, beta and zeta functions, error functions' relatives.

The operations stand in `special_functions.py`, `integrals.py` and `hypergeometric.py`, what they
share in `formula_ops.py`; the other files hold their formulas.
"""
