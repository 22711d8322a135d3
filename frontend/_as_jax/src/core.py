"""Names of `jax._src.core`: values, types and programs, and what is being traced."""

from __future__ import annotations

from axir._arguments.arguments import type_of
from axir.core import (
    AbstractValue,
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    Literal,
    Primitive,
    ShapedArray,
    Trace,
    Tracer,
    Var,
    eval_jaxpr,
    jaxpr_as_fun,
    pytype_aval_mappings,
)
from axir.dialect.core.array import Array
from axir.extend.core import (
    DropVar,
    Effect,
    concrete_or_error,
    find_top_trace,
    get_opaque_trace_state,
    mapped_aval,
    no_effects,
    unmapped_aval,
    valid_jaxtype,
)
from axir.extend.core._tracing import trace_state_clean

__all__ = [
    "AbstractValue",
    "Array",
    "ClosedJaxpr",
    "DropVar",
    "Effect",
    "Jaxpr",
    "JaxprEqn",
    "Literal",
    "Primitive",
    "ShapedArray",
    "Trace",
    "Tracer",
    "Var",
    "concrete_or_error",
    "eval_jaxpr",
    "find_top_trace",
    "get_aval",
    "get_opaque_trace_state",
    "jaxpr_as_fun",
    "mapped_aval",
    "no_effects",
    "physical_aval",
    "pytype_aval_mappings",
    "trace_state_clean",
    "unmapped_aval",
    "valid_jaxtype",
]

get_aval = type_of


def physical_aval(aval: ShapedArray) -> ShapedArray:
    """Returns the type of what lies in memory for an array."""
    return aval
