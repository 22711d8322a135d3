"""Loops and choices written as Python statements over mutable state, which are traced.

Inside a `Scope` a body of a `for` statement runs once, to be recorded; attributes of the scope that
it assigns are carried between iterations.

>>> import axir, axir.numpy as jnp
>>> from axir.experimental import loops
>>> def f(x):
...     with loops.Scope() as s:
...         s.total = 0.0
...         for i in s.range(4):
...             s.total += x * i
...             for _ in s.cond_range(s.total > 2.0):
...                 s.total *= 0.5
...         return s.total
>>> float(axir.jit(f)(1.0)), float(axir.grad(f)(1.0))
(2.25, 2.25)
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TypeVar

from axir import lax
from axir._arguments.arguments import to_values, type_of
from axir._trees import tree
from axir.dialect.core.annotations import PyTree, Tree, UserObject
from axir.dialect.core.dtypes import int32
from axir.dialect.core.errors import AxirError, user_line
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.tracer import Trace, Tracer

__all__ = ["LoopScopeError", "Scope"]


def __dir__() -> list[str]:
    return __all__


State = dict[str, PyTree]
_Made = TypeVar("_Made")


class LoopScopeError(AxirError, ValueError):
    """A loop of `experimental.loops` contains code that cannot be recorded."""


class Scope:
    """A scope of mutable state: a context with attributes that loops in it may change.

    Attributes hold trees of arrays. They must exist before a loop that assigns to them, and keep
    their structures and types.

    Raises:
        LoopScopeError: if a loop was left by `break` or `return`, made an attribute that was not
            there before, used what only `range` has, or ran within itself.

    >>> with Scope() as s:
    ...     s.x = 3.0
    ...     for _ in s.while_range(lambda: s.x < 100.0):
    ...         s.x *= 2.0
    >>> float(s.x)
    192.0
    """

    _state: State
    _open: list[_Range]

    def __init__(self) -> None:
        object.__setattr__(self, "_state", {})
        # The ranges with bodies that are being recorded, innermost last.
        object.__setattr__(self, "_open", [])

    def range(
        self, first: int, second: int | None = None, third: int | None = None
    ) -> Iterator[UserObject]:
        """Returns an iterable for `for` that records a loop over the numbers of a `range`.

        Args:
            first: The first number, or with one argument the number of passes.
            second: Where to stop.
            third: The difference of numbers.

        Raises:
            TracerIntegerConversionError: if an argument is a tracer without a value.
        """
        bounds = [operator.index(x) for x in (first, second, third) if x is not None]
        return _Range(self, _Counted(range(*bounds)))

    def cond_range(self, pred: object) -> Iterator[UserObject]:
        """Returns an iterable for `for` that records a body that runs once, or not at all.

        Args:
            pred: Whether it runs: a bool scalar.
        """
        return _Range(self, _Conditional(pred))

    def while_range(self, cond_func: Callable[[], UserObject]) -> Iterator[UserObject]:
        """Returns an iterable for `for` that records a loop that runs while a condition holds.

        Args:
            cond_func: Tells whether there is another pass, by attributes of the scope, which it
                must not change.
        """
        return _Range(self, _While(cond_func))

    def __getattr__(self, name: str) -> PyTree:
        try:
            return self._state[name]
        except KeyError:
            raise AttributeError(f"The scope has no state {name!r}: assign to it first.") from None

    def __setattr__(self, name: str, value: Tree) -> None:
        if self._open and name not in self._state:
            raise LoopScopeError(
                f"New mutable state {name!r} cannot be created inside a loop.",
                "Assign a first value in front of the loop; for what one pass alone needs, use a "
                "variable of Python.",
            )
        self._state[name] = value

    def __enter__(self) -> Scope:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._open:
            left = self._abandon()
            if error is None:
                raise left

    def _abandon(self) -> LoopScopeError:
        """Ends all recordings; returns the error for a loop that was left early."""
        place = self._open[-1].location()
        while self._open:
            self._open[-1].abandon()
        return LoopScopeError(
            f"Some ranges have exited prematurely. The innermost such range is at {place}",
            "A body is recorded as a whole: write `break` and `return` as conditions.",
        )


class _Kind:
    """The kind of op for a recorded body."""

    uses_index = False
    is_branch = False

    def run(self, scope: Scope, body: Callable[..., object], state: State) -> State:
        """Applies a body, a function from a number and a state to a state."""
        raise NotImplementedError


class _Counted(_Kind):
    uses_index = True

    def __init__(self, numbers: range):
        self.numbers = numbers

    def run(self, scope: Scope, body: Callable[..., object], state: State) -> State:
        start, step = self.numbers.start, self.numbers.step
        return lax.fori_loop(0, len(self.numbers), lambda n, x: body(start + n * step, x), state)


class _Conditional(_Kind):
    is_branch = True

    def __init__(self, pred: object):
        self.pred = pred

    def run(self, scope: Scope, body: Callable[..., object], state: State) -> State:
        return lax.cond(self.pred, lambda x: body(0, x), lambda x: x, state)


class _While(_Kind):
    def __init__(self, condition: Callable[[], object]):
        self.condition = condition

    def run(self, scope: Scope, body: Callable[..., object], state: State) -> State:
        def holds(values: State) -> UserObject:
            outside = dict(scope._state)
            scope._state.update(values)
            before = dict(scope._state)
            try:
                result = self.condition()
                for name, value in scope._state.items():
                    if name not in before or value is not before[name]:
                        raise LoopScopeError(
                            f"Conditional function modifies scope.{name} field.",
                            "Change it in the body of the loop.",
                        )
            finally:
                scope._state.clear()
                scope._state.update(outside)
            return result

        return lax.while_loop(holds, lambda x: body(0, x), state)


class _Range:
    """The iterable of `for`: records the body in the first iteration, applies it in the second."""

    def __init__(self, scope: Scope, kind: _Kind):
        self._scope = scope
        self._kind = kind
        self._place = user_line() or "an unknown line"
        self._trace: Trace | None = None
        self._before: State = {}

    def location(self) -> str:
        """Returns where the range was made."""
        return self._place

    def __iter__(self) -> _Range:
        if self in self._scope._open:
            self._scope._abandon()
            raise LoopScopeError(
                "Range is reused nested inside itself.", "Make another one for the inner loop."
            )
        return self

    def __next__(self) -> Tracer:
        if self._trace is None:
            return self._begin()
        if self._scope._open[-1] is not self:
            raise self._scope._abandon()
        self._end()
        raise StopIteration

    def _begin(self) -> Tracer:
        state = self._scope._state
        leaves, structure = tree.flatten(state)
        values = to_values(leaves, state, "the scope")
        self._before = dict(state)
        self._trace = trace = Trace("body", "Loop", is_branch=self._kind.is_branch)
        trace.__enter__()
        self._scope._open.append(self)
        index = trace.add_input(ShapedArray((), int32, True))
        state.update(structure.unflatten([trace.add_input(type_of(x)) for x in values]))
        return index

    def _end(self) -> None:
        trace, state = self._trace, self._scope._state
        assert trace is not None
        index, *inputs = trace.inputs
        leaves, structure = tree.flatten(state)
        outputs = to_values(leaves, state, "the scope")
        self._check_structure(structure)
        names = self._changed(inputs, outputs)
        function = trace.finish(outputs)
        self._leave()
        # Tracers compare elementwise, but are keys by identity.
        used = {v for e in function.equations for v in e.operands}.union(function.outputs)
        if index in used and not self._kind.uses_index:
            raise LoopScopeError(
                "Body of cond_range or while_range should not use the index variable returned by "
                "iterator.",
                "Count passes in an attribute of the scope.",
            )
        before = dict(state)

        def body(number: UserObject, carried: State) -> State:
            arguments = tree.leaves({**before, **carried})
            place = lax.convert_element_type(number, int32)
            after: UserObject = structure.unflatten(function.evaluate(place, *arguments))
            return {name: after[name] for name in names}

        if names:
            state.update(self._kind.run(self._scope, body, {name: before[name] for name in names}))

    def _check_structure(self, structure: tree.TreeDef) -> None:
        before = tree.structure(self._before)
        if structure != before:
            raise LoopScopeError(
                f"A loop changes the structure of its scope's state from {before} to {structure}.",
                "Keep the containers, and the number of arrays in them, from pass to pass.",
            )

    def _changed(self, inputs: list[Tracer], outputs: list[UserObject]) -> list[str]:
        """Returns the names of the attributes that the body changes in part."""
        remaining = zip(inputs, outputs, strict=True)
        return [
            name
            for name in sorted(self._before)
            if any([a is not b for a, b in _taken(remaining, self._before[name])])
        ]

    def _leave(self) -> None:
        self._scope._open.remove(self)
        self._scope._state.clear()
        self._scope._state.update(self._before)
        self._trace, self._before = None, {}

    def abandon(self) -> None:
        """Ends the recording without making anything of it."""
        assert self._trace is not None
        self._trace.close()
        self._leave()


def _taken(pairs: Iterator[_Made], value: Tree) -> list[_Made]:
    """Returns the next pairs, one for each leaf of a value."""
    return [next(pairs) for _ in tree.leaves(value)]
