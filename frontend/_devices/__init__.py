"""Placement of arrays, types of arrays, and devices.

Private: public names are in `axir`.
"""
