"""`custom_linear_solve`: the solution of a linear system, differentiated as such.

For A x = b the tangent is A dx = db - dA x, another solve with the same A; the cotangent of b is
the solution of the transposed system. How systems are solved is the user's function, and is never
differentiated. A is given by the function that multiplies by it (implicit differentiation; see
Blondel et al., "Efficient and Modular Implicit Differentiation", 2022).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...derived import derive
from ...errors import ParameterError, UnsupportedRuleError
from ...function import Function
from ...primitive import Sample
from ...single_flight import made_once
from ...symbolic import Zero, is_undefined_primal
from ...trace import trace_function
from ...types import ShapedArray
from ..family import add_tangents, instantiate
from ..table import declare
from .bodies import batched_body, check_call, evaluate_body, is_moving, trace_of_tangents


class Functions(NamedTuple):
    """The functions of a linear solve, each taking values it closes over after its vector.

    Attributes:
        matvec: Multiplies by A.
        vecmat: Multiplies by the transpose of A; None if nobody needs it.
        solve: From b to x, and then further results.
        transpose_solve: From b to the solution of the transposed system; None if there is none.
    """

    matvec: Function
    vecmat: Function | None
    solve: Function
    transpose_solve: Function | None


_FIELDS = Functions._fields


class _Call:
    """The operands of an op, sorted: what each function closes over, and b."""

    def __init__(self, operands: Sequence[Any], const_lengths: tuple[int, ...], jaxprs: Functions):
        self.jaxprs = jaxprs
        self.lengths = const_lengths
        self.consts: dict[str, list[Any]] = {}
        rest = list(operands)
        for field, length in zip(_FIELDS, const_lengths, strict=True):
            self.consts[field], rest = rest[:length], rest[length:]
        self.b = rest

    def apply(self, field: str, *vectors: Any) -> list[Any]:
        """Applies one of the functions to values."""
        function = getattr(self.jaxprs, field)
        return function.interpret([*vectors, *self.consts[field]])


def _functions(jaxprs: Any) -> Functions:
    return Functions(*jaxprs)


def _infer(
    *types: ShapedArray, const_lengths: tuple[int, ...], jaxprs: tuple[Any, ...]
) -> list[ShapedArray]:
    if len(const_lengths) != len(_FIELDS) or len(jaxprs) != len(_FIELDS):
        raise ParameterError(
            f"custom_linear_solve takes {len(_FIELDS)} functions: {', '.join(_FIELDS)}."
        )
    call = _Call(types, const_lengths, _functions(jaxprs))
    for field, function in zip(_FIELDS, call.jaxprs, strict=True):
        if function is not None:
            check_call(f"custom_linear_solve: {field}", function, [*call.b, *call.consts[field]])
    return call.jaxprs.solve.output_types


def _evaluate(
    *operands: np.ndarray, const_lengths: tuple[int, ...], jaxprs: tuple[Any, ...]
) -> list[np.ndarray]:
    call = _Call(operands, const_lengths, _functions(jaxprs))
    return evaluate_body(call.jaxprs.solve, [*call.b, *call.consts["solve"]])


def _implement(
    *operands: Any, const_lengths: tuple[int, ...], jaxprs: tuple[Any, ...]
) -> list[Any]:
    call = _Call(operands, const_lengths, _functions(jaxprs))
    return call.apply("solve", *call.b)


def _differentiate(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    is_split: bool,
    *,
    const_lengths: tuple[int, ...],
    jaxprs: tuple[Any, ...],
) -> tuple[list[Any], list[Any]]:
    params = {"const_lengths": const_lengths, "jaxprs": jaxprs}
    outs = custom_linear_solve_primitive.bind(*primals, **params)
    primal = _Call(primals, const_lengths, _functions(jaxprs))
    moving = _Call(tangents, const_lengths, primal.jaxprs)
    count = len(primal.b)
    moved = _moved_matrix(primal, moving, outs[:count], is_split)
    right = [add_tangents(db, _negative(dx)) for db, dx in zip(moving.b, moved, strict=True)]
    if not any(map(is_moving, right)):
        return outs, _zeros(outs)
    fixed = primals[: len(primals) - count]
    solved = custom_linear_solve_primitive.bind(*fixed, *map(instantiate, right), **params)
    return outs, [*solved[:count], *_zeros(outs[count:])]


def _zeros(outs: Sequence[Any]) -> list[Zero]:
    return [Zero(x.type.to_tangent_aval()) for x in outs]


def _negative(tangent: Any) -> Any:
    from ..elementwise import neg

    return neg(tangent) if is_moving(tangent) else tangent


def _moved_matrix(
    primal: _Call, moving: _Call, x: Sequence[Any], is_split: bool
) -> list[Any]:
    """Returns dA x: the tangent of the product for moving constants and a fixed vector."""
    tangents = [*_zeros(x), *moving.consts["matvec"]]
    active = tuple(map(is_moving, tangents))
    matvec = primal.jaxprs.matvec
    zeros = _zeros(x)
    if not any(active):
        return zeros
    values = [*x, *primal.consts["matvec"]]
    chosen = [t for t in tangents if is_moving(t)]
    if is_split and trace_of_tangents(chosen) is not None:
        split = derive(matvec, "linearize", active)
        results = split.known.interpret([*values, *split.known.captured])
        residuals = split.residual_values(values, results[len(zeros) :])
        products = split.linear.interpret([*chosen, *residuals])
        flags = split.active_outputs
    else:
        derived = derive(matvec, "jvp", active)
        products = derived.function.evaluate(*values, *chosen)[len(zeros) :]
        flags = derived.active_outputs
    remaining = iter(products)
    return [next(remaining) if f else z for f, z in zip(flags, zeros, strict=True)]


def _value_and_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], **params: Any
) -> tuple[list[Any], list[Any]]:
    return _differentiate(primals, tangents, False, **params)


def _linearize(
    primals: Sequence[Any], tangents: Sequence[Any], **params: Any
) -> tuple[list[Any], list[Any]]:
    return _differentiate(primals, tangents, True, **params)


def _transpose(
    cotangents: Sequence[Any],
    *operands: Any,
    const_lengths: tuple[int, ...],
    jaxprs: tuple[Any, ...],
) -> list[Any]:
    call = _Call(operands, const_lengths, _functions(jaxprs))
    if call.jaxprs.transpose_solve is None or call.jaxprs.vecmat is None:
        raise UnsupportedRuleError(
            "custom_linear_solve: reverse-mode differentiation needs the solution of the "
            "transposed system, but transpose_solve was not given.",
            "Pass transpose_solve=..., or symmetric=True if the matrix is symmetric.",
        )
    fixed = operands[: len(operands) - len(call.b)]
    if any(map(is_undefined_primal, fixed)):
        raise UnsupportedRuleError("custom_linear_solve is linear in the right-hand side only.")
    vecmat, transpose_solve = call.jaxprs.vecmat, call.jaxprs.transpose_solve
    turned = Functions(
        vecmat,
        call.jaxprs.matvec,
        _without_further(transpose_solve, len(call.b)),
        call.jaxprs.solve,
    )
    lengths = tuple(const_lengths[i] for i in (1, 0, 3, 2))
    consts = [x for field in _swapped() for x in call.consts[field]]
    right = map(instantiate, cotangents[: len(call.b)])
    results = custom_linear_solve_primitive.bind(
        *consts, *right, const_lengths=lengths, jaxprs=tuple(turned)
    )
    return [
        *(None for _ in fixed),
        *(ct if is_undefined_primal(b) else None for b, ct in zip(call.b, results, strict=False)),
    ]


def _swapped() -> tuple[str, ...]:
    return ("vecmat", "matvec", "transpose_solve", "solve")


def _without_further(function: Function, count: int) -> Function:
    """Returns a solver without its further results."""
    if len(function.outputs) == count:
        return function

    def without_further() -> Function:
        types = [v.type for v in (*function.inputs, *function.captures)]
        return trace_function(
            lambda *values: function.interpret(values)[:count], types, name=function.name
        )

    return made_once(function.derived, ("first outputs", count), without_further)


def _batch(
    operands: Sequence[Any],
    axes: Sequence[int | None],
    *,
    const_lengths: tuple[int, ...],
    jaxprs: tuple[Any, ...],
) -> tuple[list[Any], list[int | None]]:
    from ...axes import current_frame
    from ..shape import broadcast_in_dim, moveaxis

    size = current_frame().size
    values = _Call(operands, const_lengths, _functions(jaxprs))
    found = _Call(axes, const_lengths, values.jaxprs)

    def stacked(x: Any, axis: int | None) -> Any:
        if axis is None:
            return broadcast_in_dim(x, (size, *x.shape), tuple(range(1, x.ndim + 1)))
        return moveaxis(x, axis, 0)

    functions, lengths, consts = [], [], []
    for field, function in zip(_FIELDS, values.jaxprs, strict=True):
        given = values.consts[field]
        if function is not None:
            in_axes = [*(0 for _ in values.b), *found.consts[field]]
            function = batched_body(function, in_axes, (0,) * len(function.outputs)).function
            given = [*given, *function.captured]
        functions.append(function)
        consts += given
        lengths.append(len(given))
    right = [stacked(x, axis) for x, axis in zip(values.b, found.b, strict=True)]
    results = custom_linear_solve_primitive.bind(
        *consts, *right, const_lengths=tuple(lengths), jaxprs=tuple(functions)
    )
    return results, [0] * len(results)


def _lower(
    context: Any, *values: Any, const_lengths: tuple[int, ...], jaxprs: tuple[Any, ...]
) -> list[Any]:
    call = _Call(values, const_lengths, _functions(jaxprs))
    return context.inline(call.jaxprs.solve, *call.b, *call.consts["solve"])


def _samples() -> list[Sample]:
    from ..elementwise import div, mul

    vector = ShapedArray((3,), np.float32)

    def multiply(x: Any, *diagonal: Any) -> list[Any]:
        return [mul(x, *(diagonal or (4.0,)))]

    def divide(b: Any, *diagonal: Any) -> list[Any]:
        return [div(b, *(diagonal or (4.0,)))]

    def divide_and_copy(b: Any, diagonal: Any) -> list[Any]:
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
        # Matrix and solver must move together, so differences in one operand mean nothing.
        Sample((*(diagonal,) * 4, b), full, is_smooth=False),
        Sample((diagonal, diagonal, b), partial, is_smooth=False),
    ]


custom_linear_solve_primitive = declare(
    "custom_linear_solve",
    takes_keys=True,
    multiple_results=True,
    is_memoized=False,
    infer=_infer,
    evaluate=_evaluate,
    value_and_jvp=_value_and_jvp,
    linearize=_linearize,
    transpose=_transpose,
    batch=_batch,
    lower=_lower,
    samples=_samples,
)
custom_linear_solve_primitive.implementation = _implement


def solve_linear(functions: Functions, b: Sequence[Any]) -> list[Any]:
    """Solves a linear system; the functions take what they captured as further arguments.

    Args:
        functions: How to multiply and solve.
        b: The right-hand side.
    """
    captured = [() if f is None else f.captured for f in functions]
    return custom_linear_solve_primitive.bind(
        *(x for values in captured for x in values),
        *b,
        const_lengths=tuple(map(len, captured)),
        jaxprs=tuple(functions),
    )
