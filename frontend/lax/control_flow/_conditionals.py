"""`cond` and `switch`: one of several functions, chosen when the program runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from axir._arguments.arguments import to_value
from axir._arguments.wrapping import boundary
from axir._transforms.carried_refs import branched
from axir._trees import tree
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import IndexLike, UserObject
from axir.dialect.core.errors import DTypeError, ParameterError, ShapeError
from axir.dialect.core.state import chosen_along
from axir.dialect.core.types import Axes, ShapedArray
from axir.dialect.ops.collectives.axis_reductions import pvary
from axir.dialect.ops.control_flow.closed_bodies import Body
from axir.dialect.ops.control_flow.conditional import bind_cond
from axir.dialect.ops.elementwise.arithmetic import clamp
from axir.dialect.ops.elementwise.comparison import ne
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.elementwise.family import as_value

from ._body_tracing import (
    Adapted,
    alike,
    check_body,
    check_branches,
    flatten_values,
    is_executed_in_python,
    trace_user_body,
)

_NOTHING: UserObject = object()
_INDEX = np.dtype(np.int32)


@boundary
def cond(
    pred: object,
    true_fun: UserObject,
    false_fun: UserObject,
    *operands: UserObject,
    operand: object = _NOTHING,
    linear: object = None,
) -> UserObject:
    """Applies `true_fun` to the operands if `pred` holds, else `false_fun`.

    Only the chosen function runs, unless `vmap` maps over the predicate: then both do, and the
    results are selected. Both must return values of the same structure and types. The form
    `cond(pred, true_operand, true_fun, false_operand, false_fun)` gives each its own operand.

    Args:
        pred: Scalar; a number counts as true unless it is zero.
        true_fun, false_fun: Functions of the operands, which are trees of arrays.
        *operands: The operands.
        operand: The only operand, by name.
        linear: Accepted for compatibility.

    Raises:
        ShapeError: if `pred` is not a scalar.
        DTypeError: if it is complex, or if the results differ in type.
        TreeError: if the results differ in structure.

    >>> from axir import lax
    >>> lax.cond(3 > 2, lambda x: x + 1, lambda x: x - 1, 10)
    Array(11, dtype=int32, weak_type=True)
    """
    if operand is not _NOTHING:
        operands = (*operands, operand)
    # Operands may be callable, too: two functions in front are the branches.
    is_old_form = callable(false_fun) and not callable(true_fun)
    if len(operands) == 2 and is_old_form and callable(operands[1]):
        return _cond_of_two_operands(pred, true_fun, false_fun, *operands)
    check_body(true_fun, "cond: true_fun")
    check_body(false_fun, "cond: false_fun")
    predicate = _predicate(pred)
    if is_executed_in_python(predicate):
        return (true_fun if bool(predicate) else false_fun)(*operands)
    index = convert_element_type(predicate, _INDEX)
    return _branch("cond", index, (false_fun, true_fun), ("false_fun", "true_fun"), operands)


def _cond_of_two_operands(
    pred: object,
    true_operand: object,
    true_fun: UserObject,
    false_operand: object,
    false_fun: UserObject,
) -> UserObject:
    return cond(
        pred,
        Adapted(true_fun, "first of two", lambda pair: true_fun(pair[0])),
        Adapted(false_fun, "second of two", lambda pair: false_fun(pair[1])),
        (true_operand, false_operand),
    )


def _predicate(pred: object) -> UserObject:
    value = to_value(pred, lambda: "cond: pred")
    if value.shape:
        raise ShapeError(
            f"cond: pred must be a scalar, but is of type {value.type}.",
            "Reduce it with .all() or .any(), or choose by element with jnp.where.",
        )
    if value.dtype == dtypes.bool_:
        return value
    if dtypes.is_complex(value.dtype):
        raise DTypeError(
            f"cond: pred must be a bool or a real number, but is of type {value.type}.",
            "Compare it with something.",
        )
    return ne(value, 0)


@boundary
def switch(
    index: IndexLike,
    branches: Sequence[Callable[..., object]],
    *operands: object,
    operand: object = _NOTHING,
) -> UserObject:
    """Applies the function that `index` chooses to the operands.

    Args:
        index: Integer scalar; clamped to the functions that there are.
        branches: Functions of the operands that return values of the same structure and types.
        *operands: The operands.
        operand: The only operand, by name.

    Raises:
        ParameterError: if there are no branches.
        ShapeError, DTypeError: if `index` is not an integer scalar.

    >>> from axir import lax
    >>> lax.switch(1, [lambda x: x, lambda x: x * 2, lambda x: x * 3], 5)
    Array(10, dtype=int32, weak_type=True)
    """
    if operand is not _NOTHING:
        operands = (*operands, operand)
    branches = tuple(branches)
    if not branches:
        raise ParameterError("switch: branches is empty.", "Pass at least one function.")
    for number, branch in enumerate(branches):
        check_body(branch, f"switch: branches[{number}]")
    value = to_value(index, lambda: "switch: index")
    if value.shape:
        raise ShapeError(
            f"switch: index must be a scalar, but is of type {value.type}.",
            "Map over it with vmap.",
        )
    if not dtypes.is_integer(value.dtype):
        raise DTypeError(
            f"switch: index must be an integer, but is of type {value.type}.",
            "Convert it with x.astype(int); for a bool use cond.",
        )
    if len(branches) == 1:
        return branches[0](*operands)
    if is_executed_in_python(value):
        return branches[min(max(int(value), 0), len(branches) - 1)](*operands)
    chosen = clamp(np.int32(0), convert_element_type(value, _INDEX), np.int32(len(branches) - 1))
    names = [f"branches[{n}]" for n in range(len(branches))]
    return _branch("switch", chosen, branches, names, operands)


def _branch(
    what: str,
    index: IndexLike,
    branches: Sequence[Callable[..., object]],
    names: Sequence[str],
    operands: tuple[object, ...],
) -> UserObject:
    def run(branches: Sequence[Callable[..., object]], operands: tuple[object, ...]) -> UserObject:
        return _chosen(what, index, branches, names, operands)

    return branched(run, branches, operands)


def _chosen(
    what: str,
    index: IndexLike,
    branches: Sequence[Callable[..., object]],
    names: Sequence[str],
    operands: tuple[object, ...],
) -> UserObject:
    values, _ = flatten_values(operands, what)
    in_tree = tree.structure((operands, {}))
    choice = as_value(index).type.varying
    values = [pvary(x, choice) for x in values]
    types = [x.type for x in values]
    with chosen_along(choice):
        traced = _traced_branches(what, branches, names, in_tree, types, choice)
    results = bind_cond(index, [body for body, _ in traced], values)
    return traced[0][1].unflatten(results)


def _traced_branches(
    what: str,
    branches: Sequence[Callable[..., object]],
    names: Sequence[str],
    in_tree: tree.TreeDef,
    types: Sequence[ShapedArray],
    choice: Axes,
) -> list[tuple[Body, tree.TreeDef]]:
    traced = [trace_user_body(branch, in_tree, types, is_branch=True) for branch in branches]
    order = range(len(traced)) if what == "switch" else (1, 0)
    outputs = [_result_types(body) for body, _ in traced]
    check_branches(
        what,
        [names[n] for n in order],
        [traced[n][1] for n in order],
        [outputs[n] for n in order],
    )
    varied = alike(branches, outputs, choice)
    if varied is None:
        return traced
    return [trace_user_body(branch, in_tree, types, is_branch=True) for branch in varied]


def _result_types(body: UserObject) -> UserObject:
    return body.function.output_types
