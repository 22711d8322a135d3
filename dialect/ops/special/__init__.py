"""Special functions: Bessel, gamma, beta and zeta functions, error functions' relatives.

The operations stand in `special_functions.py`; the other files hold their formulas.
"""
