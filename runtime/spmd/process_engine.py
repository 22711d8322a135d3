"""`ProcessEngine`: the engine of devices in several processes.

The devices of a process meet first, as in `ThreadEngine`; collectives within one process end there.
For others, the last device to arrive talks to the other processes for all:

1. Every process sends the collective that it has come to, in a slot of fixed size, which also
   carries its part if that is small. So unequal programs are found before anything else is
   exchanged.
2. Larger parts follow, each to the processes that need it.

A reduction adds the parts of a process first, then the sums of the processes in their order; of
large arrays each process adds a piece, and all gather the pieces. Results are equal in all bits on
all devices. Elsewhere: the transport of bytes (`axir.runtime.processes`).
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import struct
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from axir.dialect.core.annotations import HostArray
from axir.dialect.program.meshes.communication import REDUCTIONS, Collective
from axir.runtime.device.devices import Device
from axir.runtime.errors import UnequalProgramsError
from axir.runtime.processes.group import current
from axir.runtime.processes.member import Member, Patience, Transport

from .combination import combined, partial_sum, reduced, scattered
from .engines import Engine, ThreadEngine

# The first slot, in bytes: parts of up to this size take one exchange. With many processes, the
# slots of all processes would take much memory.
_SLOT_BYTES = 4096 + 64
_SMALL_SLOT_BYTES = 64
_MANY_PROCESSES = 16
# The begin of a slot: the number of the run, the number of the step in the run, the collective's
# digest.
_PLACE = struct.Struct("<qq16s")
_DIGEST_BYTES = 16
_TEXT_BYTES = 512
_BYTE = np.dtype(np.uint8)


class _Plan:
    """How processes do a collective together.

    Attributes:
        collective: The collective.
        processes: Those that this one talks to, directly or through others; and itself.
        groups: The groups that these processes have members in.
        positions: For each of the processes its positions in these groups.
        is_everywhere: Whether each process has members in each group.
        is_one_each: Whether it is a reduction over a device of each process.
        text: The collective in words.
        digest: A digest that identifies the collective.
        slot: Memory for this process's first message. One thread at a time sends for the process.
    """

    def __init__(self, collective: Collective, process_of: Sequence[int], me: int):
        self.collective = collective
        self.processes = _connected(
            [{process_of[p] for p in group} for group in collective.groups], me
        )
        self.groups = [g for g in collective.groups if process_of[g[0]] in self.processes]
        self.positions = [
            [p for group in self.groups for p in group if process_of[p] == process]
            for process in self.processes
        ]
        self.is_everywhere = all(
            {process_of[p] for p in group} == set(self.processes) for group in self.groups
        )
        self.is_one_each = (
            collective.kind in REDUCTIONS
            and self.is_everywhere
            and all(len(positions) == 1 for positions in self.positions)
        )
        self.text = str(collective)
        self.digest = hashlib.blake2b(repr(collective).encode(), digest_size=_DIGEST_BYTES).digest()
        many = len(self.processes) > _MANY_PROCESSES
        self.slot = np.zeros(_SMALL_SLOT_BYTES if many else _SLOT_BYTES, _BYTE)


def _connected(sets: Sequence[set[int]], start: int) -> tuple[int, ...]:
    """Returns the union of all sets that are connected to `start` by common members."""
    together = {start}
    while more := [s for s in sets if s & together and not s <= together]:
        together = together.union(*more)
    return tuple(sorted(together))


class Mesh:
    """Devices of several processes, and the transports between the processes.

    Args:
        process_of: For each position in the mesh the process that its device belongs to.
        member: This process.
        connect: Makes the transport among some processes, which all call it.

    Attributes:
        local: The positions of the devices of this process.
    """

    def __init__(
        self,
        process_of: Sequence[int],
        member: Member,
        connect: Callable[[tuple[int, ...]], Transport],
    ):
        self.process_of = tuple(process_of)
        self.member = member
        self.local = tuple(p for p, process in enumerate(process_of) if process == member.index)
        self._connect = connect
        self._transports: dict[tuple[int, ...], Transport] = {}
        self._plans: dict[Collective, _Plan] = {}
        self._runs = 0

    def next_run(self) -> int:
        """Returns the number of the run that begins: all processes count alike."""
        self._runs += 1
        return self._runs

    def plan(self, collective: Collective) -> _Plan:
        """Returns how a collective is done, made when it is first asked for."""
        found = self._plans.get(collective)
        if found is None:
            found = _Plan(collective, self.process_of, self.member.index)
            self._plans[collective] = found
        return found

    def transport(self, processes: tuple[int, ...]) -> Transport:
        """Returns the transport among some processes, made when first asked for."""
        found = self._transports.get(processes)
        if found is None:
            found = self._transports[processes] = self._connect(processes)
        return found


_meshes: dict[tuple[Device, ...], Mesh] = {}


def engine_of(devices: Sequence[Device]) -> Engine:
    """Returns the engine of a run on devices of this process, or of several."""

    def name_of(position: int) -> str:
        return str(devices[position])

    if all(device.is_addressable for device in devices):
        return ThreadEngine(len(devices), name_of=name_of)
    key = tuple(devices)
    mesh = _meshes.get(key)
    if mesh is None:
        member = current()
        assert isinstance(member, Member)
        assert member.connect is not None
        name = ",".join(str(device.id) for device in devices)
        connect = functools.partial(_connected_by, member.connect, name)
        mesh = _meshes[key] = Mesh([device.process_index for device in devices], member, connect)
    return ProcessEngine(mesh, name_of)


def _connected_by(
    connect: Callable[[tuple[int, ...], str], Transport], name: str, processes: tuple[int, ...]
) -> Transport:
    return connect(processes, name)


class ProcessEngine(ThreadEngine):
    """The engine of one run of a program on devices of several processes; see `Engine`.

    Args:
        mesh: The devices.
        name_of: Returns the name of the device at a position for errors.
    """

    def __init__(self, mesh: Mesh, name_of: Callable[[int], str] = "device {}".format):
        super().__init__(len(mesh.local), name_of=name_of)
        self._mesh = mesh
        self._run = mesh.next_run()
        # How many collectives there were, by the processes that did them together.
        self._steps: Counter[tuple[int, ...]] = Counter()

    def _who_meets(self, collective: Collective, position: int) -> tuple[int, ...]:
        if len(self._mesh.plan(collective).processes) == 1:
            return collective.group_of(position)
        return self._mesh.local

    def abort(self, error: BaseException) -> None:
        """Reports that a device has failed, to the other processes too; see `Engine`."""
        is_first = self._failure is None
        super().abort(error)
        if is_first and not self._mesh.member.is_broken:
            self._mesh.member.abort(f"{type(error).__name__}: {error}".splitlines()[0])

    def _combined(
        self, collective: Collective, group: tuple[int, ...], operands: Mapping[int, HostArray]
    ) -> dict[int, HostArray]:
        plan = self._mesh.plan(collective)
        if len(plan.processes) == 1:
            return super()._combined(collective, group, operands)
        self._steps[plan.processes] += 1
        step = self._steps[plan.processes]
        return _Exchange(self._mesh, plan, operands, self._run, step).run()


class _Exchange:
    """One collective of several processes; `run` and `step` are this process's position."""

    def __init__(
        self, mesh: Mesh, plan: _Plan, operands: Mapping[int, HostArray], run: int, step: int
    ):
        self._mesh, self._plan, self._operands = mesh, plan, operands
        self._collective = plan.collective
        self._patience = Patience(mesh.member, plan.text, plan.processes)
        self._transport = mesh.transport(plan.processes)
        self._run, self._step = run, step
        self._me = plan.processes.index(mesh.member.index)

    def run(self) -> dict[int, HostArray]:
        """Runs the collective; returns the result of each device of this process."""
        kind = self._collective.kind
        if self._plan.is_one_each:
            return self._reduce_one_each()
        if kind in (*REDUCTIONS, "reduce_scatter") and self._plan.is_everywhere:
            return self._reduce()
        if kind in ("all_to_all", "ppermute"):
            return self._send_what_is_needed()
        return self._gather_all()

    # Reductions ----------------------------------------------------------------------------------

    def _reduce(self) -> dict[int, HostArray]:
        """Adds this process's parts of each group, and then the sums of the processes."""
        collective, groups = self._collective, self._plan.groups
        kind = collective.kind if collective.kind in REDUCTIONS else "psum"
        partial = [
            partial_sum(kind, [self._operands[p] for p in group if p in self._operands])
            for group in groups
        ]
        stacked = partial[0].reshape(-1)
        if len(partial) > 1:
            stacked = np.concatenate([x.reshape(-1) for x in partial])
        total = self._all_reduced(kind, stacked)
        part = collective.operand_type
        results: dict[int, HostArray] = {}
        pieces = [total] if len(groups) == 1 else np.split(total, len(groups))
        for group, piece in zip(groups, pieces, strict=True):
            whole = piece.reshape(part.shape).astype(part.dtype, copy=False)
            if collective.kind == "reduce_scatter":
                each = scattered(collective, whole, len(group))
            else:
                each = [whole] * len(group)
            found = dict(zip(group, each, strict=True))
            results |= {p: found[p] for p in group if p in self._operands}
        for result in results.values():
            result.flags.writeable = False
        return results

    def _reduce_one_each(self) -> dict[int, HostArray]:
        """Adds the arrays of one device of each process."""
        ((position, operand),) = self._operands.items()
        part = self._collective.operand_type
        own = partial_sum(self._collective.kind, [operand]).reshape(-1)
        total = self._all_reduced(self._collective.kind, own).reshape(part.shape)
        if total.dtype != part.dtype:
            total = total.astype(part.dtype)
        total.flags.writeable = False
        return {position: total}

    def _all_reduced(self, kind: str, own: HostArray) -> HostArray:
        """Returns the reduction of the processes' arrays, with equal bits in all processes."""
        count = len(self._plan.processes)
        content = np.ascontiguousarray(own).view(_BYTE)
        slots, is_inside = self._meet(content)
        if is_inside or count == 2:
            rows = slots if is_inside else self._transport.all_gather(content, self._patience)
            return reduced(kind, rows.view(own.dtype))
        ends = [own.size * n // count for n in range(count + 1)]
        pieces = [own[a:b].view(_BYTE) for a, b in itertools.pairwise(ends)]
        mine = pieces[self._me].size
        came = self._transport.all_to_all(pieces, [mine] * count, self._patience)
        total = reduced(kind, [x.view(own.dtype) for x in came]).view(_BYTE)
        # Each process sends its piece to all: the pieces may differ in size by an element.
        totals = self._transport.all_to_all(
            [total] * count, [piece.size for piece in pieces], self._patience
        )
        return np.concatenate([x.view(own.dtype) for x in totals])

    # Others --------------------------------------------------------------------------------------

    def _gather_all(self) -> dict[int, HostArray]:
        """Gathers the parts of all devices, and computes the results of this process's devices."""
        content = self._joined(self._plan.positions[self._me])
        widest = max(map(len, self._plan.positions)) * self._part_bytes
        content = np.concatenate([content, np.zeros(widest - content.size, _BYTE)])
        slots, is_inside = self._meet(content)
        found = slots if is_inside else self._transport.all_gather(content, self._patience)
        parts: dict[int, HostArray] = {}
        for positions, row in zip(self._plan.positions, found, strict=True):
            parts |= self._parts(positions, row)
        return self._results(parts)

    def _send_what_is_needed(self) -> dict[int, HostArray]:
        """Sends each process the parts that its devices need."""
        self._meet(np.empty(0, _BYTE))
        needs = [self._needed(positions) for positions in self._plan.positions]
        sent = [
            self._joined([p for p in self._plan.positions[self._me] if p in need]) for need in needs
        ]
        mine = needs[self._me]
        coming = [[p for p in positions if p in mine] for positions in self._plan.positions]
        sizes = [len(positions) * self._part_bytes for positions in coming]
        found = self._transport.all_to_all(sent, sizes, self._patience)
        parts: dict[int, HostArray] = {}
        for positions, row in zip(coming, found, strict=True):
            parts |= self._parts(positions, row)
        return self._results(parts)

    def _needed(self, receivers: Sequence[int]) -> set[int]:
        """Returns the positions that the given devices need parts from."""
        needed: set[int] = set()
        for group in self._plan.groups:
            members = [p for p in group if p in receivers]
            if self._collective.kind == "ppermute":
                pairs = self._collective.permutation
                needed |= {group[sender] for sender, to in pairs if group[to] in members}
            elif members:
                needed |= set(group)
        return needed

    def _results(self, parts: Mapping[int, HostArray]) -> dict[int, HostArray]:
        """Returns the results of this process's devices, given all parts that they need."""
        results: dict[int, HostArray] = {}
        nothing = np.zeros(self._collective.operand_type.shape, self._collective.operand_type.dtype)
        for group in self._plan.groups:
            if any(p in self._operands for p in group):
                found = combined(self._collective, [parts.get(p, nothing) for p in group])
                results |= {p: x for p, x in zip(group, found, strict=True) if p in self._operands}
        return results

    # Bytes ---------------------------------------------------------------------------------------

    @property
    def _part_bytes(self) -> int:
        part = self._collective.operand_type
        return part.size * part.dtype.itemsize

    def _joined(self, positions: Sequence[int]) -> HostArray:
        parts = [np.ascontiguousarray(self._operands[p]).reshape(-1).view(_BYTE) for p in positions]
        return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, _BYTE), *parts])

    def _parts(self, positions: Sequence[int], row: HostArray) -> dict[int, HostArray]:
        part, size = self._collective.operand_type, self._part_bytes
        return {
            p: row[n * size : (n + 1) * size].view(part.dtype).reshape(part.shape)
            for n, p in enumerate(positions)
        }

    def _meet(self, content: HostArray) -> tuple[HostArray, bool]:
        """Sends the collective that this process has come to, and its part if that is small.

        Returns:
            The parts of all processes, and whether they were small.

        Raises:
            UnequalProgramsError: if other processes have come to another collective.
        """
        slot = self._plan.slot
        _PLACE.pack_into(slot.data, 0, self._run, self._step, self._plan.digest)
        is_inside = content.size <= slot.size - _PLACE.size
        end = _PLACE.size + content.size
        if is_inside:
            slot[_PLACE.size : end] = content
        found = self._transport.all_gather(slot, self._patience)
        place = slot[: _PLACE.size].tobytes()
        if found[:, : _PLACE.size].tobytes() != place * len(found):
            raise self._unequal()
        return found[:, _PLACE.size : end] if is_inside else found, is_inside

    def _unequal(self) -> UnequalProgramsError:
        """Returns the error that names the collective of each process."""
        place = f"step {self._step} of run {self._run}"
        text = f"has come to {place}: {self._collective}".encode()[:_TEXT_BYTES]
        slot = np.frombuffer(text.ljust(_TEXT_BYTES, b"\0"), _BYTE)
        found = self._transport.all_gather(slot, self._patience)
        told = "; ".join(
            f"process {process} {row.tobytes().rstrip(bytes(1)).decode(errors='replace')}"
            for process, row in zip(self._plan.processes, found, strict=True)
        )
        error = UnequalProgramsError(
            f"The processes of a mesh do not run the same collectives in the same order: {told}.",
            "Let all processes run the same programs in the same order: what they compute may not "
            "depend on which process it is, or on values that differ between them.",
        )
        self._mesh.member.fail(lambda: type(error)(error.message, error.way_out))
        return error
