"""Programs and their construction: primitives, tracers, functions, and derived functions.

Elsewhere: single operations (`axir.dialect.ops`), programs as text (`axir.dialect.text`),
transformations (`axir.passes`).
"""
