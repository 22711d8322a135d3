"""Loops as blocks and branches, and the storage of the values that they carry."""
