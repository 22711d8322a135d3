"""Names of `jax.experimental.hijax`: primitives and types of a library's own.

Here: primitives on trees of arrays, with rules as methods (`_primitives.py`), and types of values
that are no arrays, which libraries may declare (`_types.py`). Elsewhere: primitives with rules in
tables (`axir.extend.core`).
"""

from __future__ import annotations

from axir._transforms.refs import AbstractRef
from axir._transforms.refs import RefView as TransformedRef
from axir.core import AbstractValue, ShapedArray
from axir.dialect.core.symbolic_zeros import Zero, is_undefined_primal
from axir.interpreters.ad import instantiate_zeros

from ._primitives import VJPHiPrimitive
from ._types import (
    AvalMutableQDD,
    AvalQDD,
    HiPrimitive,
    HiPspec,
    HiType,
    MutableHiType,
    aval_method,
    aval_property,
    control_flow_allowed_effects,
    register_hitype,
)

__all__ = [
    "AbstractRef", "AbstractValue", "AvalMutableQDD", "AvalQDD", "HiPrimitive", "HiPspec", "HiType",
    "MutableHiType", "ShapedArray", "TransformedRef", "VJPHiPrimitive", "Zero", "aval_method",
    "aval_property", "control_flow_allowed_effects", "instantiate_zeros", "is_undefined_primal",
    "register_hitype",
]  # fmt: skip
