"""`checkpoint` (`remat`): computing values again for the derivative instead of keeping them."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, overload

from axir._arguments.arguments import (
    FlatFunction,
    check_callable,
    flatten_arguments,
    to_values,
    trace_abstract,
)
from axir._arguments.wrapping import boundary, wraps
from axir._trees import tree
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import P, Param, R, UserObject
from axir.dialect.core.context import describe_location
from axir.dialect.core.errors import ConcretizationTypeError, ParameterError, StaticArgumentError
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.custom_rules.checkpoint import call_checkpointed
from axir.dialect.ops.custom_rules.policies import Policy, parameter_of
from axir.dialect.program.derived_functions import derive
from axir.dialect.program.tracer import Tracer

from .carried_refs import Values, carrying, values_of, with_refs

if TYPE_CHECKING:
    from .refs import Ref


class CheckpointPolicies:
    """Policies: which values a checkpointed function keeps. See `checkpoint`.

    A custom policy is a function `(primitive, *types, **params) -> bool`; a module that uses one
    cannot be saved.

    >>> import axir
    >>> axir.checkpoint_policies.save_only_these_names("hidden")
    save_only_these_names('hidden')
    """

    everything_saveable = Policy(("everything_saveable",))
    nothing_saveable = Policy(("nothing_saveable",))
    dots_saveable = checkpoint_dots = Policy(("dots_saveable",))
    dots_with_no_batch_dims_saveable = checkpoint_dots_with_no_batch_dims = Policy(
        ("dots_with_no_batch_dims_saveable",)
    )

    @staticmethod
    def save_only_these_names(*names: str) -> Policy:
        """Saves values that `checkpoint_name` gave one of the names."""
        return Policy(("save_only_these_names", *names))

    @staticmethod
    def save_and_offload_only_these_names(
        *,
        names_which_can_be_saved: Sequence[str],
        names_which_can_be_offloaded: Sequence[str],
        offload_src: str,
        offload_dst: str,
    ) -> Policy:
        """Saves values with one of the names; devices have one memory for both.

        Raises:
            ParameterError: if a name is among both.
        """
        both = sorted({*names_which_can_be_saved} & {*names_which_can_be_offloaded})
        if both:
            raise ParameterError(
                f"save_and_offload_only_these_names: {', '.join(both)} should be both saved and "
                "offloaded.",
                "Give each name once.",
            )
        names = (*names_which_can_be_saved, *names_which_can_be_offloaded)
        return Policy(("save_only_these_names", *names))

    @staticmethod
    def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Policy:
        """Keeps products without batch dimensions, in the only memory that devices have."""
        return CheckpointPolicies.dots_with_no_batch_dims_saveable

    @staticmethod
    def save_any_names_but_these(*names: str) -> Policy:
        """Saves values that `checkpoint_name` gave another name."""
        return Policy(("save_any_names_but_these", *names))

    @staticmethod
    def save_anything_except_these_names(*names: str) -> Policy:
        """Saves everything except values that `checkpoint_name` gave one of the names."""
        return Policy(("save_anything_except_these_names", *names))

    @staticmethod
    def save_from_both_policies(first: UserObject, second: UserObject) -> UserObject:
        """Saves values that at least one of two policies saves."""
        texts = parameter_of(first), parameter_of(second)
        if all(isinstance(text, tuple) for text in texts):
            return Policy(("save_from_both_policies", *texts))

        def either(primitive: UserObject, *types: UserObject, **params: Param) -> bool:
            return bool(first(primitive, *types, **params) or second(primitive, *types, **params))

        return either


checkpoint_policies = CheckpointPolicies()


@overload
def checkpoint(
    fun: Callable[P, R],
    *,
    prevent_cse: bool | Sequence[bool] = ...,
    policy: Callable[..., bool] | None = ...,
    static_argnums: int | Sequence[int] = ...,
    static_argnames: str | Sequence[str] = ...,
    concrete: bool = ...,
) -> Callable[P, R]: ...


@overload
def checkpoint(
    fun: None = ...,
    *,
    prevent_cse: bool | Sequence[bool] = ...,
    policy: Callable[..., bool] | None = ...,
    static_argnums: int | Sequence[int] = ...,
    static_argnames: str | Sequence[str] = ...,
    concrete: bool = ...,
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


def checkpoint(
    fun: Callable[..., object] | None = None,
    *,
    prevent_cse: bool | Sequence[bool] = True,
    policy: Callable[..., bool] | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    concrete: bool = False,
) -> UserObject:
    """Returns `fun` with less memory for its derivative: values are computed again when needed.

    Without a policy only the arguments are kept between the forward and the backward pass.

    Args:
        fun: Function of arrays or trees of arrays; without it, `checkpoint` is a decorator with
            options.
        prevent_cse: Whether to keep the compiler from noticing that values are computed again.
            Inside `scan` it cannot notice, and False saves the barrier. One for each argument is
            allowed, too; the barrier holds all arguments if any asks for it.
        policy: Values to save; one of `axir.checkpoint_policies`, or a function `(primitive,
            *types, **params) -> bool`. None keeps nothing.
        static_argnums: Positional arguments that are passed on as they are, whatever they are, so
            that Python's `if` may look at them.
        static_argnames: The same, by name.
        concrete: Was replaced by `static_argnums`, and must be False.

    Raises:
        NotImplementedError: if `concrete` is set.
        StaticArgumentError: by a call without an argument of such a number.

    >>> import axir, axir.numpy as jnp
    >>> f = axir.checkpoint(lambda x: jnp.sin(jnp.sin(x)))
    >>> round(float(axir.grad(f)(1.0)), 4)
    0.36
    """
    if concrete:
        raise NotImplementedError(
            "checkpoint: the option concrete was replaced by static_argnums, which names the "
            "arguments that Python's control flow looks at."
        )
    if fun is None:
        return functools.partial(
            checkpoint,
            prevent_cse=prevent_cse,
            policy=policy,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
        )
    check_callable(fun, "checkpoint")
    if policy is not None and not callable(policy):
        raise ParameterError(
            f"checkpoint: policy must be a function, not {policy!r}.",
            "Use one of axir.checkpoint_policies.",
        )
    numbers = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    names = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)
    needs_barrier = any((prevent_cse,) if isinstance(prevent_cse, bool) else prevent_cse)
    positions = _positions(fun, names)

    @wraps(fun)
    @boundary
    def checkpointed(*args: object, **kwargs: object) -> object:
        named = tuple(n for n in positions if n < len(args) and n not in numbers)
        partial, dynamic = _without_static(fun, args, (*numbers, *named))
        fixed = {name: kwargs[name] for name in names if name in kwargs}
        if fixed:
            partial = functools.wraps(partial)(functools.partial(partial, **fixed))
            kwargs = {name: x for name, x in kwargs.items() if name not in fixed}

        def carried(refs: Sequence[Ref]) -> tuple[UserObject, Values]:
            inside = functools.wraps(partial)(carrying(partial, refs))
            return apply(inside, (values_of(refs), *dynamic), kwargs)

        return with_refs(lambda: apply(partial, dynamic, kwargs), carried, (partial,))

    def apply(
        function: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]
    ) -> UserObject:
        leaves, in_tree = flatten_arguments((args, kwargs))
        flat = FlatFunction(function, in_tree)
        values = to_values(leaves, (args, kwargs) if kwargs else args, flat.name)
        try:
            traced = trace_abstract(flat, [x.type for x in values], "Checkpoint")
        except ConcretizationTypeError as error:
            raise type(error)(
                error.message,
                "Name the argument that it comes from in the static_argnums of checkpoint, or use "
                "jnp.where or lax.cond.",
            ) from error
        if not any(type(x) is Tracer for x in [*values, *traced.captured]):
            return flat.out_tree.unflatten(traced.evaluate(*values))
        results = call_checkpointed(traced, values, parameter_of(policy), needs_barrier)
        return flat.out_tree.unflatten(results)

    return checkpointed


remat = checkpoint


def _positions(fun: Callable[..., object], names: Sequence[str]) -> list[int]:
    """Returns the positions of arguments given by name, of those that have one.

    Raises:
        StaticArgumentError: if the function takes no argument of a name.
    """
    if not names:
        return []
    parameters = inspect.signature(fun).parameters
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    positional = [
        name
        for name, p in parameters.items()
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    for name in names:
        if name not in parameters and not takes_any:
            raise StaticArgumentError(
                f"checkpoint: static_argnames names {name}, but the function takes "
                f"{', '.join(parameters)}."
            )
    return [positional.index(name) for name in names if name in positional]


def _without_static(
    fun: Callable[..., object], args: tuple[object, ...], numbers: tuple[int, ...]
) -> tuple[Callable[..., object], tuple[object, ...]]:
    """Returns a function of the arguments that are not static, and those."""
    count = len(args)
    for number in numbers:
        if not -count <= number < count:
            raise StaticArgumentError(
                f"checkpoint: static_argnums {number} is out of range: the function was called "
                f"with {count} positional arguments."
            )
    static = {number % count for number in numbers}
    if not static:
        return fun, args

    @wraps(fun)
    def partial(*dynamic: object, **kwargs: object) -> UserObject:
        remaining = iter(dynamic)
        full = [args[n] if n in static else next(remaining) for n in range(count)]
        return fun(*full, **kwargs)

    return partial, tuple(x for n, x in enumerate(args) if n not in static)


def saved_residuals(
    f: Callable[..., object], *args: object, **kwargs: object
) -> list[tuple[ShapedArray, str]]:
    """Returns types and origins of the values that are kept for the derivative of a function.

    Args:
        f: Function of arrays or trees of arrays.
        *args: Arguments to differentiate in.
        **kwargs: Likewise.
    """
    leaves, in_tree = flatten_arguments((args, kwargs))
    flat = FlatFunction(f, in_tree)
    values = to_values(leaves, (args, kwargs), flat.name)
    function = trace_abstract(flat, [x.type for x in values], "Linearize")
    active = tuple(dtypes.is_inexact(x.dtype) for x in values)
    split = derive(function, "linearize", (*active, *(False for _ in function.captures)))
    count = len(function.outputs)
    extra = iter(split.known.outputs[count:])
    made_by = {v: e for e in split.known.equations for v in e.results}
    paths = _argument_names(f, args, kwargs)
    found: dict[UserObject, tuple[ShapedArray, str]] = {}
    for source in split.residuals:
        if isinstance(source, int):
            is_input = source < len(paths)
            where = f"from the argument {paths[source]}" if is_input else "from a constant"
            found[source] = (split.known.inputs[source].type, where)
        elif source is None:
            variable = next(extra)
            found[variable] = (variable.type, _origin(made_by.get(variable)))
        else:
            found[id(source)] = (source.type, "from a constant")
    return list(found.values())


def _argument_names(
    f: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]
) -> list[str]:
    """Returns how users know the leaves of arguments: the parameter, and the path inside of it."""
    names = [f"args[{n}]" for n in range(len(args))]
    with contextlib.suppress(ValueError, TypeError):
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        parameters = [p for p in inspect.signature(f).parameters.values() if p.kind in kinds]
        names[: len(parameters)] = [p.name for p in parameters[: len(args)]]
    positional = [
        name + path for name, x in zip(names, args, strict=True) for path in tree.paths(x)
    ]
    return positional + [name + path for name, x in kwargs.items() for path in tree.paths(x)]


def _origin(equation: UserObject) -> str:
    if equation is None:
        return "from a constant"
    if equation.primitive.name == "name":
        return f"named {equation.params['name']!r} at {describe_location(equation.location)}"
    return f"output of {equation.primitive.name} at {describe_location(equation.location)}"


def print_saved_residuals(f: Callable[..., object], *args: object, **kwargs: object) -> None:
    """Prints the values that are kept for the derivative of a function, one on a line.

    >>> import axir, axir.numpy as jnp
    >>> print_saved_residuals(axir.checkpoint(lambda x: jnp.sin(jnp.sin(x))), 1.0)
    ~float32[] from the argument x
    """
    for array_type, origin in saved_residuals(f, *args, **kwargs):
        print(f"{array_type} {origin}")
