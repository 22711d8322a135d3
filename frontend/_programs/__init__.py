"""Saved modules and compiled programs as files.

Private: public names stand in `axir.export` and `axir.stages`.
"""
