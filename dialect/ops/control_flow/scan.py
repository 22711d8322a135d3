"""`scan`: carries values through a body, once for each slice of its operands.

Operands are constants, the carry, and `xs`, sliced along their first axis; results are the carry
and `ys`, stacked along a new first axis. Derivatives stand in `scan_derivatives.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

import numpy as np
from iree.compiler import ir

from axir.dialect.core.annotations import Options, Param
from axir.dialect.core.dtypes import storage
from axir.dialect.core.errors import ParameterError
from axir.dialect.core.symbolic_zeros import Marks
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.calls.jit_call import listing
from axir.dialect.ops.shape.rearranging import moveaxis
from axir.dialect.program.costs import COMPILED_PASS, SLICING, interpretation_time
from axir.dialect.program.derived_functions import derive_batched
from axir.dialect.program.function import Function
from axir.dialect.program.function_rules import LoweringContext
from axir.dialect.program.op_table import declare
from axir.dialect.program.parameters import Unprinted
from axir.dialect.program.rules import Value

from . import loop_samples
from .closed_bodies import (
    Body,
    carries_axis,
    check_arguments,
    check_results,
    closed,
    fixpoint,
    in_front,
    moved_to_front,
    split,
)
from .execution import implementation, quiet, steps_of
from .lowered_scan import LoweredScan
from .parts import partition_scan, varying_scan


def bind_scan(
    body: Body,
    consts: Sequence[Value],
    carry: Sequence[Value],
    xs: Sequence[Value],
    *,
    length: int,
    reverse: bool = False,
    unroll: int = 1,
    is_linear: bool = False,
) -> tuple[list[Value], list[Value]]:
    """Applies `scan` to a body that takes captured values first, then constants.

    Returns:
        The carry after the last pass, and the stacked `ys`.
    """
    consts = [*body.captured, *consts]
    operands = [*consts, *carry, *xs]
    params = {
        "jaxpr": body.function,
        "length": length,
        "reverse": reverse,
        "unroll": unroll,
        "num_consts": len(consts),
        "num_carry": len(carry),
        "linear": (is_linear,) * len(operands),
    }
    results = scan_primitive.bind(*operands, **params)
    return results[: len(carry)], results[len(carry) :]


def stacked(types: Sequence[ShapedArray], length: int) -> list[ShapedArray]:
    """Returns the types of stacks of values of given types."""
    return [t.update(shape=(length, *t.shape)) for t in types]


_Part = TypeVar("_Part")
_Other = TypeVar("_Other")


class Scan(Generic[_Part]):
    """The body of a loop, and its operands (or their types, axes or tangents) in parts.

    Attributes:
        body: The body.
        consts, carry, xs: The parts.
        options: Length, direction and unrolling, which derived loops share.
    """

    def __init__(
        self,
        values: Sequence[_Part],
        *,
        jaxpr: Function,
        num_consts: int,
        num_carry: int,
        linear: Marks,
        **options: Options,
    ):
        self.body = jaxpr
        self.consts, self.carry, self.xs = split(values, num_consts, num_carry)
        self.options = options

    @property
    def length(self) -> int:
        """Number of passes."""
        return self.options["length"]

    def split(self, values: Sequence[_Other]) -> list[list[_Other]]:
        """Splits a sequence with one entry per operand into parts."""
        return split(values, len(self.consts), len(self.carry))

    @property
    def result_types(self) -> list[ShapedArray]:
        """Types of the results: the carry, then the stacks."""
        carry, ys = split(self.body.output_types, len(self.carry))
        return [*carry, *stacked(ys, self.length)]


def _infer(
    *types: ShapedArray,
    jaxpr: Function,
    length: int,
    num_consts: int,
    num_carry: int,
    **params: object,
) -> list[ShapedArray]:
    if len(types) < num_consts + num_carry or length < 0:
        raise ParameterError(
            f"scan has {len(types)} operands, length={length}, num_consts={num_consts} and "
            f"num_carry={num_carry}.",
            "The operands are the constants, the carry and the arrays that are scanned.",
        )
    consts, carry, xs = split(types, num_consts, num_carry)
    if any(not t.shape or t.shape[0] != length for t in xs):
        raise ParameterError(
            f"scan: the arrays that are scanned, of types {listing(xs)}, must all have a first "
            f"axis of extent length={length}.",
        )
    slices = [t.update(shape=t.shape[1:]) for t in xs]
    check_arguments("scan: the body", jaxpr, [*consts, *carry, *slices])
    outputs = jaxpr.output_types
    check_results("scan: the body", jaxpr, [*carry, *outputs[num_carry:]])
    return [*outputs[:num_carry], *stacked(outputs[num_carry:], length)]


# Values ----------------------------------------------------------------------------------------


def _evaluate(*operands: np.ndarray, reverse: bool, **params: Param) -> list[np.ndarray]:
    loop = Scan(operands, **params)
    consts, carry, xs = loop.consts, loop.carry, loop.xs
    count, length = len(carry), loop.length
    types = loop.body.output_types[count:]
    ys = [np.empty((length, *t.shape), storage(t.dtype)) for t in types]
    steps = steps_of(loop.body)
    with quiet():
        for i in range(length - 1, -1, -1) if reverse else range(length):
            results = steps([*consts, *carry, *[x[i, ...] for x in xs]])
            carry = results[:count]
            for y, result in zip(ys, results[count:], strict=True):
                y[i] = result
    return [*carry, *ys]


def _gain(*, jaxpr: Function, length: int, **params: object) -> float:
    return length * (interpretation_time(jaxpr) + SLICING - COMPILED_PASS)


def _lower(context: LoweringContext, *values: ir.Value, **params: Param) -> list[ir.Value]:
    loop = Scan(values, **params)
    count = len(loop.carry)

    def advance(
        carry: Sequence[Value], slices: Sequence[object]
    ) -> tuple[list[Value], list[Value]]:
        results = context.inline(loop.body, *loop.consts, *carry, *slices)
        return results[:count], results[count:]

    types = [t.words for t in loop.body.output_types[count:]]
    return LoweredScan(advance, count, loop.xs, types, **loop.options).write(loop.carry)


# Batching --------------------------------------------------------------------------------------


def _batch(
    operands: Sequence[Value], axes: Sequence[int | None], **params: Param
) -> tuple[list[Value], list[int | None]]:
    loop, axes_of = Scan(operands, **params), Scan(axes, **params)
    num_carry = len(loop.carry)
    # The axis that is scanned stays first.
    pairs = zip(loop.xs, axes_of.xs, strict=True)
    xs = [moveaxis(x, 0, 1) if axis == 0 else x for x, axis in pairs]
    slice_axes = [None if axis is None else max(axis - 1, 0) for axis in axes_of.xs]

    def in_axes(carry: Marks) -> list[int | None]:
        return [*axes_of.consts, *in_front(carry), *slice_axes]

    carry = fixpoint(
        carries_axis(axes_of.carry),
        lambda carry: carries_axis(derive_batched(loop.body, in_axes(carry)).axes[:num_carry]),
    )
    found = derive_batched(loop.body, in_axes(carry)).axes[num_carry:]
    carry_axes = in_front(carry)
    batched = derive_batched(loop.body, in_axes(carry), [*carry_axes, *found]).function
    init = moved_to_front(loop.carry, axes_of.carry, carry)
    results, ys = bind_scan(closed(batched), loop.consts, init, xs, **loop.options)
    y_axes = [None if axis is None else axis + 1 for axis in found]
    return [*results, *ys], [*carry_axes, *y_axes]


scan_primitive = declare(
    "scan",
    parameters={
        "jaxpr": Function,
        "length": int,
        "num_consts": int,
        "num_carry": int,
        "linear": Unprinted[tuple[bool, ...]],
        "reverse": bool,
        "unroll": int,
    },
    takes_keys=True,
    multiple_results=True,
    is_memoized=False,
    is_staged=True,
    infer=_infer,
    evaluate=_evaluate,
    batch=_batch,
    lower=_lower,
    partition=partition_scan,
    varying=varying_scan,
    samples=loop_samples.scan_samples,
)
scan_primitive.implementation = implementation(scan_primitive, _gain)
