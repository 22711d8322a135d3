"""Gathers and scatters with indices or windows that IREE does not compile unchanged."""
