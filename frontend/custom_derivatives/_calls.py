"""Functions with a custom derivative: their calls, with arguments flat, on their way into a trace.

Operands are the leaves of the differentiable arguments, and after them the tracers among the leaves
of the others. Elsewhere: the rules (`_forward.py`, `_reverse.py`).
"""

from __future__ import annotations

import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from typing import ClassVar, NamedTuple

from axir._arguments.arguments import to_value, to_values
from axir._arguments.wrapping import boundary
from axir._transforms.gradient_refs import is_ref
from axir._trees import tree
from axir.dialect.core.annotations import Options, Tree, UserFunction, UserObject
from axir.dialect.core.config import config
from axir.dialect.core.errors import CustomRuleError, TreeError, UnexpectedTracerError
from axir.dialect.core.state import axes_in_scope
from axir.dialect.core.symbolic_zeros import Marks, chosen, inexact
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.custom_rules.applied import (
    Applied,
    moving_operands,
    outside_values,
    reached,
    record_applied,
    values_of,
)
from axir.dialect.ops.custom_rules.bodies import closed_over_error
from axir.dialect.program.function import Function
from axir.dialect.program.function_tracing import function_name
from axir.dialect.program.rules import Value
from axir.dialect.program.tracer import Trace, Tracer, state


def numbers_of(
    fun: Callable[..., object], argnums: int | Sequence[int], argnames: str | Sequence[str] = ()
) -> tuple[int, ...]:
    """Returns positions of arguments given by number and by name."""
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    names = (argnames,) if isinstance(argnames, str) else tuple(argnames)
    if not names:
        return tuple(sorted(set(numbers)))
    known = list(inspect.signature(fun).parameters)
    for name in names:
        if name not in known:
            raise ValueError(f"{function_name(fun)!r} has no argument {name!r}.")
    return tuple(sorted({*numbers, *map(known.index, names)}))


def forwarded(wrapper: object, name: str) -> UserObject:
    """Returns the method that defines another rule of a wrapped function, such as `def_vmap`.

    Raises:
        AttributeError: if the function that is wrapped defines no rule under that name.
    """
    fun = wrapper.__dict__.get("fun")
    if name.startswith("def") and hasattr(type(fun), name):
        return getattr(fun, name)
    raise AttributeError(f"{type(wrapper).__name__!r} object has no attribute {name!r}")


@functools.lru_cache(maxsize=1024)
def signature_of(fun: Callable[..., object]) -> tuple[inspect.Signature | None, int | None]:
    """Returns the signature of a function, and how many arguments make a call of it complete."""
    try:
        signature = inspect.signature(fun)
    except (ValueError, TypeError):
        return None, None
    parameters = signature.parameters.values()
    positions = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    is_fixed = all(p.kind in positions for p in parameters)
    return signature, len(signature.parameters) if is_fixed else None


def positional(
    fun: Callable[..., object], args: Sequence[object], kwargs: dict[str, Options]
) -> list[UserObject]:
    """Returns all arguments of a call by position, as rules take them.

    Raises:
        TreeError: if a keyword argument has no position.
    """
    signature, arity = signature_of(fun)
    if not kwargs and (len(args) == arity or signature is None):
        return list(args)
    if signature is None:
        raise TreeError(
            f"{function_name(fun)!r} has no signature that says which positions its keyword "
            f"arguments {', '.join(kwargs)} have.",
            "Pass them by position.",
        )
    bound = signature.bind(*args, **kwargs)
    # Without the defaults, parameters after an omitted parameter have no position either.
    bound.apply_defaults()
    # Those that only may be passed by keyword, and are not, are the function's own business.
    passed = [name for name in bound.kwargs if name in kwargs]
    if passed:
        raise TreeError(
            f"The following keyword arguments of {function_name(fun)!r} could not be resolved to "
            f"positions: {', '.join(passed)}.",
            "Rules take positional arguments: make these parameters positional.",
        )
    return list(bound.args)


# Compared by value; other fixed arguments are compared by identity, and kept by their calls.
_PLAIN = frozenset((bool, int, float, complex, str))
_LIMIT = 256


