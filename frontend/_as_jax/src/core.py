"""`jax._src.core`: values, types and programs, and the state of tracing."""

from __future__ import annotations

from axir._arguments.arguments import type_of
from axir._primitive_names import primitive_named
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
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import Array
from axir.extend.core import (
    DropVar,
    Effect,
    TraceTag,
    concrete_or_error,
    find_top_trace,
    get_opaque_trace_state,
    mapped_aval,
    no_effects,
    set_current_trace,
    take_current_trace,
    unmapped_aval,
    valid_jaxtype,
)
from axir.extend.core._tracing import trace_state_clean

from .util import safe_map, safe_zip

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
    "TraceTag",
    "Tracer",
    "Var",
    "call_p",
    "concrete_or_error",
    "eval_context",
    "eval_jaxpr",
    "find_top_trace",
    "full_lower",
    "get_aval",
    "get_opaque_trace_state",
    "get_referent",
    "jaxpr_as_fun",
    "mapped_aval",
    "no_effects",
    "physical_aval",
    "pytype_aval_mappings",
    "safe_map",
    "safe_zip",
    "set_current_trace",
    "take_current_trace",
    "trace_state_clean",
    "unmapped_aval",
    "valid_jaxtype",
]

get_aval = type_of
call_p = primitive_named("call_p")
# Code that runs in no trace.
eval_context = take_current_trace


def full_lower(val: object) -> UserObject:
    """Returns a value as it is: tracers here hold no other tracers."""
    return val


def get_referent(val: object) -> UserObject:
    """Returns the value, which is its own referent here."""
    return val


def physical_aval(aval: ShapedArray) -> ShapedArray:
    """Returns the type of an array's memory."""
    return aval
