"""Operations that change the shape of arrays, or make arrays of a shape.

What does not live here: parts of arrays (`axir.dialect.ops.indexing.gather`).
"""
