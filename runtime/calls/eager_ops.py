"""Single ops on arrays of a GPU: compiled, kept by types and parameters, and run there.

Elsewhere: ops on arrays in the host's memory, which NumPy computes
(`dialect/program/primitive.py`).
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Hashable, Sequence

from axir.dialect.core.annotations import Foreign, Params
from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.config import config
from axir.dialect.program.function import Function
from axir.dialect.program.function_tracing import trace_function
from axir.dialect.program.primitive import Primitive, run_remote_ops_by
from axir.dialect.program.rules import Results, Value

from .compiled_function import compiled

_LIMIT = 1024
_functions: dict[Hashable, Function] = {}
_lock = threading.Lock()


def run_op(
    primitive: Primitive, arrays: Sequence[ConcreteArray], params: Params, device: Foreign
) -> Results:
    """Applies a primitive to arrays on their device; results are committed if an operand is.

    Args:
        primitive: The op.
        arrays: Its operands.
        params: Its parameters.
        device: Where.

    Raises:
        CompileError, UnsupportedByDeviceError, HostCallNeededError: the device cannot.
    """
    function = _function_of(primitive, arrays, params)
    results = compiled(function, device, waits=True).run(arrays)
    if any(x._device is not None for x in arrays):
        for x in results:
            x._device = device
    return results if primitive.multiple_results else results[0]


def forget_ops() -> None:
    """Drops all compiled ops; an op is compiled anew when it is next applied."""
    with _lock:
        _functions.clear()


def _function_of(primitive: Primitive, arrays: Sequence[ConcreteArray], params: Params) -> Function:
    """Returns a function that consists of the op, made when first asked for."""
    types = tuple(x.type for x in arrays)
    key = (primitive, types, *params.items(), config.cache_key)
    try:
        function = _functions.get(key)
    except TypeError:  # an unhashable parameter of a user's primitive
        return _traced(primitive, arrays, params)
    if function is None:
        function = _traced(primitive, arrays, params)
        with _lock:
            for old in list(itertools.islice(_functions, max(0, len(_functions) - _LIMIT))):
                del _functions[old]
            _functions[key] = function
    return function


def _traced(primitive: Primitive, arrays: Sequence[ConcreteArray], params: Params) -> Function:
    def apply(*operands: Value) -> Sequence[Value]:
        results = primitive.bind(*operands, **params)
        return results if primitive.multiple_results else [results]

    return trace_function(apply, [x.type for x in arrays], name=primitive.name)


run_remote_ops_by(run_op)
