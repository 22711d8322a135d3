"""The report about a GPU: its properties, correctness of programs, and their times.

Here: the parts of the report, the processes that they run in, its text, and the folder in which all
that it needs travels to a machine without a network (`bundle.py`). Elsewhere: tests for developers
(`tests/gpu`), the benchmarks that `make bench-gpu` runs (`gpu.py`).
"""
