"""StableHLO has no operation classes."""
