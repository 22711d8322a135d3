"""Calling programs: loaded programs, the functions they call in this process, traced functions."""
