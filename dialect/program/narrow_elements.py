"""Operations on elements of few bits: float8, float4, int4 and their like.

Arrays of such dtypes are stored, moved and converted. All other ops compute in a wide dtype
(`dtypes.wide`), and round the results. So no op needs rules for these dtypes: this file derives the
types of its results from the op on wide elements. Elsewhere: the dtypes (`dialect/core/dtypes.py`),
and the form of compiled code (`passes/transforms/lowered_elements.py`).
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Dtype, HostArray, Params
from axir.dialect.core.errors import AxirError
from axir.dialect.core.types import ShapedArray

from .rules import InferRule, ResultTypes

# A second choice of wide dtypes. A result that differs between the two choices has the dtype of the
# operands; any other result has a fixed dtype.
_OTHER_WIDE = {dtypes.float32: dtypes.float64, dtypes.int8: dtypes.int16}
_OTHER_WIDE |= {dtypes.uint8: dtypes.uint16}


def has_narrow(types: ResultTypes | tuple[ShapedArray, ...], params: Params) -> bool:
    """Tells whether elements of few bits are among the types, or named by a parameter."""
    if type(types) is ShapedArray:
        types = (types,)
    if any(dtypes.is_narrow(t.dtype) for t in types):
        return True
    return any(is_narrow_parameter(value) for value in params.values())


def is_narrow_parameter(value: object) -> bool:
    """Tells whether a parameter is a dtype of few bits."""
    return isinstance(value, np.dtype) and dtypes.is_narrow(value)


def widened_params(params: Params) -> Params:
    """Returns the parameters with wide dtypes."""
    return {
        name: dtypes.wide(value) if isinstance(value, np.dtype) else value
        for name, value in params.items()
    }


def infer_narrow(infer: InferRule, types: tuple[ShapedArray, ...], params: Params) -> ResultTypes:
    """Returns the result types of an op; some operands have elements of few bits.

    Args:
        infer: The op's rule.
        types: Types of the operands.
        params: Parameters of the op.

    Raises:
        The errors of the rule.
    """
    try:
        return infer(*types, **params)
    except AxirError as error:
        narrow = {t.dtype for t in types if dtypes.is_narrow(t.dtype)}
        names_dtype = any(isinstance(value, np.dtype) for value in params.values())
        if not narrow or (len(narrow) > 1 and not names_dtype):
            raise
        try:
            first = infer(*[_with_wide(t) for t in types], **widened_params(params))
            second = infer(*[_with_wider(t) for t in types], **widened_params(params))
        except AxirError:
            raise error from None
        found = [
            _result_type(a, b, params, narrow, error)
            for a, b in zip(_listed(first), _listed(second), strict=True)
        ]
    return found[0] if type(first) is ShapedArray else found


def _result_type(
    first: ShapedArray, second: ShapedArray, params: Params, narrow: set[Dtype], error: AxirError
) -> ShapedArray:
    """Returns the type of a result from the results for two choices of wide dtypes."""
    named = [p for p in params.values() if is_narrow_parameter(p)]
    if first.dtype == second.dtype:
        follows = len(named) == 1 and first.dtype == dtypes.wide(named[0])
        return first.update(dtype=named[0]) if follows else first
    if len(narrow) > 1:
        raise error
    return first.update(dtype=next(iter(narrow)))


def _listed(types: ResultTypes) -> list[ShapedArray]:
    return [types] if type(types) is ShapedArray else list(types)


def _with_wide(array_type: ShapedArray) -> ShapedArray:
    return array_type.update(dtype=dtypes.wide(array_type.dtype))


def _with_wider(array_type: ShapedArray) -> ShapedArray:
    dtype = array_type.dtype
    if not dtypes.is_narrow(dtype):
        return array_type
    return array_type.update(dtype=_OTHER_WIDE[dtypes.wide(dtype)])


def widened(host: HostArray) -> HostArray:
    """Returns the elements in the dtype in which operations compute with them.

    >>> widened(np.array([0.5, 2], "float8_e5m2")).dtype
    dtype('float32')
    """
    return host.astype(dtypes.wide(host.dtype)) if dtypes.is_narrow(host.dtype) else host


def narrowed(host: HostArray, dtype: Dtype) -> HostArray:
    """Returns elements in a dtype of few bits: floats rounded, integers without their high bits.

    >>> narrowed(np.array([7, 9], np.int8), np.dtype("int4")).tolist()
    [7, -7]
    """
    if not dtypes.is_narrow(dtype) or host.dtype == dtype:
        return host
    if dtypes.is_float(dtype):
        return np.asarray(host).astype(dtype)
    bits = ml_dtypes.iinfo(dtype).bits
    unsigned = np.asarray(host).astype(np.uint8) & np.uint8(2**bits - 1)
    if dtypes.is_unsigned(dtype):
        return unsigned.astype(dtype)
    sign = np.uint8(2 ** (bits - 1))
    return ((unsigned ^ sign).astype(np.int8) - np.int8(sign)).astype(dtype)


def bytes_of(host: HostArray) -> HostArray:
    """Returns elements of few bits as the bytes of compiled code, without a copy; others stay.

    >>> bytes_of(np.array([-1, 2], "int4"))
    array([15,  2], dtype=uint8)
    """
    return host.view(np.uint8) if dtypes.is_narrow(host.dtype) else host
