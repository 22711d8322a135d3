"""Programs and how they come to be: primitives, tracers, functions, and what is derived of them.

Elsewhere: single operations (`axir.dialect.ops`), programs as text (`axir.dialect.text`),
transformations (`axir.passes`).
"""
