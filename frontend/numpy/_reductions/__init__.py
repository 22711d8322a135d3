"""Reductions, statistics, running sums."""
