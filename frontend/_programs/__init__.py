"""Saved modules and compiled programs as files.

Private: public names are in `axir.export` and `axir.stages`.
"""
