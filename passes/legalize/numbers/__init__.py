"""Functions of real numbers that IREE lacks or computes inexactly."""
