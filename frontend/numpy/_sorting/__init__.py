"""Sorting, searching, and arrays as sets."""
