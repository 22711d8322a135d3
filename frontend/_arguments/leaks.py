"""Finds tracers that outlive their trace, when the option `jax_check_tracer_leaks` is on.

A tracer that a function stores somewhere is an error only when it is used, which may be far away.
The check asks Python's garbage collector, after each tracing, which objects still refer to tracers.
Elsewhere: the error for a later use (`axir.dialect.program.tracer`).
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from types import CellType, FrameType, ModuleType

from axir.dialect.core.annotations import UserObject
from axir.dialect.core.context import describe_location
from axir.dialect.core.errors import UnexpectedTracerError
from axir.dialect.program.function import Function
from axir.dialect.program.tracer import Tracer

_SHOWN = 3


def check_leaks(
    function: Function, kind: str, environment: dict[UserObject, UserObject] | None = None
) -> None:
    """Raises if anything but the function itself refers to tracers of its trace.

    Args:
        function: The traced function.
        kind: The transformation that traced it.
        environment: Known values by tracer, which may refer to tracers.

    Raises:
        UnexpectedTracerError: names the tracers, where they were made, and the objects that refer
            to them.
    """
    gc.collect()
    # Python 3.13 counts the arguments of `get_referrers` among the referrers; this tuple becomes
    # them.
    tracers = tuple(_tracers(function))
    own = {id(tracers), id(environment), id(function)}
    own |= {id(x) for x in (function.inputs, function.captures, function.outputs)}
    for equation in function.equations:
        own |= {id(equation), id(equation.operands), id(equation.results)}
    own |= {id(callee.captured) for callee in _callees(function)}
    found = [
        (tracer, holder)
        for holder in gc.get_referrers(*tracers)
        if id(holder) not in own and not isinstance(holder, FrameType)
        for tracer in tracers
        if any(x is tracer for x in gc.get_referents(holder))
    ]
    if not found:
        return
    listed = "\n".join(f"    {_birth(t)}, held by {_holder(h)}" for t, h in found[:_SHOWN])
    more = f"\n    and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    raise UnexpectedTracerError(
        f"Leaked: after {kind} has traced {function.name!r}, tracers are still referred to:\n"
        f"{listed}{more}",
        "Return values from the function instead of storing them in globals, attributes or lists "
        "outside it.",
        where=describe_location(function.location),
    )


def _callees(function: Function) -> Iterator[Function]:
    for callee in function.callees():
        yield callee
        yield from _callees(callee)


def _tracers(function: Function) -> Iterator[Tracer]:
    for variable in (*function.inputs, *function.captures):
        if type(variable) is Tracer:
            yield variable
    for equation in function.equations:
        yield from (x for x in equation.results if type(x) is Tracer)


def _birth(tracer: Tracer) -> str:
    owner = tracer.value.owner
    location = getattr(owner, "location", None)
    place = describe_location(location) if location is not None else None
    made = f"made at {place}" if place else "an argument"
    return f"{tracer.type} ({made})"


def _holder(holder: object) -> str:
    """Describes an object that refers to a tracer: by its name, if it has one."""
    if isinstance(holder, CellType):
        return "a variable that a closure captured"
    for outer in gc.get_referrers(holder):
        if isinstance(outer, dict):
            name = next((k for k, v in outer.items() if v is holder), None)
            module = outer.get("__name__")
            if isinstance(name, str) and isinstance(module, str):
                return f"the {type(holder).__name__} {module}.{name}"
    if isinstance(holder, dict):
        return _dictionary(holder)
    return f"a {type(holder).__name__} of {len(gc.get_referents(holder))} items"


def _dictionary(holder: dict[object, object]) -> str:
    for outer in gc.get_referrers(holder):
        if isinstance(outer, ModuleType):
            return f"a global variable of the module {outer.__name__}"
        if getattr(outer, "__dict__", None) is holder:
            return f"an attribute of a {type(outer).__name__} object"
    name = holder.get("__name__")
    return f"a global variable of the module {name}" if name else "a dict"
