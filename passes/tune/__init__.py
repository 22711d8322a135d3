"""Rewrites of StableHLO into forms that compile to faster programs on a CPU.

One file per subject; `tune_for_cpu.py` puts them in order. Every pass keeps the values except for
the order in which floating-point numbers are added, and states its gain where it was measured.
Elsewhere: rewrites without which programs would be wrong (`passes/legalize`), and the compiler's
own flags (`axir.runtime.compiler.target`).
"""