class Recorded(NamedTuple):
    """The traced form of calls: the function, its rule(s), and the structure of results."""

    call: Call
    function: Function
    rules: UserObject
    out_tree: tree.TreeDef


def recorded(table: dict[Hashable, Recorded], call: Call, make: Callable[[], Recorded]) -> Recorded:
    """Returns the traced form of a call, shared by calls with the same key.

    A rule that calls its own function gets the same rule again, so that a saved module ends.
    """
    key = call.key
    found = table.get(key)
    if found is not None and not getattr(found.rules, "is_tied", False):
        return found
    made = make()
    if not any(type(x) is Tracer for x in made.function.captured):
        if len(table) >= _LIMIT:
            table.clear()
        table[key] = made
    return made


class Call:
    """A call with some arguments that are not differentiated.

    Arguments that are refs stay refs: nothing is differentiated in them.

    Attributes:
        name: Name of the function.
        refs: Which arguments are refs.
        operands: Its values: leaves of the differentiable arguments, then tracers of the others.
        count: How many of the operands are leaves of differentiable arguments.
        in_tree: Structure of the tuple of differentiable arguments.
    """

    def __init__(self, fun: UserFunction, args: Sequence[UserObject], fixed: Sequence[int]):
        self.fun = fun
        self.name = function_name(fun)
        self.args = args
        count = len(args)
        fixed = [n % count for n in fixed if -count <= n < count]
        self.refs = [n for n, x in enumerate(args) if is_ref(x) and n not in fixed]
        self.fixed = sorted([*fixed, *self.refs])
        self.moving = [n for n in range(count) if n not in self.fixed]
        self.differentiable = tuple(args[n] for n in self.moving)
        leaves, self.in_tree = tree.flatten(self.differentiable)
        self._fixed_leaves, self._fixed_tree = tree.flatten([args[n] for n in self.fixed])
        self._passive = [i for i, x in enumerate(self._fixed_leaves) if type(x) is Tracer]
        self.count = len(leaves)
        self.operands: list[Value] = [
            *to_values(leaves, self.differentiable, self.name),
            *(self._fixed_leaves[i] for i in self._passive),
        ]

    @property
    def has_fixed_tracers(self) -> bool:
        """Whether an argument that is not differentiated is or holds a tracer."""
        return bool(self._passive)

    def fixed_arguments(self, operands: Sequence[Value]) -> list[UserObject]:
        """Returns the arguments that are not differentiated, for given operands."""
        leaves = list(self._fixed_leaves)
        for index, value in zip(self._passive, operands[self.count :], strict=True):
            leaves[index] = value
        return list(self._fixed_tree.unflatten(leaves))

    def rule_arguments(self, operands: Sequence[Value]) -> list[UserObject]:
        """Returns the arguments that a backward rule gets before the others."""
        pairs = zip(self.fixed, self.fixed_arguments(operands), strict=True)
        return [x for n, x in pairs if n not in self.refs]

    def moving_arguments(self, leaves: Sequence[object]) -> tuple[UserObject, ...]:
        """Returns the tuple of differentiable arguments (or tangents of theirs) from leaves."""
        return tuple(self.in_tree.unflatten(leaves[: self.count]))

    def arguments(
        self, operands: Sequence[Value], leaves: Sequence[object] | None = None
    ) -> list[UserObject]:
        """Returns all arguments in order; `leaves` stand in for the differentiable operands."""
        fixed = iter(self.fixed_arguments(operands))
        moving = iter(self.moving_arguments(operands if leaves is None else leaves))
        return [next(fixed) if n in self.fixed else next(moving) for n in range(len(self.args))]

    @property
    def key(self) -> Hashable:
        """The key of calls with equal traced forms."""
        passive = set(self._passive)
        fixed = tuple(
            None if i in passive else x if type(x) in _PLAIN else id(x)
            for i, x in enumerate(self._fixed_leaves)
        )
        return (
            self.in_tree,
            tuple(map(type, self._fixed_leaves)),
            fixed,
            self._fixed_tree,
            tuple(x.type for x in self.operands),
            config.cache_key,
            axes_in_scope(),
        )

    def describe(self, index: int) -> str:
        """Names a differentiable leaf: `argument 1['w']`."""
        path = tree.paths(self.differentiable)[index]
        position, _, rest = path.removeprefix("[").partition("]")
        return f"argument {self.moving[int(position)]}{rest}"

    def trace(self) -> Trace | None:
        """Returns the innermost trace to which an operand belongs."""
        return innermost(self.operands)


