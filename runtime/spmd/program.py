"""`MeshProgram`: one compiled program that every device of a mesh runs on its parts.

The function computes on the parts of one device, and its collectives name axes of the mesh. It is
compiled once for each kind of device. A call queues it on the devices, each with a separate thread,
and returns arrays with parts that are yet to be computed. Elsewhere: how a function of whole arrays
becomes one of parts (`passes/partition/`), and how devices communicate (`engines.py`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence

import numpy as np
from iree import runtime as iree_runtime

from axir.dialect.core.annotations import HostArray
from axir.dialect.core.array import ConcreteArray, as_array
from axir.dialect.core.config import config
from axir.dialect.core.timeline import on_track, span, timeline
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.costs import largest_operation
from axir.dialect.program.effects import has_effects, names_in
from axir.dialect.program.equation import Var
from axir.dialect.program.function import Function, functions_of, unit_of
from axir.dialect.program.function_rules import HostCall
from axir.dialect.program.meshes.communication import Collective, channel_open
from axir.dialect.program.narrow_elements import bytes_of
from axir.dialect.program.primitive import check_finite
from axir.passes.partition.joined_sums import join_sums
from axir.passes.transforms.simplify import simplify_function
from axir.runtime.calls.arguments import check_donated
from axir.runtime.calls.evaluated_calls import warn_of_missing_marks
from axir.runtime.calls.executable import Executable, Program
from axir.runtime.calls.pending import Lane, QueuedCall, Source, sources_of, unfinished
from axir.runtime.compiler.function_compilation import compile_function
from axir.runtime.compiler.target import Target
from axir.runtime.device.buffers import Buffer, BufferType
from axir.runtime.device.devices import Device
from axir.runtime.device.process_state import call_in_forked_child
from axir.runtime.device.workers import thread_count
from axir.runtime.errors import (
    CollectiveAbortedError,
    CollectiveError,
    CompileError,
    DuplicateDevicesError,
    MeshExecutionError,
    NotAddressableError,
)

from .engines import Engine
from .placement import Placement, ShardedBuffer, host_bytes, sharded_type, spread
from .process_engine import engine_of

EngineMaker = Callable[[Sequence[Device]], Engine]


class MeshProgram:
    """A function of parts, compiled for the devices of a mesh.

    Args:
        function: The computation of each device on its parts of the arguments: an input for each of
            `places`. Its captures are arrays, which every device holds whole.
        devices: The devices, in the order of the mesh.
        axes: Names and extents of the axes of the mesh.
        places: Where the arguments are to lie.
        result_places: Where the results lie.
        donated: Indices of arguments that the program may overwrite.
        further: The last arguments of all calls.
        make_engine: Returns the engine of each run.
    """

    def __init__(
        self,
        function: Function,
        devices: Sequence[Device],
        axes: Sequence[tuple[Hashable, int]],
        places: Sequence[Placement],
        result_places: Sequence[Placement],
        donated: tuple[int, ...] = (),
        further: Sequence[ConcreteArray] = (),
        make_engine: EngineMaker = engine_of,
    ):
        function = simplify_function(function, is_final=True)
        captured = [as_array(x) for x in function.captured]
        function = self.function = join_sums(unit_of(function))
        self.devices = tuple(devices)
        # Positions of this process's devices; other processes run the program on theirs.
        self.local = tuple(p for p, device in enumerate(devices) if device.is_addressable)
        if not self.local:
            raise NotAddressableError(
                f"The program {function.name!r} is to run on {', '.join(map(str, devices))}, none "
                "of which belongs to this process.",
                "Let only processes call it that have devices of its mesh.",
            )
        twice = [d for n, d in enumerate(self.devices) if d in self.devices[:n]]
        if twice:
            raise DuplicateDevicesError(
                f"The program {self.function.name!r} is to run on a mesh that has {twice[0]} more "
                "than once: a device holds one part of each array.",
                "Name each device once, or divide the CPU into more devices (jax_num_cpu_devices).",
            )
        self.places = tuple(places)[: len(places) - len(further)]
        constants = [
            spread(x, place) for x, place in zip(further, places[len(self.places) :], strict=True)
        ]
        self.result_places = tuple(result_places)
        self.donated = donated
        self._make_engine = make_engine
        self.axes = tuple(axes)
        self._executables = self._compiled()
        # The same program with marks of its dispatches, compiled when they are first asked for.
        self._marked: list[Executable] | None = None
        self._constants = [
            [x.parts[number] for x in constants] + [device.put(host_bytes(x)) for x in captured]
            for number, device in enumerate(self.local_devices)
        ]
        self._part_types = [
            [_part_type(v, device, function) for v in function.outputs]
            for device in self.local_devices
        ]
        self._wholes = [
            (_whole_type(v.type, place), _sharded_type(kind, place), place)
            for v, kind, place in zip(
                function.outputs, self._part_types[0], result_places, strict=True
            )
        ]

    @property
    def code_size(self) -> int:
        """Size of the compiled program in bytes; 0 before it is compiled."""
        return self._executables[0].program.size if self._executables else 0

    @property
    def local_devices(self) -> list[Device]:
        """The devices of this process, in the order of the mesh."""
        return [self.devices[position] for position in self.local]

    def executables(self) -> list[Executable]:
        """Returns the program on each device, with marks of its dispatches if these are traced."""
        if not timeline.shows_dispatches:
            return self._executables
        if self._marked is None:
            try:
                self._marked = self._compiled(marks_dispatches=True)
            except CompileError as error:
                self._marked = self._executables
                warn_of_missing_marks(self.function.name, error)
        return self._marked

    def _compiled(self, marks_dispatches: bool = False) -> list[Executable]:
        """Returns the program on each device."""
        function = self.function
        if not function.outputs and not has_effects(function):
            return []
        # Each device has a thread, so cores are left over only if there are more cores than
        # devices.
        threads = thread_count() if thread_count() > len(self.local) else 1
        work = largest_operation(function)
        binaries: dict[Target, tuple[bytes, list[HostCall]]] = {}
        executables = []
        for device in self.local_devices:
            target = Target.of_device(device)
            if target not in binaries:
                binaries[target] = self._compiled_for(device, marks_dispatches)
            binary, calls = binaries[target]
            program = Program(binary, device, calls, threads, is_marked=marks_dispatches)
            executables.append(program.function("main", work))
        return executables

    def _compiled_for(self, device: Device, marks_dispatches: bool) -> tuple[bytes, list[HostCall]]:
        """Returns the program for devices like one, and the Python functions that it calls."""
        calls: list[HostCall] = []
        binary = compile_function(
            self.function, device, self.donated, calls, self.axes, marks_dispatches
        )
        return binary, calls

    def __call__(self, arguments: Sequence[ConcreteArray]) -> list[ConcreteArray]:
        """Runs the program on arrays of the types that it was compiled for."""
        return self.run(arguments)

    def run(self, arguments: Sequence[ConcreteArray]) -> list[ConcreteArray]:
        """Runs the program on all devices; returns arrays with parts that are yet to be computed.

        Raises:
            DeletedArrayError: an argument has been deleted or donated.
            DonationError: an array is donated twice, or donated and used.
        """
        if not self._executables:
            return []
        spreads = [spread(x, place) for x, place in zip(arguments, self.places, strict=True)]
        buffers = [[x.parts[number] for x in spreads] for number in range(len(self.local))]
        if self.donated:
            self._give_away(arguments, spreads, buffers)
        operands = [a + b for a, b in zip(buffers, self._constants, strict=True)]
        run = Run(self, self._make_engine(self.devices))
        parts = run.begin(operands)
        results = []
        for number, (array_type, kind, place) in enumerate(self._wholes):
            buffer = ShardedBuffer(kind, [of_device[number] for of_device in parts])
            results.append(ConcreteArray(array_type, None, buffer, place))
        if config.jax_debug_nans or config.jax_debug_infs:
            for x in results:
                check_finite(f"the compiled code of {self.function.name!r}", x.host())
        return results

    def _give_away(
        self,
        arguments: Sequence[ConcreteArray],
        spreads: Sequence[ShardedBuffer],
        buffers: list[list[Buffer]],
    ) -> None:
        """Deletes donated arrays; leaves memory in their place that the program may overwrite."""
        check_donated(arguments, self.donated)
        for number in self.donated:
            for of_device in buffers:
                of_device[number] = of_device[number].owned().moved()
            arguments[number].delete()
            spreads[number].delete()


def _part_type(variable: Var, device: Device, function: Function) -> BufferType:
    """Returns the type of a result on a device."""
    words = variable.type.words
    dtype = bytes_of(np.empty(0, words.dtype)).dtype
    return BufferType(words.shape, dtype, device, _may_be_shared(variable, function))


def _may_be_shared(variable: Var, function: Function) -> bool:
    """Tells whether a result may lie in the memory that all devices of a group share.

    It may if the collective comes last, or is followed only by ops that move nothing in memory.
    """
    made_by = next((e for e in function.equations if any(variable is x for x in e.results)), None)
    if made_by is None:
        return True
    primitive = made_by.primitive
    communicates = bool(names_in(made_by))
    return communicates or primitive.moves_elements or bool(functions_of(made_by.params))


def _whole_type(part: ShapedArray, place: Placement) -> ShapedArray:
    return part.update(shape=place.whole_shape(part.shape))


def _sharded_type(part: BufferType, place: Placement) -> BufferType:
    return sharded_type(place.whole_shape(part.shape), part.dtype, place)


class Run:
    """One run of a program: a queued call for each device, and the engine between them."""

    def __init__(self, program: MeshProgram, engine: Engine):
        self.program = program
        self.engine = engine
        self.lock = threading.Lock()
        self.failure: BaseException | None = None
        # Host functions run under the options of the thread that calls the program.
        self.options = config.overrides

    def begin(self, operands: Sequence[list[Buffer]]) -> list[list[Buffer]]:
        """Queues the calls; returns the results to come of each device."""
        program = self.program
        sources = [sources_of(buffers) for buffers in operands]
        waits_for = unfinished(overwrites=bool(program.donated))
        calls, results = [], []
        # Two runs must come in the same order to all devices that they share.
        with _queueing:
            executables = program.executables()
            for number, device in enumerate(program.local_devices):
                call = _DeviceCall(
                    _lane_of(device), self, number, executables[number], sources[number], waits_for
                )
                results.append(call.promise(program._part_types[number]))
                calls.append(call)
            try:
                for call in calls:
                    call.lane.add(call)
            except BaseException as interrupt:
                self.engine.abort(interrupt)  # some devices would wait forever
                raise
        return results

    def failed(self, error: BaseException, device: Device) -> BaseException:
        """Keeps the first failure of a device, stops all other devices, and returns it."""
        with self.lock:
            if self.failure is None and not isinstance(error, CollectiveAbortedError):
                self.failure = self._described(error, device)
        self.engine.abort(self.failure or error)
        return self.failure or error

    def _described(self, error: BaseException, device: Device) -> BaseException:
        count = len(self.program.devices)
        if isinstance(error, CollectiveError):
            return error
        described = MeshExecutionError(
            f"The program {self.program.function.name!r} failed on {device}, one of {count} "
            f"devices of its mesh: {type(error).__name__}: {error}",
            getattr(error, "way_out", None),
            getattr(error, "where", None) or "",
        )
        described.__cause__ = error
        return described


class _DeviceCall(QueuedCall):
    """The call of a run on one device; it is the channel of the program that it runs."""

    __slots__ = ("_run", "lane", "position")

    def __init__(
        self,
        lane: Lane,
        run: Run,
        number: int,
        executable: Executable,
        sources: list[Source],
        waits_for: list[QueuedCall],
    ):
        super().__init__(lane.queue, executable, sources, waits_for)
        self.lane = lane
        self.position = run.program.local[number]
        self._run = run

    def compute(self, where: str) -> Sequence[iree_runtime.VmRef]:
        """Runs the program; if that fails, stops the other devices' waits for this one."""
        run = self._run
        name, device = run.program.function.name, run.program.devices[self.position]
        try:
            with (
                config(**run.options),
                channel_open(self),
                on_track(device.id, str(device)),
                span(name, "call", line=where, device=str(device)),
            ):
                refs = super().compute(where)
        except Exception as error:
            failure = run.failed(error, device)
            raise failure.with_traceback(None) from failure.__cause__
        except BaseException as interrupt:
            run.engine.abort(interrupt)
            raise
        run.engine.finish(self.position)
        return refs

    def communicate(self, collective: Collective, operand: HostArray) -> HostArray:
        """Runs a collective with the other devices; see `Channel`."""
        if not timeline.is_on:
            return self._run.engine.communicate(collective, self.position, operand)
        group = collective.group_of(self.position)
        names = ", ".join(str(self._run.program.devices[p]) for p in group)
        with span(collective.kind, "collective", bytes=operand.nbytes, devices=names):
            return self._run.engine.communicate(collective, self.position, operand)


_queueing = threading.Lock()
_lanes: dict[Device, Lane] = {}


def _lane_of(device: Device) -> Lane:
    """Returns the queue of a device, which has a separate thread that runs its calls in order."""
    lane = _lanes.get(device)
    if lane is None:
        lane = _lanes[device] = Lane(needs_thread=True)
    return lane


def _forget_lanes() -> None:
    global _queueing
    _queueing = threading.Lock()
    _lanes.clear()


call_in_forked_child(_forget_lanes)
