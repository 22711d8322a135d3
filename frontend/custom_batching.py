"""Functions with custom vectorization rules: `custom_vmap`, `sequential_vmap`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from axir._arguments.arguments import FlatFunction, to_values, trace_abstract
from axir._arguments.wrapping import boundary
from axir._trees import tree
from axir.custom_derivatives._calls import flatten_result, forwarded, leaked_in_rule, positional
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import PyTree, Returning, Tree, UserFunction, UserObject
from axir.dialect.core.errors import CustomRuleError, UndefinedRuleError, UnexpectedTracerError
from axir.dialect.core.state import state, user_code
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.custom_rules.custom_vmap import call_with_vmap
from axir.dialect.ops.custom_rules.vmap_rules import UserRule
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.program.effects import current_frame
from axir.dialect.program.function_tracing import function_name
from axir.dialect.program.tracer import Tracer
from axir.lax import map as loop

__all__ = ["custom_vmap", "sequential_vmap"]


def __dir__() -> list[str]:
    return __all__


VmapRule = Returning[tuple[PyTree, PyTree]]


class custom_vmap:
    """A function with a vectorization rule given by the user.

    Under `vmap` the rule is called in place of the function, with all elements at once.
    Derivatives, in forward and in reverse mode, differentiate the function, and under `vmap` the
    rule.

    In forward mode, if only the values or only the tangents are batched, no argument counts as
    batched: the rule computes one element, and its derivative is vectorized as usual. In reverse
    mode each element of a batch has a separate cotangent: all differentiated arguments count as
    batched.

    Args:
        fun: Function of arrays or trees of arrays. Keyword arguments are resolved to positions.

    Raises:
        UndefinedRuleError: by a call before a rule was defined.
        CustomRuleError: if the outputs of the rule differ from the function's outputs, apart from
            the leading batch axes that the rule declares.
        UnexpectedTracerError: if the function is vectorized over a value that it closes over.

    >>> import axir, axir.numpy as jnp
    >>> @axir.custom_batching.custom_vmap
    ... def solve(matrix, b):
    ...     return jnp.linalg.solve(matrix, b)
    >>> @solve.def_vmap
    ... def solve_many(axis_size, in_batched, matrix, bs):
    ...     assert in_batched == [False, True]
    ...     return jnp.linalg.solve(matrix, bs.T).T, True
    >>> axir.vmap(solve, in_axes=(None, 0))(2 * jnp.eye(2), jnp.ones((3, 2)))
    Array([[0.5, 0.5],
           [0.5, 0.5],
           [0.5, 0.5]], dtype=float32)
    """

    def __init__(self, fun: UserFunction):
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.vmap_rule: VmapRule | None = None
        self.wants_batch = False

    def __repr__(self) -> str:
        return f"<axir.custom_batching.custom_vmap of {self.fun!r}>"

    def __get__(self, instance: object, owner: object = None) -> UserObject:
        return self if instance is None else functools.partial(self, instance)

    def __getattr__(self, name: str) -> UserObject:
        return forwarded(self, name)

    def def_vmap(self, vmap_rule: VmapRule) -> VmapRule:
        """Defines the rule (usable as a decorator).

        Args:
            vmap_rule: `(axis_size, in_batched, *args) -> (outputs, out_batched)`. `in_batched` is a
                list with a tree of bools for each argument: whether its leaves have the leading
                batch axis. `out_batched` has the structure of the outputs.

        Returns:
            The rule.
        """
        self.vmap_rule = vmap_rule
        return vmap_rule

    @boundary
    def __call__(self, *args: object, **kwargs: object) -> UserObject:
        """Calls the function; its rule waits for vectorization."""
        if self.vmap_rule is None:
            name = function_name(self.fun)
            raise UndefinedRuleError(
                f"No batching rule defined for custom_vmap function {name} using def_vmap.",
                f"Define it with {name}.def_vmap(rule).",
            )
        arguments = tuple(positional(self.fun, args, kwargs))
        leaves, in_tree = tree.flatten((arguments, {}))
        flat = FlatFunction(self.fun, in_tree)
        values = to_values(leaves, arguments, flat.name)
        if not any(type(x) is Tracer for x in values):
            result = self.fun(*arguments)
            if not any(type(x) is Tracer for x in tree.leaves(result)):
                return result
        function = trace_abstract(flat, [x.type for x in values], "Vmap")
        rule = _Rule(self.vmap_rule, flat, function.output_types)
        types = [v.type for v in (*function.inputs, *function.captures)]
        kept = UserRule(rule.name, types, len(values), rule, flat.name, self.wants_batch)
        return flat.out_tree.unflatten(call_with_vmap(function, kept, values))


class _Rule:
    """A user's rule on flat values, with checks of its outputs."""

    def __init__(self, rule: VmapRule, function: FlatFunction, types: Sequence[ShapedArray]):
        self.rule = rule
        self.name = function_name(rule)
        self.function_name = function.name
        self.in_tree, self.out_tree = function.in_tree, function.out_tree
        self.types = types

    @boundary
    def __call__(
        self, size: int, flags: Sequence[bool], values: Sequence[object]
    ) -> tuple[list[UserObject], list[bool]]:
        in_batched: UserObject = self.in_tree.unflatten(list(flags))
        arguments: UserObject = self.in_tree.unflatten(list(values))
        # The axis is one of the arrays' own now: nothing communicates over it.
        name = current_frame().name
        other_axes = {n: size for n, size in state.axis_sizes.items() if n != name}
        with user_code(other_axes, state.tracked_axes - {name}):
            try:
                result = self.rule(size, list(in_batched[0]), *arguments[0])
                return self._checked(size, result)
            except UnexpectedTracerError as error:
                raise leaked_in_rule("custom_vmap", self.name, error) from error

    def _checked(self, size: int, result: Tree) -> tuple[list[object], list[bool]]:
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise CustomRuleError(
                f"Custom vmap rule {self.name} for function {self.function_name} must produce a "
                f"pair (list or tuple of length two) of outputs and booleans, but got {result}.",
                "Return (outputs, out_batched).",
            )
        outs, structure = flatten_result(result[0], f"Output of {self.name!r} ")
        out_batched, batched_structure = tree.flatten(result[1])
        if structure != batched_structure:
            raise CustomRuleError(
                "structure of output value and output batching specification returned by custom "
                f"vmap rule ({self.name}) do not match.\nOutput values: {structure}\n"
                f"Batching spec: {batched_structure}",
                "Return a bool for each output.",
            )
        if structure != self.out_tree:
            raise CustomRuleError(
                f"structure of output returned by custom vmap rule ({self.name}) does not match "
                f"that of original custom-vmapped function.\nOriginal output: {self.out_tree}\n"
                f"Rule output: {structure}",
                f"Return what {self.function_name} returns, for all elements.",
            )
        rows = zip(outs, out_batched, self.types, strict=True)
        return [self._output(size, *row) for row in rows], list(map(bool, out_batched))

    def _output(
        self, size: int, out: UserObject, is_batched: bool, expected: ShapedArray
    ) -> object:
        shape = (size, *expected.shape) if is_batched else expected.shape
        found = out.type
        if found.weak_type and found.dtype != expected.dtype:
            promoted = dtypes.promote([(found.dtype, True), (expected.dtype, expected.weak_type)])
            if promoted[0] == expected.dtype:
                out = convert_element_type(out, expected.dtype, expected.weak_type)
                found = out.type
        if (found.shape, found.dtype) != (shape, expected.dtype):
            batch = f"with a batch axis of {size} in front" if is_batched else "without batch axis"
            raise CustomRuleError(
                f"Custom vmap rule {self.name} for function {self.function_name} returned an "
                f"output of type {found}, which it declares {batch}; the function's output is of "
                f"type {expected}, so it must be of type {expected.update(shape=shape)}.",
                "out_batched tells which outputs have the axis; it stands in front.",
            )
        return out


