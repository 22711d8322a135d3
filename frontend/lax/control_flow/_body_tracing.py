"""Users' body functions: traced once for each combination of types, and checked."""

from __future__ import annotations

import functools
import operator
import weakref
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from axir._arguments.arguments import FlatFunction, flatten_arguments, to_values
from axir._transforms.signatures import cleared_with_caches
from axir._trees import tree
from axir._trees.registration import compared
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import UserFunction, UserObject
from axir.dialect.core.config import config
from axir.dialect.core.errors import DTypeError, NonArrayArgumentError, TreeError
from axir.dialect.core.single_flight import made_once
from axir.dialect.core.state import axes_in_scope
from axir.dialect.core.types import NOWHERE, Axes, ShapedArray, in_order
from axir.dialect.ops.calls.jit_call import same_types
from axir.dialect.ops.collectives.axis_reductions import pvary
from axir.dialect.ops.control_flow.closed_bodies import Body, trace_body
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.program.function_tracing import function_name
from axir.dialect.program.tracer import Tracer

# Combinations of types remembered for one function.
_LIMIT = 256
_traced: weakref.WeakKeyDictionary[UserObject, dict[UserObject, tuple[Body, tree.TreeDef]]] = (
    cleared_with_caches(weakref.WeakKeyDictionary())
)


@dataclass(frozen=True)
class Adapted:
    """A function made around a user's function, and cached under the user's function.

    Attributes:
        owner: The user's function.
        role: The kind of function: functions of one owner and role do the same.
        function: The function itself.
    """

    owner: UserFunction
    role: Hashable
    function: UserFunction

    @property
    def __name__(self) -> str:
        return function_name(self.owner)

    def __call__(self, *args: object) -> UserObject:
        """Applies the function."""
        return self.function(*args)


def check_body(function: object, what: str) -> None:
    """Raises `TypeError` if the body is not callable."""
    if not callable(function):
        raise NonArrayArgumentError(
            f"{what} must be a function, not {function!r} of type {type(function).__name__!r}.",
            "Wrap values in lambda: value.",
        )


def trace_user_body(
    function: Callable[..., object],
    in_tree: tree.TreeDef,
    types: Sequence[ShapedArray],
    is_branch: bool = False,
) -> tuple[Body, tree.TreeDef]:
    """Traces a user's function of arguments of a structure; caches results without tracers.

    Values that a branch computes from captured values stay in the branch. Values that a loop body
    computes only from captured values are computed once, in front of the loop.

    Returns:
        The body, and the structure of the function's result.
    """
    owner, role = (function.owner, function.role) if type(function) is Adapted else (function, None)
    key = (role, in_tree, tuple(types), config.cache_key, axes_in_scope(), is_branch)
    try:
        table = _traced.setdefault(owner, {})
    except TypeError:  # neither hashable nor weakly referable
        table = {}

    def trace() -> tuple[Body, tree.TreeDef]:
        flat = FlatFunction(function, in_tree)
        body = trace_body(flat, types, flat.name, is_branch=is_branch)
        if len(table) >= _LIMIT:
            table.clear()
        return body, flat.out_tree

    return made_once(table, key, trace, _is_closed)


def _is_closed(traced: tuple[Body, tree.TreeDef]) -> bool:
    return not any(type(x) is Tracer for x in traced[0].captured)


def flatten_values(value: object, name: str) -> tuple[list[UserObject], tree.TreeDef]:
    """Returns the leaves of an argument as arrays, and its structure."""
    leaves, structure = flatten_arguments(value)
    return to_values(leaves, value, name), structure


def is_executed_in_python(*values: object) -> bool:
    """Tells whether `disable_jit` asks for Python control flow, and the values are known."""
    return config.jax_disable_jit and all(map(is_known, values))


def is_known(value: object) -> bool:
    """Tells whether Python can see the value, which may be a tracer again one level out."""
    while type(value) is Tracer:
        if value.owner.environment is None or not value.owner.is_open:
            return False
        value = value.owner.value_of(value)
    return True


