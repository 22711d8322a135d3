"""How programs are declared, run in processes of their own, timed, compared and shown.

What does not live here: the programs (`benchmarks/programs`).
"""
