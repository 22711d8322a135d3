"""Passes about buffers: arguments, results, slices, and how many buffers a kernel binds."""
