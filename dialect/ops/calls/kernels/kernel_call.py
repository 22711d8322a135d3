"""`kernel_call`: a kernel of a user's own as an op."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core.annotations import HostArray, Param, Params, UserFunction
from axir.dialect.core.context import describe_location
from axir.dialect.core.errors import HostCallNeededError, ShapeError
from axir.dialect.core.state import outside_traces
from axir.dialect.core.types import ShapedArray, element_type
from axir.dialect.ops.shape.rearranging import moveaxis
from axir.dialect.program.dimensions import WHOLE, Dimension, Dimensions, Factors, Shapes
from axir.dialect.program.named_axes import current_frame
from axir.dialect.program.op_table import declare
from axir.dialect.program.primitive import Sample
from axir.dialect.program.rules import LoweringContext, Value

from .compiled import compile_kernel
from .interpreted import interpret
from .values import check_dtype


class KernelFunction:
    """A function of refs, as a parameter of an op. Two are equal if identical.

    Args:
        function: Takes refs of the operands, then of the results.
        name: What messages and modules call it.
    """

    def __init__(self, function: UserFunction, name: str):
        self.function = function
        self.name = name

    def __repr__(self) -> str:
        return self.name


def _infer(
    *types: ShapedArray,
    kernel: KernelFunction,
    result_avals: tuple[ShapedArray, ...],
    batch: tuple[int, ...],
    **params: Param,
) -> list[ShapedArray]:
    for what, found in (("Operand", types), ("Result", result_avals)):
        for number, t in enumerate(found):
            check_dtype(f"{what} {number} of the kernel {kernel.name!r}", t.dtype)
            if 0 in t.shape and 0 not in batch:
                raise ShapeError(
                    f"{what} {number} of the kernel {kernel.name!r} is empty: {t}.",
                    "Call the kernel only where there is something to compute.",
                )
    return [ShapedArray((*batch, *t.shape), t.dtype) for t in result_avals]


def _evaluate(
    *operands: HostArray,
    kernel: KernelFunction,
    result_avals: tuple[ShapedArray, ...],
    grid: tuple[int, ...],
    batch: tuple[int, ...],
    batched: tuple[tuple[bool, ...], ...],
    parallel: bool,
) -> list[HostArray]:
    results = [np.zeros((*batch, *t.shape), t.dtype) for t in result_avals]
    with outside_traces():
        for place in np.ndindex(*batch):
            places = [
                tuple(i for i, has in zip(place, held, strict=True) if has) for held in batched
            ]
            # With `...` also a part of rank 0 is an array, into which the kernel can write.
            whole = (...,)
            parts = [x[own + whole] for x, own in zip(operands, places, strict=True)]
            interpret(kernel.function, parts, [x[place + whole] for x in results], grid)
    return results


def _batch(
    operands: Sequence[Value],
    axes: Sequence[int | None],
    *,
    batch: tuple[int, ...],
    batched: tuple[tuple[bool, ...], ...],
    **params: Param,
) -> tuple[list[Value], list[int]]:
    led = [
        x if axis is None else moveaxis(x, axis, 0) for x, axis in zip(operands, axes, strict=True)
    ]
    results = kernel_call_primitive.bind(
        *led,
        batch=(current_frame().size, *batch),
        batched=tuple((axis is not None, *held) for axis, held in zip(axes, batched, strict=True)),
        **params,
    )
    return results, [0] * len(results)


def _lower(
    context: LoweringContext,
    *values: ir.Value,
    kernel: KernelFunction,
    result_avals: tuple[ShapedArray, ...],
    grid: tuple[int, ...],
    batch: tuple[int, ...],
    batched: tuple[tuple[bool, ...], ...],
    parallel: bool,
) -> list[ir.Value]:
    types = context.types_out
    if 0 in batch or 0 in grid or not types:
        return [hlo.full(0, t.shape, element_type(t.dtype)) for t in types]
    if context.platform == "cpu":
        with outside_traces():
            return compile_kernel(
                kernel.function, _symbol(kernel.name), values, context.types_in, types, grid,
                batch, batched, parallel,
            )  # fmt: skip
    if not context.allows_host_calls:
        raise HostCallNeededError(
            f"kernel_call: the kernel {kernel.name!r} is code for CPUs, and a "
            f"{context.platform} device cannot call the interpreter.",
            "Run the function on the CPU, or write this part with axir.numpy.",
            where=describe_location(ir.Location.current),
        )

    def call(*operands: HostArray) -> list[HostArray]:
        return _evaluate(
            *operands, kernel=kernel, result_avals=result_avals, grid=grid, batch=batch,
            batched=batched, parallel=parallel,
        )  # fmt: skip

    return context.host_call(call, values, types)


def _dimensions(
    operands: Sequence[ShapedArray],
    results: Sequence[ShapedArray],
    *,
    batch: tuple[int, ...],
    batched: tuple[tuple[bool, ...], ...],
    **params: Param,
) -> Dimensions:
    """Returns factors of the batch: what a kernel does with the rest only the kernel knows."""
    factors = Factors()
    made = tuple(map(factors.new, batch))
    own = [[each for each, has in zip(made, held, strict=True) if has] for held in batched]

    def local_params(_: Shapes, parts: Shapes) -> Params:
        return {"batch": parts[0][: len(batch)]} if parts else {}

    def filled(known: Sequence[Dimension], ndim: int) -> tuple[Dimension, ...]:
        return (*known, *(WHOLE,) * (ndim - len(known)))

    return Dimensions(
        tuple(filled(known, t.ndim) for known, t in zip(own, operands, strict=True)),
        tuple(filled(made, t.ndim) for t in results),
        factors,
        local_params=local_params,
    )


def _symbol(name: str) -> str:
    return re.sub(r"\W", "_", f"kernel_{name}", flags=re.ASCII)


def _no_samples() -> list[Sample]:
    # A parameter that is a Python function has no text, which all tests of samples presume.
    return []


_NO_DERIVATIVE = (
    "a kernel writes into memory, and axir does not differentiate through that. Wrap the function "
    "that calls it in axir.custom_jvp or axir.custom_vjp and define the derivative there, perhaps "
    "by another kernel, or take the argument out with axir.lax.stop_gradient"
)

kernel_call_primitive = declare(
    "kernel_call",
    parameters={
        "kernel": KernelFunction,
        "result_avals": tuple[ShapedArray, ...],
        "grid": tuple[int, ...],
        "batch": tuple[int, ...],
        "batched": tuple[tuple[bool, ...], ...],
        "parallel": bool,
    },
    multiple_results=True,
    is_memoized=False,
    infer=_infer,
    evaluate=_evaluate,
    batch=_batch,
    lower=_lower,
    dimensions=_dimensions,
    samples=_no_samples,
    unsupported={"jvp": _NO_DERIVATIVE, "transpose": "a kernel is linear in nothing"},
)
