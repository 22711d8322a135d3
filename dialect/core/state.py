"""The state of a thread: the open traces, the origin of recorded ops, the names in scope.

The fields of `state` are read anywhere. Only this module changes them, temporarily: by context
managers that restore them, and by `attributed`, which restores them when its loop ends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from iree.compiler import ir

from .annotations import Foreign

Op = TypeVar("Op")


class RecordedOp(Protocol):
    """An op of a program: `Equation`."""

    @property
    def location(self) -> ir.Location:
        """The user's line."""
        ...

    @property
    def operands(self) -> Sequence[Foreign]:
        """Variables, with types."""
        ...

    @property
    def results(self) -> Sequence[Foreign]:
        """Variables, with types."""
        ...


class OpenTrace(Protocol):
    """A function under construction: `Trace`."""

    @property
    def level(self) -> int:
        """How many traces are open around it."""
        ...


@dataclass(frozen=True)
class BatchFrame:
    """The axis over which a pass vectorizes.

    Attributes:
        size: Its extent.
        name: Its name for collectives; None without a name.
        mesh_axes: Axes of a mesh over which it is spread, in ops that state layouts.
        maps_devices: Whether its positions are devices that all run the code as it is. It is not a
            user's `vmap` then, so users' vectorization rules are not called.
    """

    size: int
    name: Hashable | None = None
    mesh_axes: tuple[Hashable, ...] = ()
    maps_devices: bool = False


class State(threading.local):
    """The state of the running thread.

    Later rooms know the types of some fields better: `dialect/program/tracer.py` of traces,
    `dialect/builders/kernels/building.py` of kernels.

    Attributes:
        level: How many traces are open.
        origin: The op that a pass rewrites now; ops that its rules record inherit its location.
        ambient: The trace in which code runs now; it records ops without operands of a trace
            (effects).
        branch: The innermost open trace of a branch, which records all ops of the branch; None
            outside.
        scope: Names of the scopes in which ops are recorded now, joined by slashes.
        batching: The axis over which a pass vectorizes now, a `BatchFrame`; None outside
            vectorization.
        axis_sizes: Extents of the named axes that the code traced now may name.
        tracked_axes: The named axes along which types say whether values vary.
        chosen_axes: The tracked axes along which positions may be in different branches now.
        kernel: The kernel that is being built; None outside.
        kernel_codes: Hashes of the code of a module's kernels, by name, from the first comparison
            in the running pass; None outside of passes.
        formulas: How many loops each formula has in the module that is being legalized, if the
            loops of one formula may share a function; else None.
        grid: The position in its grid of the kernel on blocks that is traced now, the size of the
            grid, and the names of its axes; None outside.
        needed_refs: The refs from outside that functions use, by their code, while transformations
            trace them again; None outside.
        caller: In a thread that works for another one, the user's line there; else None.
        stand_ins: Values that replace tracers of ended traces in closures.
        keeps_origins: Whether computed arrays are kept with the ops that computed them, and traces
            hold them as they are.
        presumed: Adds the constraints to an extent that hold in the code traced now, because it
            would not run otherwise; None if no such constraint holds.
        shows_captures: Whether `keeps_origins` only serves traces that must distinguish arrays
            computed meanwhile from captured arrays.
    """

    def __init__(self) -> None:
        self.level: int = 0
        self.origin: RecordedOp | None = None
        self.ambient: OpenTrace | None = None
        self.branch: OpenTrace | None = None
        self.scope: str = ""
        self.batching: BatchFrame | None = None
        self.axis_sizes: dict[Hashable, int] = {}
        self.tracked_axes: frozenset[Hashable] = frozenset()
        self.chosen_axes: frozenset[Hashable] = frozenset()
        self.kernel: object = None
        self.kernel_codes: dict[str, int] | None = None
        self.formulas: dict[str, int] | None = None
        self.grid: tuple[tuple[Foreign, ...], tuple[Foreign, ...], tuple[Hashable, ...]] | None = (
            None
        )
        self.needed_refs: dict[Foreign, dict[Foreign, None]] | None = None
        self.caller: str | None = None
        self.stand_ins: Mapping[object, object] = {}
        self.keeps_origins: bool = False
        self.shows_captures: bool = False
        self.presumed: Callable[[Foreign], Foreign] | None = None


