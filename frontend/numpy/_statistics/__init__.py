"""Histograms, covariances, interpolation."""
