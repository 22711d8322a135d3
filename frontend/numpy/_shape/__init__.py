"""Functions that rearrange, join, split and pad arrays."""
