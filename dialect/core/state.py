"""What a thread is doing: the open traces, on whose behalf ops are recorded, what is in scope.

The fields of `state` are read anywhere. They change here alone, for a while: by context managers
that change them back, and by `attributed`, which does so when its loop ends.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
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
        name: What collectives call it, None if it has no name.
        mesh_axes: Axes of a mesh over which it is spread, where values say how they are.
        maps_devices: Whether its places are devices, each of which runs the code as it stands: no
            `vmap` of a user's, hence what says how to vectorize is not asked.
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
        origin: While a pass rewrites an op, that op: what its rules record inherits its location.
        ambient: The trace in which code runs now: it records ops that no operand ties to a trace
            (effects).
        branch: The innermost open trace of a branch, which records whatever code does in it; None
            outside.
        scope: Names of the scopes in which ops are recorded now, joined by slashes.
        batching: The axis over which a pass vectorizes now, a `BatchFrame`; None outside
            vectorization.
        axis_sizes: Extents of the named axes that the code which is traced now may name.
        tracked_axes: Those of them along which types say whether values vary.
        chosen_axes: Those of the tracked axes along which places may be in different branches now.
        kernel: The kernel that is being built; None outside.
        kernel_codes: Hashes of the code of a module's kernels, by name, as it was when a pass that
            runs compared them first; None outside of passes.
        formulas: How many loops each formula has in the module that is being legalized, if those of
            one formula may share a function; else None.
        grid: Where in its grid a kernel on blocks is that is traced now, how large the grid is, and
            the names of its axes; None outside.
        needed_refs: What functions turned out to use of refs from outside, by their code, while
            transformations trace them again; None outside.
        caller: In a thread that works for another one, the user's line there; else None.
        stand_ins: Values that code gets for tracers that it closes over, whose traces have ended.
        keeps_origins: Whether arrays that are computed are kept with the ops that computed them,
            and traces hold them as they are.
        shows_captures: Whether `keeps_origins` serves those traces alone that are to tell what was
            computed meanwhile from what a function closes over.
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
    """Yields ops in turn; what is recorded until the next one inherits the location of each.

    However the loop over them ends, what was the origin before is so again.
    """
    fields = state.__dict__  # of this thread: looking it up costs more than the rest of a step
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
    """Lets code run as where a trace was opened, for which these two traces were the innermost."""
    return Change(origin=None, ambient=ambient, branch=branch)


def outside_traces() -> Change:
    """Lets code run as if no trace were going on: while a program runs, none is its own."""
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
    """Lets arrays that are computed be kept with the ops that computed them."""
    return Change(keeps_origins=True)


def showing_captures() -> Change:
    """Lets traces tell arrays that were computed meanwhile from those of before."""
    return Change(keeps_origins=True, shows_captures=True)


def without_ambient_trace() -> Change:
    """Lets ops that no operand ties to a trace be evaluated rather than recorded."""
    return Change(ambient=None)


def within_scope(name: str) -> Change:
    """Lets ops carry the name of one more scope."""
    return Change(scope=f"{state.scope}/{name}" if state.scope else name)


def with_axes(axis_sizes: dict[Hashable, int], tracked: frozenset[Hashable]) -> Change:
    """Lets code name the given axes and no others; types say of some whether values vary."""
    return Change(axis_sizes=axis_sizes, tracked_axes=tracked)


def user_code(axis_sizes: dict[Hashable, int], tracked: frozenset[Hashable]) -> Change:
    """Lets a user's function run that a pass calls: it has lines of its own, and may name axes."""
    return Change(origin=None, axis_sizes=axis_sizes, tracked_axes=tracked)


def vectorization(
    frame: BatchFrame, axis_sizes: dict[Hashable, int], tracked: frozenset[Hashable]
) -> Change:
    """Tells rules over which axis they vectorize, and code which axes it may name."""
    return Change(batching=frame, axis_sizes=axis_sizes, tracked_axes=tracked)


def standing_in(values: Mapping[Hashable, object]) -> Change:
    """Lets code use tracers whose traces have ended: it gets these values instead."""
    return Change(stand_ins={**state.stand_ins, **values})


def chosen_along(axes: frozenset[Hashable]) -> Change:
    """Lets code run in a branch that not all places along some axes may have chosen."""
    return Change(chosen_axes=state.chosen_axes | axes)


def axes_in_scope() -> Hashable:
    """Returns what is equal where code may name the same axes."""
    return tuple(state.axis_sizes.items()), state.tracked_axes, state.chosen_axes
