"""Gathers and scatters whose indices or windows IREE does not take as they are."""
