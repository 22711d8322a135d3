"""The named axes along which the values of a function differ, given the axes of its inputs.

The rule `varying` of each op gives the axes of its results; without a rule, results differ along
the axes of all operands. The answer is safe: along an axis that it does not name, all positions
hold the same. Types carry it while a function of parts is traced (`ShapedArray.varying`).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from axir.dialect.core.annotations import Params
from axir.dialect.core.memo import derived
from axir.dialect.core.types import NOWHERE, Axes, in_order
from axir.dialect.program.equation import Equation, Literal, Var
from axir.dialect.program.function import Function
from axir.dialect.program.operation import Operation


@derived
def varying_axes(function: Function, given: tuple[Axes, ...]) -> list[Axes]:
    """Returns the axes along which each output of a function differs.

    Args:
        function: The function.
        given: The axes along which its arguments (inputs, then captures) differ.

    >>> from axir.dialect.core.types import ShapedArray
    >>> from axir.dialect.ops.collectives.axis_reductions import psum_primitive
    >>> from axir.dialect.program.function_tracing import trace_function
    >>> from axir.dialect.program.effects import named_axis
    >>> def body(x, y):
    ...     return [x, y, psum_primitive.bind(x, axes=("i",), axis_index_groups=None)]
    >>> with named_axis("i", 2):
    ...     function = trace_function(body, [ShapedArray((), "float32")] * 2)
    >>> varying_axes(function, (frozenset("i"), frozenset()))
    [frozenset({'i'}), frozenset(), frozenset()]
    """
    found: dict[Var, Axes] = dict(zip((*function.inputs, *function.captures), given, strict=True))

    def of(variable: Var) -> Axes:
        return NOWHERE if type(variable) is Literal else found[variable]

    for equation in function.equations:
        results = _results(equation, [of(v) for v in equation.operands])
        found.update(zip(equation.results, results, strict=True))
    return [*map(of, function.outputs)]


def _results(equation: Equation, given: Sequence[Axes]) -> Sequence[Axes]:
    found = varying_results(equation.primitive, equation.params, given)
    return [joined(given)] * len(equation.results) if found is None else found


def varying_results(
    primitive: Operation, params: Params, given: Sequence[Axes]
) -> Sequence[Axes] | None:
    """Returns the axes along which the results of an op differ, given the operands' axes.

    Returns None if every result differs along the axes of all operands: then all operands take part
    in the same way.
    """
    if primitive.varying is not None:
        return primitive.varying(given, **params)
    if primitive.is_call or primitive.body is not None:
        body = None if primitive.body is None else primitive.body(**params)
        called = params["jaxpr"] if body is None else body
        assert isinstance(called, Function)
        return varying_axes(called, tuple(given))
    return None


def missing_axes(given: Sequence[Axes]) -> list[tuple[Hashable, ...]] | None:
    """Returns for each of several values the axes along which only others differ.

    >>> missing_axes([frozenset("ij"), frozenset("j")])
    [(), ('i',)]
    >>> missing_axes([frozenset("i"), frozenset("i")])
    """
    everywhere = joined(given)
    if all(axes == everywhere for axes in given):
        return None
    return [in_order(everywhere - axes) for axes in given]


def joined(axes: Sequence[Axes]) -> Axes:
    """Returns the axes along which a combination of several values differs."""
    return NOWHERE.union(*axes)


# Rules -------------------------------------------------------------------------------------------


def varying_loop(
    body: Function, consts: Sequence[Axes], carry: Sequence[Axes], others: Sequence[Axes] = ()
) -> tuple[list[Axes], list[Axes]]:
    """Returns the axes along which the carry of a loop differs, and its other results.

    Args:
        body: From constants, carry and others to carry and further results.
        consts: The axes along which the constants differ.
        carry: The axes along which the initial carry differs.
        others: The axes along which the other arguments of each pass differ.
    """
    carried = list(carry)
    while True:
        after = varying_axes(body, (*consts, *carried, *others))
        more = [a | b for a, b in zip(carried, after, strict=False)]
        if more == carried:
            return carried, after[len(carried) :]
        carried = more  # ends, because the number of axes is finite
