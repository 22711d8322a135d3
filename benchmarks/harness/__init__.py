"""How programs are declared, run in processes of their own, timed, compared and shown.

Elsewhere: the programs (`benchmarks/programs`).
"""