state = State()


class Change:
    """Sets fields of the state while a `with` block runs.

    >>> with Change(scope="attention"):
    ...     state.scope
    'attention'
    >>> state.scope
    ''
    """

    __slots__ = ("_after", "_before", "_fields")

    def __init__(self, **after: object):
        self._after = after

    def __enter__(self) -> None:
        self._fields = fields = state.__dict__
        after = self._after
        self._before = {name: fields[name] for name in after}
        fields.update(after)

    def __exit__(self, *exception: object) -> None:
        self._fields.update(self._before)


def attributed(ops: Iterable[Op]) -> Iterator[Op]:
    """Yields ops in turn; ops recorded until the next one inherit the location of each.

    The previous origin is restored however the loop ends.
    """
    fields = state.__dict__  # of this thread; the look-up costs more than the rest of a step
    before = fields["origin"]
    try:
        for op in ops:
            fields["origin"] = op
            yield op
    finally:
        fields["origin"] = before


def open_trace(trace: OpenTrace, is_ambient: bool, is_branch: bool) -> Change:
    """Lets a trace record: code runs in it if it is ambient, and stays in it if it is a branch."""
    return Change(
        level=trace.level,
        ambient=trace if is_ambient else state.ambient,
        branch=trace if is_branch else state.branch,
    )


def around_trace(ambient: OpenTrace | None, branch: OpenTrace | None) -> Change:
    """Lets code run as before a trace was opened, with the given innermost traces."""
    return Change(origin=None, ambient=ambient, branch=branch)


def outside_traces() -> Change:
    """Lets code run as if no trace were open: a running program belongs to no trace."""
    return Change(
        ambient=None,
        branch=None,
        origin=None,
        batching=None,
        axis_sizes={},
        tracked_axes=frozenset(),
        chosen_axes=frozenset(),
    )


def on_behalf_of(caller: str | None) -> Change:
    """Lets a thread name a line of the thread that it works for."""
    return Change(caller=caller)


def keeping_origins() -> Change:
    """Keeps computed arrays with the ops that computed them."""
    return Change(keeps_origins=True)


def showing_captures() -> Change:
    """Lets traces distinguish arrays that were computed meanwhile from earlier arrays."""
    return Change(keeps_origins=True, shows_captures=True)


def without_ambient_trace() -> Change:
    """Lets ops without operands of a trace be evaluated instead of recorded."""
    return Change(ambient=None)


def within_scope(name: str) -> Change:
    """Adds the name of one more scope to ops."""
    return Change(scope=f"{state.scope}/{name}" if state.scope else name)


def with_axes(axis_sizes: dict[Hashable, int], tracked: frozenset[Hashable]) -> Change:
    """Lets code name the given axes and no others; types say of some whether values vary."""
    return Change(axis_sizes=axis_sizes, tracked_axes=tracked)


def user_code(axis_sizes: dict[Hashable, int], tracked: frozenset[Hashable]) -> Change:
    """Lets a pass call a user's function, which has its own lines and may name axes."""
    return Change(origin=None, axis_sizes=axis_sizes, tracked_axes=tracked)


def vectorization(
    frame: BatchFrame, axis_sizes: dict[Hashable, int], tracked: frozenset[Hashable]
) -> Change:
    """Tells rules over which axis they vectorize, and code which axes it may name."""
    return Change(batching=frame, axis_sizes=axis_sizes, tracked_axes=tracked)


def standing_in(values: Mapping[Hashable, object]) -> Change:
    """Lets code use tracers of ended traces: these values replace them."""
    return Change(stand_ins={**state.stand_ins, **values})


def presuming(presumed: Callable[[Foreign], Foreign]) -> Change:
    """Lets extents have further constraints while code is traced; types do not get them."""
    return Change(presumed=presumed)


def chosen_along(axes: frozenset[Hashable]) -> Change:
    """Lets code run in a branch that only some positions along some axes may have chosen."""
    return Change(chosen_axes=state.chosen_axes | axes)


def axes_in_scope() -> Hashable:
    """Returns a key that is equal wherever code may name the same axes."""
    return tuple(state.axis_sizes.items()), state.tracked_axes, state.chosen_axes
