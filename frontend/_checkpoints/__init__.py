"""Checkpoints: trees of arrays as folders, written by all processes, read on other devices."""
