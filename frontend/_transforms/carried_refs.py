"""Carrying refs from outside through traced functions: these take the values and return new ones.

Elsewhere: refs (`refs.py`), which most programs have none of.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeAlias, TypeVar

from axir._trees import tree
from axir.dialect.core.annotations import Options, PyTree, UserFunction, UserObject
from axir.dialect.core.array import Array
from axir.dialect.core.errors import RefScopeError, TreeError
from axir.dialect.core.state import Change
from axir.dialect.program.function_tracing import function_name
from axir.dialect.program.tracer import state

from .refs import Ref

Values: TypeAlias = tuple[Array, ...]
"""Values of refs, in their order."""

Needs: TypeAlias = "dict[UserObject, dict[Ref, None]]"
"""Refs that functions turned out to use, by the functions' code."""

_Result = TypeVar("_Result")


def with_refs(
    attempt: Callable[[], _Result],
    carried: Callable[[Sequence[Ref]], tuple[_Result, Sequence[Array]]],
    functions: Sequence[UserFunction],
) -> _Result:
    """Applies a transformation, and repeats it with the refs that its function uses.

    The refs of a function are remembered until the outermost transformation ends. The outermost
    transformation traces the inner ones again for each ref; the inner ones then know their refs.

    Args:
        attempt: Applies the transformation to given functions.
        carried: Applies it to functions that carry refs; returns the result, and the new values of
            these.
        functions: The transformed functions.
    """
    needed = state.needed_refs
    key = tuple(_code_of(f, _DEEPEST) for f in functions) if needed else ()
    known = tuple(ref for ref in needed.get(key, ()) if ref.is_at_home()) if needed else ()
    found: Needs = {} if needed is None else needed
    if not known:
        try:
            return attempt()
        except RefScopeError as error:
            known = (error.ref,)
            found = error.needs if needed is None else needed
    key = key or tuple(_code_of(f, _DEEPEST) for f in functions)
    needs = found.setdefault(key, {})
    needs.update(dict.fromkeys(known))
    try:
        with Change(needed_refs=found):
            return carry(known, carried, needs)
    except RefScopeError as error:
        error.needs = found  # for the transformation outwards
        raise


_DEEPEST = 5


def _code_of(function: UserObject, depth: int) -> UserObject:
    """Returns a key shared by repeated definitions of a function: its code, and its inner code."""
    if isinstance(function, functools.partial):
        return _code_of(function.func, depth)
    code = getattr(function, "__code__", None)
    if code is None or not depth:
        return code
    inner = (_code_of(x, depth - 1) for x in _closed_over(function) if hasattr(x, "__code__"))
    return (code, *inner)


def _closed_over(function: UserFunction) -> Iterator[UserObject]:
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # it is empty
            yield cell.cell_contents


def carry(
    refs: tuple[Ref, ...],
    carried: Callable[[Sequence[Ref]], tuple[_Result, Sequence[Array]]],
    needs: dict[Ref, None],
) -> _Result:
    """Applies a transformation to functions that carry refs, and others as they turn up.

    Args:
        refs: The refs.
        carried: See `with_refs`.
        needs: Receives the refs that are found.
    """
    while True:
        for ref in refs:
            ref.check_at_home()  # else the next transformation outwards carries it
        try:
            result, values = carried(refs)
        except RefScopeError as error:
            if error.ref in refs:
                raise
            refs = (*refs, error.ref)
            needs[error.ref] = None
            continue
        for ref, value in zip(refs, values, strict=True):
            ref._value = value
        return result


def values_of(refs: Sequence[Ref]) -> Values:
    """Returns the values of refs."""
    return tuple(ref.load() for ref in refs)


def carrying(function: UserFunction, refs: Sequence[Ref]) -> UserFunction:
    """Returns a function that takes values of refs first, and returns the new ones last."""

    def carried(values: Values, *args: Options, **kwargs: Options) -> tuple[UserObject, Values]:
        before = [(ref._value, ref._home) for ref in refs]
        for ref, inside in zip(refs, values, strict=True):
            ref._value, ref._home = inside, state.ambient
        try:
            result = function(*args, **kwargs)
            return result, values_of(refs)
        finally:
            for ref, (value, home) in zip(refs, before, strict=True):
                ref._value, ref._home = value, home

    return carried


def differentiated(
    run: Callable[[UserFunction, bool], tuple[UserObject, ...]],
    function: UserFunction,
    has_aux: bool,
) -> tuple[UserObject, ...]:
    """Differentiates a function that may use refs from outside.

    Their values are constants of the derivative; their assigned values are further results.

    Args:
        run: From a function, and whether it has an auxiliary result, to a tuple, in which that
            comes last.
        function: The function.
        has_aux: Whether it returns a pair; only its first element is differentiated.
    """

    def carried(refs: Sequence[Ref]) -> tuple[tuple[UserObject, ...], Values]:
        inside, values = carrying(function, refs), values_of(refs)

        def with_values(*args: Options, **kwargs: Options) -> UserObject:
            result, after = inside(values, *args, **kwargs)
            output, auxiliary = result if has_aux else (result, None)
            return output, (auxiliary, after)

        *results, (auxiliary, after) = run(with_values, True)
        return ((*results, auxiliary) if has_aux else tuple(results)), after

    return with_refs(lambda: run(function, has_aux), carried, (function,))


