"""Building blocks for extending axir: primitives, types, tracers, jaxprs.

A user's own primitive has the same rules as a built-in one, set through the functions and tables
of JAX's extension interface (`axir.interpreters`).

>>> from axir import core
>>> from axir.interpreters import ad
>>> double = core.Primitive("double")
>>> _ = double.def_impl(lambda x: x + x)
>>> _ = double.def_abstract_eval(lambda x: core.ShapedArray(x.shape, x.dtype))
>>> ad.deflinear2(double, lambda ct, x: [double.bind(ct)])
>>> import axir
>>> float(axir.grad(lambda x: double.bind(x))(3.0))
2.0
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence

import numpy as np

from axir._arguments.arguments import type_of
from axir._transforms.staging import ensure_compile_time_eval
from axir._user_primitives import Primitive, gensym, jaxpr_as_fun, new_jaxpr_eqn
from axir.dialect.core.annotations import Params, UserFunction, UserObject
from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.errors import ConcretizationTypeError
from axir.dialect.core.symbolic.terms import SymbolicDimError as InconclusiveDimensionOperation
from axir.dialect.core.symbolic_dims import larger, smaller
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.equation import Equation as JaxprEqn
from axir.dialect.program.equation import Literal, Var
from axir.dialect.program.function import Function
from axir.dialect.program.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr, eval_jaxpr
from axir.dialect.program.rules import Value
from axir.dialect.program.tracer import Trace, Tracer

__all__ = [
    "AbstractValue", "Atom", "ClosedJaxpr", "DebugInfo", "Function",
    "InconclusiveDimensionOperation", "Jaxpr", "JaxprEqn", "Literal", "ParamDict", "Primitive",
    "ShapedArray", "Trace", "Tracer", "TypedJaxpr", "Value", "Var", "ensure_compile_time_eval",
    "eval_context", "eval_jaxpr", "gensym", "is_concrete", "is_constant_dim", "is_constant_shape",
    "jaxpr_as_fun", "max_dim", "min_dim", "new_jaxpr_eqn", "pytype_aval_mappings", "unit",
    "unitvar",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


# Functions that return the type of a value, by its class. Added entries are ignored: a class
# defines its conversion to an array by `__jax_array__`.
pytype_aval_mappings: dict[type, UserFunction] = dict.fromkeys(
    (ConcreteArray, Tracer, np.ndarray, np.generic, bool, int, float, complex), type_of
)

# There is one class of types, and a literal is a variable.
AbstractValue = ShapedArray
Atom = Var
ParamDict = Params
# Names of 2020: closed programs; the value that held nothing, and its variable.
TypedJaxpr = ClosedJaxpr
unit = unitvar = None
# The context in which nothing is traced.
eval_context = ensure_compile_time_eval


def is_concrete(x: object) -> bool:
    """Tells whether the elements of a value are known.

    >>> is_concrete(1.0)
    True
    """
    if type(x) is not Tracer:
        return True
    try:
        x.known(ConcretizationTypeError, "by is_concrete")
    except ConcretizationTypeError:
        return False
    return True


def is_constant_dim(d: object) -> bool:
    """Tells whether an extent is a number, as all are here: there are no symbolic ones."""
    return isinstance(d, (int, np.integer))


def is_constant_shape(s: Sequence[object]) -> bool:
    """Tells whether all extents are numbers; see `is_constant_dim`."""
    return all(map(is_constant_dim, s))


def max_dim(d1: int, d2: int) -> int:
    """Returns the larger of two extents; an expression if sizes decide."""
    return larger(d1, d2)


def min_dim(d1: int, d2: int) -> int:
    """Returns the smaller of two extents; an expression if sizes decide."""
    return smaller(d1, d2)


# The names of `axir.extend.core`, which is derived from this module.
_EXTENDED = frozenset(
    "DropVar Effect Effects JaxprTypeError check_jaxpr concrete_or_error find_top_trace "
    "get_opaque_trace_state jaxprs_in_params no_effects nonempty_axis_env_DO_NOT_USE "
    "primal_dtype_to_tangent_dtype unsafe_am_i_under_a_jit_DO_NOT_USE "
    "unsafe_am_i_under_a_vmap_DO_NOT_USE unsafe_get_axis_names_DO_NOT_USE valid_jaxtype".split()
)


def __getattr__(name: str) -> UserObject:
    if name in _EXTENDED:
        return getattr(importlib.import_module("axir.extend.core"), name)
    raise AttributeError(f"module 'axir.core' has no attribute {name!r}")
