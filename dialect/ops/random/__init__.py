"""Random bits and typed random keys.

Elsewhere: distributions (`axir.random`).
"""
