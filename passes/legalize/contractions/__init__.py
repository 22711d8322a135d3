"""Contractions that IREE gets wrong or crashes on."""
