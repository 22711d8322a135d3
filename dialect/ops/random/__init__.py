"""Random bits and typed random keys.

What does not live here: distributions (`axir.random`).
"""
