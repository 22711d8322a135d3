"""Extents as values: `dim_as_value` lets programs compute with the extents of arrays.

A known extent is a Python number. An unknown extent becomes an op where it is combined with an
array: `x.sum() / x.shape[0]`.
"""

from __future__ import annotations

import numpy as np

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core import dtypes
from axir.dialect.core.array import ConcreteArray, scalar
from axir.dialect.core.state import state
from axir.dialect.core.symbolic.terms import SymbolicDimError
from axir.dialect.core.symbolic_dims import SymbolicDim, is_symbolic_dim, trace_extents_by
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.elementwise.family import zero_tangent
from axir.dialect.program.op_table import declare
from axir.dialect.program.operation import Sample
from axir.dialect.program.primitive import Primitive
from axir.dialect.program.rules import Value


def _infer(*, extent: int, dtype: np.dtype) -> ShapedArray:
    return ShapedArray((), dtype)


def _evaluate(*, extent: int, dtype: np.dtype) -> np.ndarray:
    return np.array(extent, dtype)


def _simplify(*, extent: int, dtype: np.dtype) -> ConcreteArray | None:
    return None if is_symbolic_dim(extent) else scalar(extent, dtype, weak_type=False)


def _samples() -> list[Sample]:
    return [
        Sample((), {"extent": extent, "dtype": dtype}, is_smooth=False)
        for extent in (0, 1, 1000)
        for dtype in (dtypes.int32, dtypes.int64)
    ]


_dim_as_value: Primitive = declare(
    "dim_as_value",
    parameters={"extent": int, "dtype": np.dtype},
    is_staged=True,
    infer=_infer,
    evaluate=_evaluate,
    jvp=zero_tangent,
    simplify=_simplify,
    lower=lambda context, *, extent, dtype: hlo.extent(extent, dtype),
    samples=_samples,
    unsupported={
        "transpose": "it has no operands, so nothing can be linear in one.",
        "batch": "it has no operands, so nothing is batched.",
    },
)


def dim_as_value(extent: SymbolicDim) -> Value:
    """Returns an extent as an integer of the program that is being traced.

    Raises:
        SymbolicDimError: if no trace is open that could hold it.
    """
    if state.ambient is None:
        raise SymbolicDimError(
            f"The extent {extent} is not known: it is no number to compute with here.",
            "Symbolic dimensions stand in shapes that are given to axir.export, and are values "
            "in the function that is exported.",
        )
    dtype = dtypes.canonicalize_dtype(np.dtype(np.int64))
    return convert_element_type(
        _dim_as_value.bind(extent=extent, dtype=dtype), dtype, weak_type=True
    )


trace_extents_by(dim_as_value)
