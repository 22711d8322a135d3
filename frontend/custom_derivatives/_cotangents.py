"""Checks of the results of backward rules, and conversion to cotangents."""

from __future__ import annotations

from collections.abc import Sequence

from axir._trees import tree
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Dtype, Tree, UserObject
from axir.dialect.core.errors import CustomRuleError, TreeError
from axir.dialect.core.symbolic_zeros import Zero
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.collectives.axis_reductions import pvary
from axir.dialect.ops.elementwise.conversion import convert_element_type

from ._calls import Call, flatten_result
from ._zeros import SymbolicZero


def cotangents_of(
    result: Tree, call: Call, types: Sequence[ShapedArray], rule: str
) -> list[UserObject]:
    """Returns the cotangents of the float and complex arguments from the results of a rule.

    Args:
        result: A tuple with an entry for each differentiable argument: a tree of its structure,
            in which None stands for zeros.
        call: The call of the function.
        types: Types of the leaves of the differentiable arguments.
        rule: Name of the rule.

    Raises:
        CustomRuleError: if structure, shape or dtype do not fit; it names the argument.
    """
    entries = _entries(result, call, rule)
    leaves: list[UserObject] = []
    for position, (entry, argument) in enumerate(zip(entries, call.differentiable, strict=True)):
        leaves += _leaves(entry, argument, call.moving[position], call, rule)
    return [
        _checked(leaf, t, call, index, rule)
        for index, (leaf, t) in enumerate(zip(leaves, types, strict=True))
        if dtypes.is_inexact(t.dtype)
    ]


def _entries(result: Tree, call: Call, rule: str) -> Sequence[UserObject]:
    # The result of a rule for a ref is ignored: refs have no gradient here.
    count = len(call.differentiable) + len(call.refs)
    if isinstance(result, (tuple, list)) and len(result) == count:
        moving = sorted([*call.moving, *call.refs])
        return [x for n, x in zip(moving, result, strict=True) if n not in call.refs]
    way_out = f"Return a tuple of {count}: a cotangent, or None for zeros, for each argument."
    if count == 1:
        way_out = "Return a tuple of one, with a comma: (cotangent,)."
    raise CustomRuleError(
        "Custom VJP bwd rule must produce an output with the same container (pytree) structure as "
        "the args tuple of the primal function, and in particular must produce a tuple of length "
        f"equal to the number of arguments to the primal function: {rule!r}, the bwd rule of "
        f"{call.name!r}, returned {tree.structure(result)} for {count} arguments.",
        way_out,
    )


def _leaves(
    entry: object, argument: object, position: int, call: Call, rule: str
) -> list[UserObject]:
    """Returns the leaves of one argument's cotangent, None where it is absent.

    A leaf may stand for a container of one leaf: a parameter's value for the parameter.
    """
    structure = tree.structure(argument)
    if entry is None:
        return [None] * structure.num_leaves
    # None is an empty container in arguments, and may stand for any part of a cotangent.
    leaves, spec = tree.flatten(_with_nones(entry))
    try:
        places = tree.flatten_like(spec, argument, "cotangent")
    except TreeError:
        places = []
    counts = [tree.structure(place).num_leaves for place in places]
    pairs = list(zip(leaves, counts, strict=False))
    if len(places) < len(leaves) or any(n != 1 and type(x) is not _Missing for x, n in pairs):
        raise CustomRuleError(
            f"{rule!r}, the bwd rule of {call.name!r}, returned a cotangent of structure "
            f"{tree.structure(entry)} for argument {position}, which has structure {structure}.",
            "Custom VJP bwd rules must return a cotangent of the same container (pytree) structure "
            "for each argument; None stands for zeros.",
        )
    return [None if type(x) is _Missing else x for x, n in pairs for _ in range(n)]


class _Missing:
    """Stands for None, which trees take for a container."""


def _is_none(x: object) -> bool:
    return x is None


def _with_nones(entry: object) -> object:
    leaves, structure = tree.flatten(entry, is_leaf=_is_none)
    return structure.unflatten([_Missing() if x is None else x for x in leaves])


def _may_round(given: Dtype, expected: Dtype) -> bool:
    """Tells whether a cotangent is rounded to its argument's dtype: rules may be more exact."""
    return given != expected and dtypes.is_float(given) and dtypes.is_float(expected)


def _checked(leaf: object, expected: ShapedArray, call: Call, index: int, rule: str) -> object:
    if leaf is None or isinstance(leaf, SymbolicZero) or type(leaf) is Zero:
        return Zero(expected)
    (value,), _ = flatten_result(leaf, f"Cotangent of {call.describe(index)} from {rule!r}")
    found = value.type
    if found.shape == expected.shape and found.dtype != expected.dtype and found.weak_type:
        promoted = dtypes.promote([(found.dtype, True), (expected.dtype, expected.weak_type)])[0]
        if promoted == expected.dtype:
            return convert_element_type(value, expected.dtype, expected.weak_type)
    if found.shape == expected.shape and _may_round(found.dtype, expected.dtype):
        return convert_element_type(value, expected.dtype, expected.weak_type)
    if (found.shape, found.dtype) != (expected.shape, expected.dtype):
        what = "shapes" if found.shape != expected.shape else "dtypes"
        way_out = (
            "Sum the cotangent over the axes along which the argument was broadcast."
            if what == "shapes"
            else f"Convert it: ct.astype({str(expected.dtype)!r})."
        )
        raise CustomRuleError(
            "Custom VJP bwd rule must produce an output with the same type as the args tuple of "
            f"the primal function, but {rule!r}, the bwd rule of {call.name!r}, produced an output "
            f"of type {found} for {call.describe(index)}, which is of type {expected}: the {what} "
            "do not match.",
            way_out,
        )
    if found.varying - expected.varying:
        raise CustomRuleError(
            "Custom VJP bwd rule must produce an output with the same type as the args tuple of "
            f"the primal function, but {rule!r}, the bwd rule of {call.name!r}, produced an output "
            f"of type {found} for {call.describe(index)}, which is of type {expected}: the manual "
            "axis types do not match.",
            "All devices have used the argument: sum what they found with axir.lax.psum.",
        )
    return pvary(value, expected.varying) if expected.varying else value
