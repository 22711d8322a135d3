"""CHLO has no operation classes."""
