"""`name`: the identity, which gives a value a name that checkpoint policies look for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import ParameterError
from ...primitive import Sample
from ...types import ShapedArray
from ..family import as_value, random_values
from ..table import declare


def _infer(operand: ShapedArray, *, name: str) -> ShapedArray:
    if not isinstance(name, str):
        raise ParameterError(f"checkpoint_name: the name must be a string, not {name!r}.")
    return operand


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], out: Any, **params: Any) -> Any:
    return tangents[0]


def _batch(operands: Sequence[Any], axes: Sequence[Any], *, name: str) -> tuple[Any, Any]:
    return name_primitive.bind(*operands, name=name), axes[0]


def _samples() -> list[Sample]:
    generator = np.random.default_rng(0)
    return [
        Sample((random_values(generator, shape, np.dtype(dtype), -2, 2),), {"name": "value"})
        for dtype, shape in (("float32", (2, 3)), ("complex64", ()), ("int32", (0, 2)))
    ]


name_primitive = declare(
    "name",
    takes_keys=True,
    infer=_infer,
    evaluate=lambda operand, *, name: operand,
    jvp=_jvp,
    transpose=lambda cotangent, operand, *, name: [cotangent],
    batch=_batch,
    lower=lambda context, value, *, name: value,
    samples=_samples,
)


def checkpoint_name(x: Any, name: str) -> Any:
    """Returns an array or scalar under a name; see `axir.ad_checkpoint.checkpoint_name`."""
    return name_primitive.bind(as_value(x), name=name)
