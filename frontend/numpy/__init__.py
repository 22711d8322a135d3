"""`axir.numpy`: NumPy's functions with JAX's names, dtypes and semantics.

The functions take arrays, tracers, NumPy arrays and Python scalars; lists only where taking them is
their purpose (`array`, `stack`, ...). Arrays are immutable, and 64-bit dtypes are off until
`jax_enable_x64` is set. The functions are in one file per theme.

>>> import axir.numpy as jnp
>>> jnp.sum(jnp.arange(4) * 2.5)
Array(15., dtype=float32)
"""
# ruff: noqa: F401, F403 - whatever has a public name here is public; see `__all__`
# isort: off

from __future__ import annotations

import math as _math

from axir.dialect.core.array import Array as ndarray

from ._methods import array_methods as _array_methods
from . import fft
from . import linalg
from ._functions.applied_functions import *
from ._elementwise.arithmetic import *
from ._elementwise.rounding import *
from ._arrays.comparisons import *
from ._products.convolutions import *
from ._arrays.creation import *
from ._arrays.filled import *
from ._reductions.cumulative import *
from ._shape.diagonals import *
from ._reductions.differences import *
from ._indexing.edits import *
from ._products.einsum import *
from ._elementwise.exponential import *
from ._arrays.files import *
from ._indexing.flat_indices import *
from ._elementwise.floats import *
from ._arrays.grids import *
from ._statistics.histograms import *
from ._arrays.index_grids import *
from ._arrays.index_notation import *
from ._indexing.taking import *
from ._shape.joining import *
from ._products.products import *
from ._elementwise.logic import *
from ._shape.manipulation import *
from ._shape.reordering import *
from ._arrays.matrices import *
from ._reductions.moments import *
from ._reductions.nan_reductions import *
from ._products.outer_products import *
from ._shape.padding import *
from ._indexing.placing import *
from ._products.polynomials import *
from ._reductions.positions import *
from ._reductions.quantiles import *
from ._reductions.reductions import *
from ._arrays.scalar_types import *
from ._indexing.selection import *
from ._sorting.set_operations import *
from ._sorting.sorting import *
from ._statistics.statistics import *
from ._functions.vectorization import *
from ._elementwise.window_functions import *
from ._functions.older_names import *
from ._functions.universal_functions import *
from ._functions.universal_arithmetic import *
from ._arrays.scalar_types import bool_ as bool
from numpy import character, flexible, object_
from numpy.exceptions import ComplexWarning

e = _math.e
euler_gamma = 0.57721566490153286
inf = _math.inf
nan = _math.nan
newaxis = None
# Older names, deprecated: write -jnp.inf, 0.0 and -0.0.
NINF, PZERO, NZERO = -inf, 0.0, -0.0
pi = _math.pi

# Every public name above; the modules they come from are private.
__all__ = sorted(name for name in globals() if not name.startswith("_") and name != "annotations")

_array_methods.install()