def scanned(
    run: Callable[[UserFunction, PyTree], tuple[UserObject, UserObject]],
    body: UserFunction,
    init: PyTree,
) -> tuple[UserObject, UserObject]:
    """Scans with a body that may use refs from outside; they are part of the carry.

    Args:
        run: From a body and a first carry to the last carry and the stacked outputs.
        body: The body.
        init: The first carry.
    """

    def carried(refs: Sequence[Ref]) -> tuple[tuple[UserObject, UserObject], Values]:
        inside = carrying(body, refs)

        def with_values(carry: PyTree, x: PyTree) -> tuple[PyTree, UserObject]:
            pair, after = inside(carry[0], carry[1], x)
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise TreeError(f"scan: f must return a pair (carry, y), not {pair}.")
            return (after, pair[0]), pair[1]

        (after, carry), ys = run(with_values, (values_of(refs), init))
        return (carry, ys), after

    return with_refs(lambda: run(body, init), carried, (body,))


def repeated(
    run: Callable[[UserFunction, UserFunction, PyTree], PyTree],
    condition: UserFunction,
    body: UserFunction,
    init: PyTree,
) -> PyTree:
    """Repeats a body that may use refs from outside, as a condition may; see `scanned`."""

    def carried(refs: Sequence[Ref]) -> tuple[UserObject, Values]:
        ask, inside = carrying(condition, refs), carrying(body, refs)

        def holds(carry: PyTree) -> UserObject:
            return ask(*carry)[0]

        def advance(carry: PyTree) -> PyTree:
            value, after = inside(*carry)
            return after, value

        after, value = run(holds, advance, (values_of(refs), init))
        return value, after

    return with_refs(lambda: run(condition, body, init), carried, (condition, body))


def branched(
    run: Callable[[Sequence[UserFunction], tuple[UserObject, ...]], UserObject],
    branches: Sequence[UserFunction],
    operands: tuple[UserObject, ...],
) -> UserObject:
    """Chooses among branches that may use refs from outside: all take and return their values."""

    def carried(refs: Sequence[Ref]) -> tuple[UserObject, Values]:
        return run([carrying(b, refs) for b in branches], (values_of(refs), *operands))

    return with_refs(lambda: run(branches, operands), carried, branches)


# Compiled functions ------------------------------------------------------------------------------


class RefForms(Protocol):
    """The interface of a compiled function for refs: `JitFunction`."""

    _outside_refs: dict[UserObject, tuple[Ref, ...]]
    _ref_forms: dict[UserObject, tuple[UserFunction, tuple[Ref, ...]]]


def call_with_refs(
    compiled: RefForms,
    function: UserFunction,
    arguments: tuple[tuple[UserObject, ...], dict[str, Options]],
    static: UserObject,
    make: Callable[[UserFunction], UserFunction],
    touched: Ref | None,
) -> UserObject:
    """Calls a compiled function that has refs among its arguments, or uses some from outside.

    Args:
        compiled: The function, which remembers its forms that carry refs.
        function: The function to call, without static arguments.
        arguments: The other arguments.
        static: A key of the static ones.
        make: Compiles a function.
        touched: A ref that it was found to use, if this is not known from an earlier call.
    """
    leaves, structure = tree.flatten(arguments)
    passed = tuple({id(x): x for x in leaves if isinstance(x, Ref)}.values())
    places = tuple(_place(x, passed) for x in leaves)
    others = [x for x in leaves if not isinstance(x, Ref)]

    def carried(refs: Sequence[Ref]) -> tuple[UserObject, Sequence[Array]]:
        outside = tuple(ref for ref in refs if _place(ref, passed) is None)
        # A call begins with the refs that one before was found to use.
        compiled._outside_refs[call] = outside
        key = (call, tuple(map(id, outside)))
        form = compiled._ref_forms.get(key)
        if form is None:
            made = make(_carrying_arguments(function, structure, places, outside))
            # The refs are kept, for their addresses are the key.
            form = compiled._ref_forms[key] = (made, outside)
        order = (*passed, *outside)
        result, after = form[0](values_of(order), others)
        return result, [after[n] for n in (_place(ref, order) for ref in refs) if n is not None]

    call = (static, structure, places)
    known = compiled._outside_refs.get(call, ())
    first = dict.fromkeys((*passed, *known, *(() if touched is None else (touched,))))
    return carry(tuple(first), carried, {})


def _place(x: UserObject, refs: Sequence[Ref]) -> int | None:
    """Returns which of some refs a value is, or None."""
    return next((n for n, ref in enumerate(refs) if ref is x), None)


def _carrying_arguments(
    function: UserFunction,
    structure: tree.TreeDef,
    places: Sequence[int | None],
    outside: Sequence[Ref],
) -> UserFunction:
    """Returns a function of values of refs and of the leaves of arguments that are none."""
    inside = carrying(function, outside)
    count = len({place for place in places if place is not None})

    def flat(values: Values, others: Sequence[UserObject]) -> tuple[UserObject, Values]:
        passed = [Ref(value, state.ambient) for value in values[:count]]
        remaining = iter(others)
        leaves = [next(remaining) if place is None else passed[place] for place in places]
        arguments: UserObject = structure.unflatten(leaves)
        args, kwargs = arguments
        result, after = inside(values[count:], *args, **kwargs)
        return result, (*values_of(passed), *after)

    flat.__name__ = function_name(function)
    return flat
