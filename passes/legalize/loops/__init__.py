"""Loops as blocks and branches, and what becomes of the values that they carry."""
