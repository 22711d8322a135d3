"""Devices, and the memory that programs read and write."""