def flatten_result(result: Tree, what: str) -> tuple[list[Value], tree.TreeDef]:
    """Flattens the results of a function or rule to values."""
    leaves, structure = tree.flatten(result)
    paths = None

    def describe(index: int) -> Callable[[], str]:
        nonlocal paths
        paths = paths or tree.paths(result)
        return lambda: f"{what}{paths[index]}"

    return [to_value(x, describe(index)) for index, x in enumerate(leaves)], structure


def innermost(values: Sequence[object]) -> Trace | None:
    """Returns the innermost trace to which values belong; None if all are arrays."""
    owners = [x.owner for x in values if type(x) is Tracer]
    return max(owners, key=lambda trace: trace.level, default=None)


class CustomFunction(ABC):
    """A function with custom rules for differentiation.

    Attributes:
        kind: The users' name for such functions.
        rules: The attributes that hold the rules, None as long as these are not defined.
        fun: The function.
        symbolic_zeros: Whether the rules want to know which values move.
        recorded: Traced forms of its calls.
        enclosing: Arguments of the enclosing calls that run a rule with captured traced values.
    """

    kind: ClassVar[str]
    rules: ClassVar[tuple[str, ...]]

    def __init__(
        self,
        fun: UserFunction,
        nondiff_argnums: int | Sequence[int] = (),
        nondiff_argnames: str | Sequence[str] = (),
    ):
        functools.update_wrapper(self, fun)
        self.__dict__.update(dict.fromkeys(self.rules))  # not the function's
        self.fun = fun
        self.nondiff_argnums = numbers_of(fun, nondiff_argnums, nondiff_argnames)
        self.symbolic_zeros = False
        self.recorded: dict[Hashable, Recorded] = {}
        self.enclosing: dict[Hashable, UserObject] = {}

    def __repr__(self) -> str:
        return f"<axir.{self.kind} of {self.fun!r}>"

    def __get__(self, instance: object, owner: object = None) -> UserObject:
        return self if instance is None else functools.partial(self, instance)

    def __getattr__(self, name: str) -> UserObject:
        return forwarded(self, name)

    @boundary
    def __call__(self, *args: object, **kwargs: object) -> UserObject:
        """Calls the function; its rules wait for differentiation."""
        self._check_defined()
        call = Call(self.fun, positional(self.fun, args, kwargs), self.nondiff_argnums)
        if call.trace() is None:
            result = self.fun(*call.args)
            if not closes_over_abstract(result, self.kind, call.name):
                return result
            applying = self._applying(call)
            outs = applying.record(call.operands)
        else:
            applying = self._applying(call)
            outs = applying.apply(call.operands)
        return applying.out_tree.unflatten(outs)

    @abstractmethod
    def _check_defined(self) -> None:
        """Raises `UndefinedRuleError` unless the rules are known."""

    @abstractmethod
    def _applying(self, call: Call) -> Applying:
        """Returns a call with the rules."""


Ran = tuple[list[Value], Sequence[Value], Callable[[list[Value], list[Value]], list[Value]]]
"""Results, residuals, and a map of these and of tangents of moving operands to tangents."""


