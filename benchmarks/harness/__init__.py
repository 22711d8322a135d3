"""Declaration of programs, running in separate processes, timing, comparison and reports.

Elsewhere: the programs (`benchmarks/programs`).
"""