def sequential_vmap(f: Callable[..., object]) -> custom_vmap:
    """Returns a function that `vmap` calls for one element after the other, in a loop.

    Args:
        f: Function of arrays or trees of arrays that does not work, or not well, on many elements.

    >>> import axir, axir.numpy as jnp
    >>> @axir.custom_batching.sequential_vmap
    ... def largest(x):
    ...     return axir.lax.while_loop(lambda y: y * 2 < x, lambda y: y * 2, 1.0)
    >>> axir.vmap(largest)(jnp.array([3.0, 100.0])).tolist()
    [2.0, 64.0]
    """
    custom = custom_vmap(f)
    custom.wants_batch = True

    @custom.def_vmap
    def rule(
        axis_size: int, in_batched: list[object], *args: object
    ) -> tuple[UserObject, UserObject]:
        leaves, structure = tree.flatten(args)
        flags = tree.leaves(in_batched)

        def element(moving: list[object]) -> UserObject:
            remaining = iter(moving)
            full = [next(remaining) if m else x for x, m in zip(leaves, flags, strict=True)]
            return custom(*structure.unflatten(full))

        moving = [x for x, is_batched in zip(leaves, flags, strict=True) if is_batched]
        out = loop(element, moving)
        return out, tree.map(lambda _: True, out)

    return custom
