"""The state of the current trace, for code that runs while tracing."""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from axir.dialect.core.state import around_trace, axes_in_scope, without_ambient_trace
from axir.dialect.program.tracer import Trace, state


class OpaqueTraceState:
    """Where code runs: equal for two places if they are in the same trace, and under the same axes.

    >>> import axir
    >>> here = get_opaque_trace_state()
    >>> here == get_opaque_trace_state()
    True
    >>> axir.eval_shape(lambda: here == get_opaque_trace_state() or axir.numpy.ones(3)).shape
    (3,)
    """

    __slots__ = ("_axes", "_convention", "_trace")

    def __init__(self, convention: str | None):
        trace = state.ambient
        self._trace = None if trace is None else weakref.ref(trace)
        self._axes = axes_in_scope()
        self._convention = convention

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, OpaqueTraceState)
            and self._trace == other._trace
            and self._axes == other._axes
        )

    def __hash__(self) -> int:
        return hash(self._axes)

    def __repr__(self) -> str:
        trace = None if self._trace is None else self._trace()
        kind = "no trace" if trace is None else f"{trace.kind} trace of {trace.name!r}"
        return f"OpaqueTraceState({kind})"


def get_opaque_trace_state(convention: str | None = None) -> OpaqueTraceState:
    """Returns an object that is equal for all code in the same trace.

    Args:
        convention: Who asks; anything.
    """
    return OpaqueTraceState(convention)


def trace_state_clean() -> bool:
    """Tells whether nothing is being traced in this thread.

    >>> trace_state_clean()
    True
    """
    return state.level == 0


def find_top_trace(_: object = None) -> Trace | None:
    """Returns the trace in which code runs, or None."""
    return state.ambient


@contextmanager
def take_current_trace() -> Iterator[Trace | None]:
    """Gives the trace in which code runs, and has code run in none."""
    trace = state.ambient
    with without_ambient_trace():
        yield trace


@contextmanager
def set_current_trace(trace: Trace | None, check_leaks: bool = False) -> Iterator[None]:
    """Runs code in a trace; `axir.checking_leaks` checks for leaks."""
    with around_trace(trace, state.branch):
        yield


def unsafe_get_axis_names_DO_NOT_USE() -> list[Hashable]:
    """Returns the names of the mapped axes around the code that asks."""
    return list(state.axis_sizes)


def nonempty_axis_env_DO_NOT_USE() -> bool:
    """Tells whether there are named axes around the code that asks."""
    return bool(state.axis_sizes)


def unsafe_am_i_under_a_jit_DO_NOT_USE() -> bool:
    """Tells whether the code that asks is being traced for `jit`."""
    return state.ambient is not None and state.ambient.kind == "Jit"


def unsafe_am_i_under_a_vmap_DO_NOT_USE() -> bool:
    """Tells whether the code that asks is being traced for `vmap`."""
    return state.ambient is not None and state.ambient.kind == "Batch"
