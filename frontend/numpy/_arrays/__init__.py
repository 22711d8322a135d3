"""Arrays made from other things, and their operators and methods."""
