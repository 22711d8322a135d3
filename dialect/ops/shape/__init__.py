"""Operations that change the shape of arrays, or make arrays of a shape.

Elsewhere: parts of arrays (`axir.dialect.ops.indexing.gather`).
"""
