"""`axir.experimental.sparse`: arrays that store only some elements.

`BCOO` is the general format, with batch and dense dimensions; `BCSR` stores rows; `COO`, `CSR` and
`CSC` are matrices. Operators work on all of them, and `sparsify` makes functions of arrays work on
them. Indices out of range are allowed everywhere: such places hold nothing. All functions can be
compiled, vectorized and differentiated; the gradient functions here (`grad`, ...) give sparse
gradients.

>>> import axir, axir.numpy as jnp
>>> from axir.experimental import sparse
>>> x = sparse.BCOO.fromdense(jnp.array([[0.0, 1.0], [2.0, 0.0]]))
>>> axir.jit(lambda x, v: x.T @ v)(x, jnp.array([1.0, 10.0]))
Array([20.,  1.], dtype=float32)
"""

from __future__ import annotations

from axir._made_modules import MadeModule

from . import _primitives, linalg
from ._base import (
    CuSparseEfficiencyWarning,
    JAXSparse,
    SparseEfficiencyError,
    SparseEfficiencyWarning,
    SparseLayoutError,
    SparseRuleError,
)
from ._bcoo import BCOO, bcoo_extract, bcoo_fromdense, bcoo_todense
from ._bcoo_layout import (
    bcoo_eliminate_zeros,
    bcoo_sort_indices,
    bcoo_sum_duplicates,
    bcoo_update_layout,
)
from ._bcoo_products import (
    bcoo_dot_general,
    bcoo_dot_general_sampled,
    bcoo_multiply_dense,
    bcoo_multiply_sparse,
)
from ._bcoo_shape import (
    bcoo_broadcast_in_dim,
    bcoo_concatenate,
    bcoo_dynamic_slice,
    bcoo_reduce_sum,
    bcoo_reshape,
    bcoo_rev,
    bcoo_slice,
    bcoo_squeeze,
    bcoo_transpose,
)
from ._bcoo_windows import bcoo_conv_general_dilated, bcoo_gather
from ._bcsr import (
    BCSR,
    bcsr_broadcast_in_dim,
    bcsr_concatenate,
    bcsr_dot_general,
    bcsr_eliminate_zeros,
    bcsr_extract,
    bcsr_fromdense,
    bcsr_sum_duplicates,
    bcsr_todense,
)
from ._creation import empty, eye, random_bcoo
from ._derivatives import grad, jacfwd, jacobian, jacrev, value_and_grad
from ._matrices import (
    COO,
    CSC,
    CSR,
    coo_fromdense,
    coo_matmat,
    coo_matvec,
    coo_todense,
    csr_fromdense,
    csr_matmat,
    csr_matvec,
    csr_todense,
)
from ._primitives import (
    bcoo_dot_general_p,
    bcoo_dot_general_sampled_p,
    bcoo_extract_p,
    bcoo_fromdense_p,
    bcoo_sort_indices_p,
    bcoo_spdot_general_p,
    bcoo_sum_duplicates_p,
    bcoo_todense_p,
    bcoo_transpose_p,
    bcsr_dot_general_p,
    bcsr_extract_p,
    bcsr_fromdense_p,
    bcsr_todense_p,
    coo_fromdense_p,
    coo_matmat_p,
    coo_matvec_p,
    coo_todense_p,
    csr_fromdense_p,
    csr_matmat_p,
    csr_matvec_p,
    csr_todense_p,
    todense_p,
)
from ._transform import sparsify, todense

__all__ = [
    "BCOO", "BCSR", "COO", "CSC", "CSR", "CuSparseEfficiencyWarning", "JAXSparse",
    "SparseEfficiencyError", "SparseEfficiencyWarning", "SparseLayoutError", "SparseRuleError",
    "ad", "api", "bcoo", "bcoo_broadcast_in_dim", "bcoo_concatenate", "bcoo_conv_general_dilated",
    "bcoo_dot_general", "bcoo_dot_general_p", "bcoo_dot_general_sampled",
    "bcoo_dot_general_sampled_p", "bcoo_dynamic_slice", "bcoo_eliminate_zeros", "bcoo_extract",
    "bcoo_extract_p", "bcoo_fromdense", "bcoo_fromdense_p", "bcoo_gather", "bcoo_multiply_dense",
    "bcoo_multiply_sparse", "bcoo_reduce_sum", "bcoo_reshape", "bcoo_rev", "bcoo_slice",
    "bcoo_sort_indices", "bcoo_sort_indices_p", "bcoo_spdot_general_p", "bcoo_squeeze",
    "bcoo_sum_duplicates", "bcoo_sum_duplicates_p", "bcoo_todense", "bcoo_todense_p",
    "bcoo_transpose", "bcoo_transpose_p", "bcoo_update_layout", "bcsr", "bcsr_broadcast_in_dim",
    "bcsr_concatenate", "bcsr_dot_general", "bcsr_dot_general_p", "bcsr_eliminate_zeros",
    "bcsr_extract", "bcsr_extract_p", "bcsr_fromdense", "bcsr_fromdense_p", "bcsr_sum_duplicates",
    "bcsr_todense", "bcsr_todense_p", "coo", "coo_fromdense", "coo_fromdense_p", "coo_matmat",
    "coo_matmat_p", "coo_matvec", "coo_matvec_p", "coo_todense", "coo_todense_p", "csr",
    "csr_fromdense", "csr_fromdense_p", "csr_matmat", "csr_matmat_p", "csr_matvec", "csr_matvec_p",
    "csr_todense", "csr_todense_p", "empty", "eye", "grad", "jacfwd", "jacobian", "jacrev",
    "linalg", "random", "random_bcoo", "sparsify", "todense", "todense_p", "transform", "util",
    "value_and_grad",
]  # fmt: skip


# JAX's modules of these names.
_PLACES = {
    "ad": ("grad", "jacfwd", "jacobian", "jacrev", "value_and_grad"),
    "api": ("empty", "eye", "todense", "todense_p"),
    "bcoo": ("BCOO", *(name for name in __all__ if name.startswith("bcoo_"))),
    "bcsr": ("BCSR", *(name for name in __all__ if name.startswith("bcsr_"))),
    "coo": ("COO", "COOInfo", "Shape", *(name for name in __all__ if name.startswith("coo_"))),
    "csr": ("CSC", "CSR", "Shape", *(name for name in __all__ if name.startswith("csr_"))),
    "random": ("random_bcoo",),
    "transform": ("sparsify",),
    "util": (
        "CuSparseEfficiencyWarning",
        "Shape",
        "SparseEfficiencyError",
        "SparseEfficiencyWarning",
        "SparseInfo",
    ),
}
_NAMES = {**vars(_primitives), **globals()}


def _place(module: str) -> MadeModule:
    path = f"{__name__}.{module}"
    doc = f"Names of `{path.replace('axir', 'jax', 1)}`, a part of `{__name__}`."
    return MadeModule(path, doc, {name: _NAMES[name] for name in _PLACES[module]})


ad, api, bcoo, bcsr, coo, csr, random, transform, util = map(_place, _PLACES)


def __dir__() -> list[str]:
    return __all__
