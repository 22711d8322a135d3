"""Products of matrices and vectors as kernels that axir writes.

`tile_products.py` is the pass: which products it takes. `contraction.py` reads a contraction as a
batch of matrix products, `epilogue.py` finds the elementwise operations behind it, `tiling.py`
chooses tiles and blocks, `matrix_kernel.py` and `vector_kernel.py` are the kernels. Elsewhere:
rewrites of products into other StableHLO (`passes/tune`), and how kernels are written
(`dialect/builders/kernels.py`).
"""