class Applying(ABC):
    """A call of a function with rules on its way into a trace.

    Attributes:
        custom: The function.
        call: The call.
        out_tree: Structure of the results, known once the function ran.
    """

    out_tree: tree.TreeDef

    def __init__(self, custom: CustomFunction, call: Call):
        self.custom = custom
        self.call = call
        self.symbolic_zeros = custom.symbolic_zeros

    def apply(self, operands: Sequence[Value]) -> list[Value]:
        """Applies the function to operands; returns flat results, of structure `out_tree`."""
        trace = innermost(operands)
        if trace is None:
            return self._run(*operands)
        ambient = state.ambient
        within = ambient if ambient is not None and ambient.level > trace.level else trace
        if trace.environment is None or within.environment is None:
            # The calling code may capture values of known type and unknown value.
            return self.record(operands)
        return self._apply_known(trace, operands)

    def _run(self, *operands: Value) -> list[Value]:
        result = self.call.fun(*self.call.arguments(operands))
        outs, self.out_tree = flatten_result(result, f"Result of {self.call.name!r} ")
        return outs

    def _apply_known(self, trace: Trace, operands: Sequence[Value]) -> list[Value]:
        """Applies the function to values that are known while they are differentiated."""
        kind, name, count = self.custom.kind, self.call.name, self.call.count
        moving = moving_operands(trace, operands)
        moving = (*moving[:count], *(False for _ in moving[count:]))
        found = reached(trace, operands, moving)
        values = values_of(trace, operands)
        with trace.outside():
            if not any(found):  # a rule runs only for differentiated calls
                applied = Applied(name, self.apply(values), lambda tangents: [])
                return record_applied(trace, operands, applied, found)
            if self.symbolic_zeros:
                moving = found
            outs, residuals, push = self._run_rule(values, chosen(operands, moving), moving)
        outs = outside_values(trace, outs, kind, name)
        residuals = outside_values(trace, residuals, kind, name)
        applied = Applied(name, outs, functools.partial(push, residuals))
        return record_applied(trace, operands, applied, moving)

    @abstractmethod
    def record(self, operands: Sequence[Value]) -> list[Value]:
        """Records the call; its rules run when a transformation needs them."""

    @abstractmethod
    def _run_rule(self, values: Sequence[Value], operands: Sequence[Value], moving: Marks) -> Ran:
        """Runs the rule on known values, in place of the function.

        Args:
            values: Values of all operands.
            operands: The moving operands.
            moving: Which these are.
        """

    def _check_primal_output(
        self,
        outs: Sequence[Value],
        expected: Sequence[ShapedArray],
        structure: tree.TreeDef,
        what: str,
        way_out: str,
    ) -> None:
        """Raises `CustomRuleError` unless a rule gave results like the function's."""
        if self.out_tree != structure:
            raise CustomRuleError(
                f"{what}, but its structure is {self.out_tree}, and that of the function's output "
                f"is {structure}.",
                way_out,
            )
        for out, theirs in zip(outs, expected, strict=True):
            if (out.type.shape, out.type.dtype) != (theirs.shape, theirs.dtype):
                raise CustomRuleError(
                    f"{what}, but it is of type {out.type}, and the function's output of {theirs}.",
                    way_out,
                )


def closes_over_abstract(result: Tree, kind: str, name: str) -> bool:
    """Tells whether a call without traced arguments gave values of known type and unknown value.

    Raises:
        UnexpectedTracerError: if it gave values that depend on the differentiated variables.
    """
    tracers = [x for x in tree.leaves(result) if type(x) is Tracer]
    found = chosen(tracers, inexact([x.type for x in tracers]))
    trace = innermost(found)
    if trace is None or trace.environment is None:
        return trace is not None
    # Loops over constants are recorded, too: such a value is the trace's, and moves with nothing.
    if any(reached(x.owner, [x], [x.owner.environment is not None])[0] for x in found):
        raise closed_over_error(kind, name)
    return False


def leaked_in_rule(kind: str, rule: str, error: UnexpectedTracerError) -> UnexpectedTracerError:
    """Returns the error for a rule that uses a tracer of a finished trace."""
    return UnexpectedTracerError(
        f"The rule {rule!r} of a {kind} function closes over a traced value: {error.message}",
        "A rule runs when its function is differentiated: pass the value to the function as an "
        "argument, and to the rule as a residual.",
    )
