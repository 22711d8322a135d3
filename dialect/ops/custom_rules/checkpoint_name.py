"""`name`: the identity; it gives a value a name for checkpoint policies."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from axir.dialect.core.errors import ParameterError
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.family import as_value, random_values
from axir.dialect.program.dimensions import position_wise
from axir.dialect.program.op_table import declare
from axir.dialect.program.operation import Sample
from axir.dialect.program.rules import BatchAxes, Operand, Tangent, Tangents, Value


def _infer(operand: ShapedArray, *, name: str) -> ShapedArray:
    if not isinstance(name, str):
        raise ParameterError(f"checkpoint_name: the name must be a string, not {name!r}.")
    return operand


def _jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], out: Value, **params: object
) -> Tangents:
    return tangents[0]


def _batch(operands: Sequence[Value], axes: BatchAxes, *, name: str) -> tuple[Value, Value]:
    return name_primitive.bind(*operands, name=name), axes[0]


def _samples() -> list[Sample]:
    generator = np.random.default_rng(0)
    return [
        Sample((random_values(generator, shape, np.dtype(dtype), -2, 2),), {"name": "value"})
        for dtype, shape in (("float32", (2, 3)), ("complex64", ()), ("int32", (0, 2)))
    ]


name_primitive = declare(
    "name",
    parameters={"name": str},
    takes_keys=True,
    takes_narrow=True,
    infer=_infer,
    evaluate=lambda operand, *, name: operand,
    jvp=_jvp,
    transpose=lambda cotangent, operand, *, name: [cotangent],
    dimensions=position_wise,
    batch=_batch,
    lower=lambda context, value, *, name: value,
    samples=_samples,
)


def checkpoint_name(x: Operand, name: str) -> Value:
    """Returns an array or scalar under a name; see `axir.ad_checkpoint.checkpoint_name`."""
    return name_primitive.bind(as_value(x), name=name)