def promoted_carry(
    init: Sequence[UserObject], outputs: Sequence[ShapedArray], ends: Axes = NOWHERE
) -> list[UserObject] | None:
    """Gives initial values the dtype that the body makes of weak ones, and the axes it adds.

    Args:
        init: The initial values.
        outputs: Types of the body's results for them.
        ends: Along which axes of a mesh devices may go through the loop differently often.

    Returns:
        The new initial values; None if they stay unchanged.
    """
    if len(init) != len(outputs):
        return None
    promoted = list(init)
    for place, (value, after) in enumerate(zip(init, outputs, strict=True)):
        if value.weak_type and value.dtype != after.dtype and value.shape == after.shape:
            common, _ = dtypes.promote([(value.dtype, True), (after.dtype, after.weak_type)])
            promoted[place] = convert_element_type(value, common)
        promoted[place] = pvary(promoted[place], after.varying | ends)
    is_same = all(a is b for a, b in zip(promoted, init, strict=True))
    return None if is_same else promoted


def check_carry(
    what: str,
    carry_name: str,
    before: tuple[tree.TreeDef, Sequence[ShapedArray]],
    after: tuple[tree.TreeDef, Sequence[ShapedArray]],
) -> None:
    """Raises an error if a body returns another carry than it takes.

    Args:
        what: The function and its argument, named in the error.
        carry_name: What to call the carry there.
        before: Structure and types of the carry that the body takes.
        after: The same for the body's results.
    """
    if not compared(what, lambda: before[0] == after[0]):
        raise TreeError(
            f"{what}: the carry that it returns has another structure than {carry_name}: "
            f"{after[0]}, not {before[0]}.",
            "Return the carry with the nesting of containers in which it came.",
        )
    differing = list(_differences(carry_name, before[0], before[1], after[1]))
    if differing:
        raise DTypeError(
            f"{what}: the carry that it returns differs in type from {carry_name}:\n"
            + "\n".join(f"    {path}: {a} comes in, {b} goes out" for path, a, b in differing),
            "Make both types equal: cast with x.astype(dtype), or broadcast the initial value.",
        )


def _differences(
    name: str, structure: tree.TreeDef, before: Sequence[ShapedArray], after: Sequence[ShapedArray]
) -> UserObject:
    if same_types(before, after):
        return
    paths = tree.paths(structure.unflatten(range(structure.num_leaves)))
    for path, first, second in zip(paths, before, after, strict=True):
        if (first.shape, first.dtype) != (second.shape, second.dtype):
            yield f"{name}{path}", first, second


def alike(
    branches: Sequence[Callable[..., object]],
    outputs: Sequence[Sequence[ShapedArray]],
    chosen: Axes,
) -> list[UserFunction] | None:
    """Makes results of branches vary along the axes along which any of them does.

    Args:
        branches: Functions of equal types of results.
        outputs: These types.
        chosen: Along which axes of a mesh devices may choose different branches.

    Returns:
        Other functions; None if the types agree as they are.
    """
    wanted = [chosen.union(*(t.varying for t in place)) for place in zip(*outputs, strict=True)]
    if all(t.varying == axes for types in outputs for t, axes in zip(types, wanted, strict=True)):
        return None
    role = ("varying", *map(in_order, wanted))

    def adapted(branch: Callable[..., object]) -> Callable[..., object]:
        def varied(*args: object) -> UserObject:
            leaves, structure = flatten_values(branch(*args), "varying")
            return structure.unflatten(map(pvary, leaves, wanted))

        return Adapted(branch, role, varied)

    return [*map(adapted, branches)]


def check_branches(
    what: str,
    names: Sequence[str],
    structures: Sequence[tree.TreeDef],
    types: Sequence[Sequence[ShapedArray]],
) -> None:
    """Raises an error if branches return values of different structure or types."""
    for number in range(1, len(structures)):
        if not compared(what, functools.partial(operator.eq, structures[number], structures[0])):
            raise TreeError(
                f"{what}: the branches must return values of one structure, but {names[0]} "
                f"returns {structures[0]} and {names[number]} returns {structures[number]}.",
                "Return the same nesting of containers from each.",
            )
        differing = list(_differences("result", structures[0], types[0], types[number]))
        if differing:
            raise DTypeError(
                f"{what}: the branches must return values of equal types, but differ:\n"
                + "\n".join(
                    f"    {path}: {a} from {names[0]}, {b} from {names[number]}"
                    for path, a, b in differing
                ),
                "Cast with x.astype(dtype), or broadcast, in one of them.",
            )
