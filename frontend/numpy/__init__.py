"""`axir.numpy`: NumPy's functions with JAX's names, dtypes and semantics.

The functions take arrays, tracers, NumPy arrays and Python scalars; lists only where taking them is
their purpose (`array`, `stack`, ...). Arrays are immutable, and 64-bit dtypes are off until
`jax_enable_x64` is set. The functions stand in one file per theme.

>>> import axir.numpy as jnp
>>> jnp.sum(jnp.arange(4) * 2.5)
Array(15., dtype=float32)
"""
# ruff: noqa: F403 - the modules' __all__ say what is public
# isort: off

from __future__ import annotations

import math as _math

from axir.dialect.array import Array as ndarray

from . import array_methods as _array_methods
from . import fft
from . import linalg
from .applied import *
from .arithmetic import *
from .convolutions import *
from .creation import *
from .cumulative import *
from .diagonals import *
from .differences import *
from .edits import *
from .einsum import *
from .exponential import *
from .files import *
from .flat_indices import *
from .floats import *
from .grids import *
from .histograms import *
from .index_grids import *
from .index_notation import *
from .indexing import *
from .joining import *
from .linear_algebra import *
from .logic import *
from .manipulation import *
from .matrices import *
from .moments import *
from .nan_reductions import *
from .outer_products import *
from .padding import *
from .placing import *
from .polynomials import *
from .positions import *
from .quantiles import *
from .reductions import *
from .scalar_types import *
from .selection import *
from .set_operations import *
from .sorting import *
from .statistics import *
from .vectorization import *
from .windows import *
from .applied import __all__ as _applied
from .arithmetic import __all__ as _arithmetic
from .convolutions import __all__ as _convolutions
from .creation import __all__ as _creation
from .cumulative import __all__ as _cumulative
from .diagonals import __all__ as _diagonals
from .differences import __all__ as _differences
from .edits import __all__ as _edits
from .einsum import __all__ as _einsum
from .exponential import __all__ as _exponential
from .files import __all__ as _files
from .flat_indices import __all__ as _flat_indices
from .floats import __all__ as _floats
from .grids import __all__ as _grids
from .histograms import __all__ as _histograms
from .index_grids import __all__ as _index_grids
from .index_notation import __all__ as _index_notation
from .indexing import __all__ as _indexing
from .joining import __all__ as _joining
from .linear_algebra import __all__ as _linear_algebra
from .logic import __all__ as _logic
from .manipulation import __all__ as _manipulation
from .matrices import __all__ as _matrices
from .moments import __all__ as _moments
from .nan_reductions import __all__ as _nan_reductions
from .outer_products import __all__ as _outer_products
from .padding import __all__ as _padding
from .placing import __all__ as _placing
from .polynomials import __all__ as _polynomials
from .positions import __all__ as _positions
from .quantiles import __all__ as _quantiles
from .reductions import __all__ as _reductions
from .scalar_types import __all__ as _scalar_types
from .selection import __all__ as _selection
from .set_operations import __all__ as _set_operations
from .sorting import __all__ as _sorting
from .statistics import __all__ as _statistics
from .vectorization import __all__ as _vectorization
from .windows import __all__ as _windows
from .scalar_types import bool_ as bool
from numpy import character, flexible, object_
from numpy.exceptions import ComplexWarning

e = _math.e
euler_gamma = 0.57721566490153286
inf = _math.inf
nan = _math.nan
newaxis = None
pi = _math.pi

__all__ = [
    *_applied,
    *_arithmetic,
    *_convolutions,
    *_creation,
    *_cumulative,
    *_diagonals,
    *_differences,
    *_edits,
    *_einsum,
    *_exponential,
    *_files,
    *_flat_indices,
    *_floats,
    *_grids,
    *_histograms,
    *_index_grids,
    *_index_notation,
    *_indexing,
    *_joining,
    *_linear_algebra,
    *_logic,
    *_manipulation,
    *_matrices,
    *_moments,
    *_nan_reductions,
    *_outer_products,
    *_padding,
    *_placing,
    *_polynomials,
    *_positions,
    *_quantiles,
    *_reductions,
    *_scalar_types,
    *_selection,
    *_set_operations,
    *_sorting,
    *_statistics,
    *_vectorization,
    *_windows,
    "ComplexWarning",
    "bool",
    "character",
    "e",
    "euler_gamma",
    "fft",
    "flexible",
    "linalg",
    "inf",
    "nan",
    "ndarray",
    "newaxis",
    "object_",
    "pi",
]

_array_methods.install()
