"""Calls of Python functions while a program runs: `pure_callback`, `io_callback`, `debug_callback`.

`Callback` is the function as a parameter of an op. Compiled code calls it in its process
(`LoweringContext.host_call`); a program that leaves the process cannot contain it. Elsewhere: the
trees of arguments and results, which the frontend flattens.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core import dtypes
from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.context import describe_location
from axir.dialect.core.errors import CallbackError, HostCallNeededError, MissingRuleError
from axir.dialect.core.state import outside_traces
from axir.dialect.core.types import ShapedArray, element_type
from axir.dialect.ops.shape.broadcasting import broadcast_in_dim, expand_dims
from axir.dialect.ops.shape.rearranging import moveaxis
from axir.dialect.program.effects import current_frame
from axir.dialect.program.function_rules import LoweringContext
from axir.dialect.program.narrow_elements import widened
from axir.dialect.program.op_table import declare
from axir.dialect.program.operation import Sample
from axir.dialect.program.rules import (
    Cotangent,
    Cotangents,
    FlatFunction,
    Results,
    Tangent,
    TransposeOperand,
    Value,
)

VMAP_METHODS = (
    "sequential",
    "sequential_unrolled",
    "expand_dims",
    "broadcast_all",
    "legacy_vectorized",
)
_LOOPED = ("sequential", "sequential_unrolled")


class Callback:
    """A Python function of arrays, as a parameter of an op. Callbacks are equal if identical.

    Args:
        function: Takes arrays, and returns a sequence of array-like values.
        name: Its name in messages and jaxprs.
    """

    def __init__(self, function: FlatFunction, name: str):
        self.function = function
        self.name = name

    def __repr__(self) -> str:
        return self.name

    def run(
        self, arrays: Sequence[ConcreteArray], result_types: Sequence[ShapedArray]
    ) -> list[np.ndarray]:
        """Calls the function; checks the types of its results, and returns the results.

        Raises:
            CallbackError: if it returns other shapes or dtypes than it declares.
        """
        with outside_traces():
            results = self.function(*arrays)
        hosts = [_canonical(x, t) for x, t in zip(results, result_types, strict=False)]
        if len(results) != len(result_types) or any(
            x.shape != t.shape or x.dtype != t.dtype
            for x, t in zip(hosts, result_types, strict=True)
        ):
            found = ", ".join(f"{x.dtype}[{','.join(map(str, x.shape))}]" for x in hosts)
            raise CallbackError(
                f"The callback {self.name!r} returned ({found}), but result_shape_dtypes says "
                f"({', '.join(map(str, result_types))}).",
                "Make both agree; axir.eval_shape tells the shapes and dtypes of a function of "
                "axir.numpy.",
            )
        return hosts


class _Looped(Callback):
    """A callback that calls another one for each element of a batch axis, in order."""

    def __init__(
        self,
        callback: Callback,
        axes: Sequence[int | None],
        size: int,
        result_types: Sequence[ShapedArray],
    ):
        super().__init__(callback.function, callback.name)
        self.callback, self.axes, self.size = callback, tuple(axes), size
        self.element_types = tuple(result_types)

    def run(
        self, arrays: Sequence[ConcreteArray], result_types: Sequence[ShapedArray]
    ) -> list[np.ndarray]:
        """Calls the callback for each element; returns the stacked results."""
        hosts = [
            x.host() if axis is None else np.moveaxis(x.host(), axis, 0)
            for x, axis in zip(arrays, self.axes, strict=True)
        ]
        results = [np.empty(t.shape, t.dtype) for t in result_types]
        for place in range(self.size):
            elements = [
                _wrapped(x if axis is None else x[place, ...])
                for x, axis in zip(hosts, self.axes, strict=True)
            ]
            found = self.callback.run(elements, self.element_types)
            for result, element in zip(results, found, strict=True):
                result[place, ...] = element
        return results


def _wrapped(host: np.ndarray) -> ConcreteArray:
    return ConcreteArray(ShapedArray(host.shape, host.dtype), host)


def _canonical(result: object, wanted: ShapedArray) -> np.ndarray:
    """Returns a result as an array; Python scalars and disabled 64-bit dtypes are converted."""
    host = result.host() if type(result) is ConcreteArray else np.asarray(result)
    is_scalar = type(result) in (bool, int, float, complex)
    if is_scalar and dtypes.kind(host.dtype) == dtypes.kind(wanted.dtype):
        return host.astype(wanted.dtype)
    dtype = dtypes.canonicalize_dtype(host.dtype)
    return host if host.dtype == dtype else host.astype(dtype)


# Rules ------------------------------------------------------------------------------------------


def _infer(
    *types: ShapedArray, callback: Callback, result_avals: tuple[ShapedArray, ...], **params: object
) -> list[ShapedArray]:
    return list(result_avals)


def _evaluate(
    *operands: np.ndarray,
    callback: Callback,
    result_avals: tuple[ShapedArray, ...],
    **params: object,
) -> list[np.ndarray]:
    return callback.run([_wrapped(x) for x in operands], result_avals)


def _lower(
    context: LoweringContext,
    *values: ir.Value,
    callback: Callback,
    result_avals: tuple[ShapedArray, ...],
    **params: object,
) -> list[ir.Value]:
    return call_back(context, values, callback, result_avals)


def call_back(
    context: LoweringContext,
    values: Sequence[ir.Value],
    callback: Callback,
    result_avals: Sequence[ShapedArray],
) -> list[ir.Value]:
    """Calls a callback when the compiled code runs.

    Raises:
        HostCallNeededError: if the code will not run in this process.
    """
    if not context.allows_callbacks:
        raise HostCallNeededError(
            f"{context.primitive.name}: the callback {callback.name!r} is a Python function of "
            "this process, and what is exported cannot call it.",
            "Take it out of the function, or run the function with axir.jit.",
            where=describe_location(ir.Location.current),
        )

    def call(*operands: np.ndarray) -> list[np.ndarray]:
        # Copies: the memory belongs to the program, and a callback may keep its arguments.
        arrays = [_wrapped(_read_only(np.array(x))) for x in operands]
        return [widened(x) for x in callback.run(arrays, result_avals)]

    # Elements of few bits come back wide: devices exchange whole bytes with the host.
    types = [t.update(dtype=dtypes.wide(t.dtype)) for t in context.types_out]
    found = context.host_call(call, values, types, callback.name)
    return [
        hlo.convert(x, element_type(t.dtype)) if dtypes.is_narrow(t.dtype) else x
        for x, t in zip(found, context.types_out, strict=True)
    ]


def _read_only(host: np.ndarray) -> np.ndarray:
    host.flags.writeable = False
    return host


def _no_samples() -> list[Sample]:
    # A Python function as parameter has no text, but all tests of samples need one.
    return []


def _looped(
    operands: Sequence[Value],
    axes: Sequence[int | None],
    callback: Callback,
    result_avals: tuple[ShapedArray, ...],
) -> tuple[Callback, tuple[ShapedArray, ...]]:
    size = current_frame().size
    return _Looped(callback, axes, size, result_avals), _stacked(result_avals, size)


def _stacked(types: Sequence[ShapedArray], size: int) -> tuple[ShapedArray, ...]:
    return tuple(ShapedArray((size, *t.shape), t.dtype) for t in types)


# pure_callback ----------------------------------------------------------------------------------


def _batch_pure(
    operands: Sequence[Value],
    axes: Sequence[int | None],
    *,
    callback: Callback,
    result_avals: tuple[ShapedArray, ...],
    vmap_method: str | None,
) -> tuple[list[Value], list[int]]:
    frame = current_frame()
    if vmap_method is None and not frame.maps_devices:
        raise MissingRuleError(
            f"vmap of pure_callback: nobody said how to call {callback.name!r} with a batch.",
            f"Pass vmap_method to pure_callback: one of {', '.join(map(repr, VMAP_METHODS))}.",
        )
    if vmap_method is None or frame.maps_devices or vmap_method in _LOOPED:
        callback, stacked = _looped(operands, axes, callback, result_avals)
    else:
        operands = _led(operands, axes, frame.size, vmap_method)
        stacked = _stacked(result_avals, frame.size)
    results = pure_callback_primitive.bind(
        *operands, callback=callback, result_avals=stacked, vmap_method=vmap_method
    )
    return results, [0] * len(results)


def _led(
    operands: Sequence[Value], axes: Sequence[int | None], size: int, method: str
) -> list[Value]:
    """Returns the operands with the batch axis first; operands without one as requested."""
    led = []
    for x, axis in zip(operands, axes, strict=True):
        if axis is not None:
            led.append(moveaxis(x, axis, 0))
        elif method == "expand_dims":
            led.append(expand_dims(x, (0,)))
        elif method == "broadcast_all":
            led.append(broadcast_in_dim(x, (size, *x.shape), tuple(range(1, x.ndim + 1))))
        else:
            led.append(x)
    return led


_NO_DERIVATIVE = (
    "a callback is a Python function, whose derivative only its author knows. Wrap the function "
    "that calls it in axir.custom_jvp or axir.custom_vjp and define the derivative there, or take "
    "the argument out with axir.lax.stop_gradient"
)

pure_callback_primitive = declare(
    "pure_callback",
    parameters={
        "callback": Callback,
        "result_avals": tuple[ShapedArray, ...],
        "vmap_method": str | None,
    },
    multiple_results=True,
    # Staged, because the function runs with the program, not while it is traced.
    is_staged=True,
    is_memoized=False,
    infer=_infer,
    evaluate=_evaluate,
    batch=_batch_pure,
    lower=_lower,
    samples=_no_samples,
    unsupported={"jvp": _NO_DERIVATIVE, "transpose": "a callback is linear in nothing"},
)

# io_callback ------------------------------------------------------------------------------------


def _batch_io(
    operands: Sequence[Value],
    axes: Sequence[int | None],
    *,
    callback: Callback,
    result_avals: tuple[ShapedArray, ...],
    ordered: bool,
) -> tuple[list[Value], list[int]]:
    if ordered:
        raise MissingRuleError(
            f"vmap of io_callback: {callback.name!r} is ordered, and the places of a batch have "
            "no order among the other calls.",
            "Pass ordered=False, or loop with axir.lax.scan.",
        )
    callback, stacked = _looped(operands, axes, callback, result_avals)
    results = io_callback_primitive.bind(
        *operands, callback=callback, result_avals=stacked, ordered=ordered
    )
    return results, [0] * len(results)


io_callback_primitive = declare(
    "io_callback",
    parameters={"callback": Callback, "result_avals": tuple[ShapedArray, ...], "ordered": bool},
    multiple_results=True,
    is_staged=True,
    is_effectful=True,
    is_memoized=False,
    infer=_infer,
    evaluate=_evaluate,
    batch=_batch_io,
    lower=_lower,
    samples=_no_samples,
    unsupported={"jvp": _NO_DERIVATIVE, "transpose": "a callback is linear in nothing"},
)

# debug_callback ---------------------------------------------------------------------------------


def _infer_none(*types: ShapedArray, callback: Callback, ordered: bool) -> tuple[()]:
    return ()


def _evaluate_debug(*operands: np.ndarray, callback: Callback, ordered: bool) -> list[np.ndarray]:
    return callback.run([_wrapped(x) for x in operands], ())


def _lower_debug(
    context: LoweringContext, *values: ir.Value, callback: Callback, ordered: bool
) -> list[ir.Value]:
    return _lower(context, *values, callback=callback, result_avals=())


def _jvp_debug(
    primals: Sequence[Value], tangents: Sequence[Tangent], outs: Results, **params: object
) -> Sequence[Tangent]:
    return []  # the call itself has seen the primals


def _transpose_debug(
    cotangents: Cotangents, *operands: TransposeOperand, **params: object
) -> Sequence[Cotangent | None]:
    return [None] * len(operands)


def _batch_debug(
    operands: Sequence[Value], axes: Sequence[int | None], *, callback: Callback, ordered: bool
) -> tuple[list[Value], list[int]]:
    looped = _Looped(callback, axes, current_frame().size, ())
    return debug_callback_primitive.bind(*operands, callback=looped, ordered=ordered), []


debug_callback_primitive = declare(
    "debug_callback",
    parameters={"callback": Callback, "ordered": bool},
    multiple_results=True,
    is_staged=True,
    is_effectful=True,
    is_observer=True,
    is_memoized=False,
    infer=_infer_none,
    evaluate=_evaluate_debug,
    jvp=_jvp_debug,
    transpose=_transpose_debug,
    batch=_batch_debug,
    lower=_lower_debug,
    samples=_no_samples,
)
