"""`custom_linear_solve`: the solution of a linear system, differentiated as such.

For A x = b the tangent is A dx = db - dA x, another solve with the same A; the cotangent of b is
the solution of the transposed system. The user's function solves systems, and is never
differentiated. A is given by the function that multiplies by it (implicit differentiation; see
Blondel et al., "Efficient and Modular Implicit Differentiation", 2022).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar, cast

import numpy as np

from axir.dialect.core.annotations import Param
from axir.dialect.core.errors import ParameterError, UnsupportedRuleError
from axir.dialect.core.symbolic_zeros import Zero, chosen, moving, spread, unknown
from axir.dialect.core.types import Axes as VaryingAxes
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.calls.jit_call import check_call, declare_call
from axir.dialect.ops.elementwise.arithmetic import div, mul, neg
from axir.dialect.ops.elementwise.family import add_tangents, instantiate
from axir.dialect.ops.shape.rearranging import move_batch_axis
from axir.dialect.program.derived_functions import derive
from axir.dialect.program.effects import current_frame
from axir.dialect.program.function import Function
from axir.dialect.program.function_tracing import trace_function
from axir.dialect.program.meshes.varying_axes import joined
from axir.dialect.program.operation import Sample
from axir.dialect.program.parameters import Ints
from axir.dialect.program.rules import (
    Cotangent,
    Operand,
    OperandTangents,
    Tangent,
    Value,
)

from .bodies import Axes, batched_in_front, trace_of_tangents


class Functions(NamedTuple):
    """The functions of a linear solve; each takes its vector, then its captured values.

    Attributes:
        matvec: Multiplies by A.
        vecmat: Multiplies by the transpose of A; None if unused.
        solve: From b to x, and then further results.
        transpose_solve: From b to the solution of the transposed system; None if absent.
    """

    matvec: Function
    vecmat: Function | None
    solve: Function
    transpose_solve: Function | None


_FIELDS = Functions._fields


_Part = TypeVar("_Part")


class _Call(Generic[_Part]):
    """The operands of an op in parts: the captured values of each function, and b."""

    def __init__(
        self,
        operands: Sequence[_Part],
        const_lengths: tuple[int, ...],
        jaxprs: tuple[Function | None, ...],
    ):
        # `_infer` has checked which of them exist.
        self.jaxprs = Functions(*cast("tuple[Function, ...]", jaxprs))
        self.consts: dict[str, Sequence[_Part]] = {}
        for field, length in zip(_FIELDS, const_lengths, strict=True):
            self.consts[field], operands = operands[:length], operands[length:]
        self.b = operands

    def arguments(self, field: str, vectors: Sequence[_Part]) -> list[_Part]:
        """Returns the arguments of one of the functions, given vectors."""
        return [*vectors, *self.consts[field]]


def _called(*operands: Value, **params: Param) -> tuple[Function, Sequence[Value]]:
    call = _Call(operands, **params)
    return call.jaxprs.solve, call.arguments("solve", call.b)


def _infer(
    *types: ShapedArray, const_lengths: tuple[int, ...], jaxprs: tuple[Function | None, ...]
) -> list[ShapedArray]:
    if len(const_lengths) != len(_FIELDS) or len(jaxprs) != len(_FIELDS):
        raise ParameterError(
            f"custom_linear_solve takes {len(_FIELDS)} functions: {', '.join(_FIELDS)}."
        )
    call = _Call(types, const_lengths, jaxprs)
    for field, function in zip(_FIELDS, call.jaxprs, strict=True):
        if function is not None:
            check_call(f"custom_linear_solve: {field}", function, call.arguments(field, call.b))
    return call.jaxprs.solve.output_types


def _varying(
    given: Sequence[VaryingAxes], *, jaxprs: tuple[Function | None, ...], **params: object
) -> list[VaryingAxes]:
    solve = cast("Function", jaxprs[_FIELDS.index("solve")])
    return [joined(given)] * len(solve.outputs)


def _differentiate(
    primals: Sequence[Value], tangents: OperandTangents, *, is_split: bool, **params: Param
) -> tuple[Sequence[Value], Sequence[Tangent]]:
    outs = custom_linear_solve_primitive.bind(*primals, **params)
    primal: _Call[Value] = _Call(primals, **params)
    change: _Call[Tangent] = _Call(tangents, **params)
    count = len(primal.b)
    moved = _moved_matrix(primal, change, outs[:count], is_split)
    right: list[Tangent] = [
        add_tangents(db, dx if type(dx) is Zero else neg(dx))
        for db, dx in zip(change.b, moved, strict=True)
    ]
    zeros = list(map(Zero.from_primal_value, outs))
    if not any(moving(right)):
        return outs, zeros
    fixed = primals[: len(primals) - count]
    solved = custom_linear_solve_primitive.bind(*fixed, *map(instantiate, right), **params)
    return outs, [*solved[:count], *zeros[count:]]


def _moved_matrix(
    primal: _Call[Value], change: _Call[Tangent], x: Sequence[Value], is_split: bool
) -> Sequence[Tangent]:
    """Returns dA x: the tangent of the product for moving constants and a fixed vector."""
    zeros: list[Tangent] = [Zero.from_primal_value(v) for v in x]
    tangents = change.arguments("matvec", zeros)
    active = moving(tangents)
    if not any(active):
        return zeros
    matvec, values = primal.jaxprs.matvec, primal.arguments("matvec", x)
    moved = chosen(tangents, active)
    derived: Any
    if is_split and trace_of_tangents(moved) is not None:
        derived = derive(matvec, "linearize", active)
        results = derived.known.evaluate(*values)
        residuals = derived.residual_values(values, results[len(zeros) :])
        products = derived.linear.interpret([*moved, *residuals])
    else:
        derived = derive(matvec, "jvp", active)
        products = derived.function.evaluate(*values, *moved)[len(zeros) :]
    return spread(products, derived.active_outputs, matvec.output_types)


def _transpose(
    cotangents: Sequence[Cotangent],
    *operands: Param,
    const_lengths: tuple[int, ...],
    jaxprs: tuple[Function | None, ...],
) -> Sequence[Cotangent | None]:
    call = _Call(operands, const_lengths, jaxprs)
    matvec, vecmat, solve, transpose_solve = call.jaxprs
    if transpose_solve is None or vecmat is None:
        raise UnsupportedRuleError(
            "custom_linear_solve: reverse-mode differentiation needs the solution of the "
            "transposed system, but transpose_solve was not given.",
            "Pass transpose_solve=..., or symmetric=True if the matrix is symmetric.",
        )
    count = len(call.b)
    fixed = operands[: len(operands) - count]
    if any(unknown(fixed)):
        raise UnsupportedRuleError("custom_linear_solve is linear in the right-hand side only.")
    swapped = ("vecmat", "matvec", "transpose_solve", "solve")
    results = custom_linear_solve_primitive.bind(
        *(x for field in swapped for x in call.consts[field]),
        *map(instantiate, cotangents[:count]),
        const_lengths=tuple(len(call.consts[field]) for field in swapped),
        jaxprs=(vecmat, matvec, transpose_solve, solve),
    )
    marks = unknown(call.b)
    pulled = (ct if mark else None for ct, mark in zip(results, marks, strict=False))
    return [*(None for _ in fixed), *pulled]


def _batch(
    operands: Sequence[Value],
    axes: Axes,
    *,
    const_lengths: tuple[int, ...],
    jaxprs: tuple[Function | None, ...],
) -> tuple[list[Value], list[int | None]]:
    size = current_frame().size
    values = _Call(operands, const_lengths, jaxprs)
    found = _Call(axes, const_lengths, jaxprs)
    functions, consts = [], []
    for field, function in zip(_FIELDS, values.jaxprs, strict=True):
        given = list(values.consts[field])
        if function is not None:
            function = batched_in_front(function, found.arguments(field, [0] * len(values.b)))
            given += function.captured
        functions.append(function)
        consts.append(given)
    results = custom_linear_solve_primitive.bind(
        *(x for given in consts for x in given),
        *(move_batch_axis(x, axis, size, 0) for x, axis in zip(values.b, found.b, strict=True)),
        const_lengths=tuple(map(len, consts)),
        jaxprs=tuple(functions),
    )
    return results, [0] * len(results)


def _samples() -> list[Sample]:
    vector = ShapedArray((3,), np.float32)

    def multiply(x: Operand, *diagonal: Operand) -> list[Value]:
        return [mul(x, *(diagonal or (4.0,)))]

    def divide(b: Operand, *diagonal: Operand) -> list[Value]:
        return [div(b, *(diagonal or (4.0,)))]

    def divide_and_copy(b: Value, diagonal: Value) -> list[Value]:
        return [div(b, diagonal), b]

    matvec, solve = (trace_function(f, [vector, vector]) for f in (multiply, divide))
    further = trace_function(divide_and_copy, [vector, vector])
    fixed, inverse = (trace_function(f, [vector]) for f in (multiply, divide))
    diagonal, b = np.array([2, 4, 5], np.float32), np.array([1, 2, 3], np.float32)
    full = {"const_lengths": (1, 1, 1, 1), "jaxprs": (matvec, matvec, solve, solve)}
    partial = {"const_lengths": (1, 0, 1, 0), "jaxprs": (matvec, None, further, None)}
    constant = {"const_lengths": (0, 0, 0, 0), "jaxprs": (fixed, fixed, inverse, inverse)}
    return [
        Sample((b,), constant),
        # Matrix and solver must change together, so differences in one operand mean nothing.
        Sample((*(diagonal,) * 4, b), full, is_smooth=False),
        Sample((diagonal, diagonal, b), partial, is_smooth=False),
    ]


custom_linear_solve_primitive = declare_call(
    "custom_linear_solve",
    _called,
    parameters={"const_lengths": Ints, "jaxprs": tuple[Function | None, ...]},
    infer=_infer,
    value_and_jvp=partial(_differentiate, is_split=False),
    linearize=partial(_differentiate, is_split=True),
    transpose=_transpose,
    batch=_batch,
    varying=_varying,
    samples=_samples,
)


def solve_linear(functions: Functions, b: Sequence[Value]) -> list[Value]:
    """Solves a linear system; the functions take their captured values as further arguments.

    Args:
        functions: The functions that multiply and solve.
        b: The right-hand side.
    """
    captured = [() if f is None else f.captured for f in functions]
    return custom_linear_solve_primitive.bind(
        *(x for values in captured for x in values),
        *b,
        const_lengths=tuple(map(len, captured)),
        jaxprs=tuple(functions),
    )
