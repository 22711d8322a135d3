"""Processes that are threads of one: their exchanges, and the errors of a loss."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest

import axir
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.meshes.communication import Collective
from axir.errors import (
    CollectiveAbortedError,
    DistributedSetupError,
    ProcessFailedError,
    ProcessLostError,
    ProcessTimeoutError,
    UnequalProgramsError,
)
from axir.runtime.processes import group
from axir.runtime.processes.coordinator import Coordinator
from axir.runtime.processes.group import without_launcher_variables
from axir.runtime.processes.member import Member, Patience
from axir.runtime.processes.transports import Sockets, SocketTransport
from axir.runtime.processes.wire import Connection, listening
from axir.runtime.spmd.combination import combined
from axir.runtime.spmd.process_engine import Mesh, ProcessEngine


class Job:
    """Processes that are threads: each has a separate member and sockets."""

    def __init__(self, count: int, silence: float = 30):
        self.coordinator = Coordinator(listening("localhost", 0), count, silence)
        self.sockets = [Sockets("localhost") for _ in range(count)]
        self.members: list[Member] = self.all(
            lambda n: Member(
                ("localhost", self.coordinator.port),
                n,
                count,
                {"pid": 100 + n, "host": f"host{n}", "port": self.sockets[n].port},
                20,
                silence,
            ),
            count,
        )
        for member, sockets in zip(self.members, self.sockets, strict=True):
            sockets.know(member.secret)

    def all(self, act: Callable[[int], object], count: int = 0) -> list:
        """Returns each process's result for its number, or its error."""
        results: list = [None] * (count or len(self.members))

        def one(number: int) -> None:
            try:
                results[number] = act(number)
            except Exception as error:
                results[number] = error

        threads = [threading.Thread(target=one, args=(n,)) for n in range(len(results))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert not any(thread.is_alive() for thread in threads), "somebody waits for ever"
        return results

    def meshes(self, process_of: list[int]) -> list[Mesh]:
        def connect(number: int) -> Callable[[tuple[int, ...]], SocketTransport]:
            return lambda processes: SocketTransport(
                processes, str(processes), self.members[number], self.sockets[number]
            )

        return [Mesh(process_of, m, connect(n)) for n, m in enumerate(self.members)]

    def run(self, meshes: list[Mesh], program: Callable) -> dict[int, object]:
        """Runs a program on all devices; returns results or errors by position."""
        results: dict[int, object] = {}

        def one(engine: ProcessEngine, position: int) -> None:
            try:
                results[position] = program(engine, position)
                engine.finish(position)
            except Exception as error:
                results[position] = error
                engine.abort(error)

        engines = [ProcessEngine(mesh) for mesh in meshes]
        places = [(e, p) for e, mesh in zip(engines, meshes, strict=True) for p in mesh.local]
        self.all(lambda n: one(*places[n]), len(places))
        return results

    def end(self) -> None:
        self.all(lambda n: self.members[n].leave(None, 5))
        self.coordinator.close()
        for sockets in self.sockets:
            sockets.close()


@contextmanager
def job(count: int, silence: float = 30) -> Iterator[Job]:
    found = Job(count, silence)
    try:
        yield found
    finally:
        found.end()


def collectives(dtype: object, groups: tuple, shape: tuple[int, int]) -> list[Collective]:
    rows, columns = shape
    size = len(groups[0])

    def kind(*extents: int) -> ShapedArray:
        return ShapedArray(extents, np.dtype(dtype))

    whole, steps = kind(*shape), tuple((i, (i + 1) % size) for i in range(size - 1))
    return [
        *(Collective(name, groups, whole, whole) for name in ("psum", "pmax", "pmin")),
        Collective("all_gather", groups, whole, kind(rows * size, columns), is_tiled=True),
        Collective("all_gather", groups, whole, kind(rows, size, columns), dimension=1),
        Collective("reduce_scatter", groups, whole, kind(rows // size, columns), is_tiled=True),
        Collective(
            "all_to_all", groups, whole, kind(rows // size, columns * size), concat_dimension=1
        ),
        Collective("ppermute", groups, whole, whole, permutation=steps),
    ]


GROUPS = [((0, 1, 2, 3),), ((0, 1), (2, 3)), ((0, 2), (1, 3)), ((0, 3), (2, 1)), ((3, 2, 1, 0),)]


@pytest.mark.parametrize("process_of", [[0, 0, 1, 1], [0, 1, 2, 2], [0, 1, 2, 3]])
def test_collectives_give_what_they_do_in_one_process(process_of: list[int]) -> None:
    random = np.random.default_rng(0)
    with job(max(process_of) + 1) as found:
        meshes = found.meshes(process_of)
        for shape in ((4, 6), (64, 33), (0, 4)):
            for dtype in (np.float32, np.int32, np.float16):
                operands = random.integers(-9, 9, (4, *shape)).astype(dtype)
                steps = [c for groups in GROUPS for c in collectives(dtype, groups, shape)]
                results = found.run(
                    meshes, lambda e, p, s=steps, x=operands: [e.communicate(c, p, x[p]) for c in s]
                )
                for number, step in enumerate(steps):
                    for members in step.groups:
                        expected = combined(step, [operands[p] for p in members])
                        for position, x in zip(members, expected, strict=True):
                            got = results[position]
                            assert isinstance(got, list), got
                            np.testing.assert_array_equal(got[number], x)
                            assert not got[number].flags.writeable


def test_large_sums_are_equal_in_all_bits() -> None:
    random = np.random.default_rng(0)
    x = random.standard_normal((3, 100_003)).astype(np.float32)
    kind = ShapedArray(x[0].shape, x.dtype)
    step = Collective("psum", ((0, 1, 2),), kind, kind)
    with job(3) as found:
        results = found.run(found.meshes([0, 1, 2]), lambda e, p: e.communicate(step, p, x[p]))
    first = results[0]
    assert isinstance(first, np.ndarray)
    np.testing.assert_allclose(first, x.sum(0), rtol=1e-5, atol=1e-5)
    assert all(first.tobytes() == other.tobytes() for other in results.values())


def test_processes_gather_by_name() -> None:
    with job(3) as found:

        def talk(number: int) -> list:
            me = found.members[number]
            told = [me.all_gather(bytes([number]), "a"), me.all_gather(b"", "b")]
            return [*told, me.all_gather(b"x" * 100_000 * number, "a")]

        for told in found.all(talk):
            assert told[:2] == [[b"\0", b"\1", b"\2"], [b""] * 3]
            assert list(map(len, told[2])) == [0, 100_000, 200_000]


def test_a_process_alone() -> None:
    alone = group.current()
    assert (alone.index, alone.count, alone.all_gather(b"x", "name")) == (0, 1, [b"x"])


# Failures ----------------------------------------------------------------------------------------

PART = np.ones(4, np.float32)
KIND = ShapedArray(PART.shape, PART.dtype)
PSUM = Collective("psum", ((0, 1),), KIND, KIND)
PMAX = Collective("pmax", ((0, 1),), KIND, KIND)


def test_unequal_programs_are_told_of() -> None:
    with job(2) as found:
        results = found.run(
            found.meshes([0, 1]), lambda e, p: e.communicate((PSUM, PMAX)[p], p, PART)
        )
    for error in results.values():
        assert isinstance(error, UnequalProgramsError), error
        assert "process 0 has come to step 1 of run 1: psum of float32[4]" in str(error)
        assert "process 1 has come to step 1 of run 1: pmax of float32[4]" in str(error)
        assert "same programs in the same order" in str(error)


def test_a_process_that_is_lost_is_named(caplog: pytest.LogCaptureFixture) -> None:
    with job(2) as found:
        meshes = found.meshes([0, 1])

        def program(engine: ProcessEngine, position: int) -> object:
            engine.communicate(PSUM, position, PART)
            if position == 1:  # as the system does when it kills a process
                found.members[1]._is_gone = True
                found.members[1]._connection.close()
                return None
            return engine.communicate(PSUM, position, PART)

        results = found.run(meshes, program)
        told = results[0]
        assert isinstance(told, ProcessLostError), told
        assert "Process 1 (pid 101 on host1) was lost: its connection has ended" in str(told)
        assert "from its last checkpoint" in str(told)
        with pytest.raises(ProcessLostError, match="Process 1"):
            found.members[0].all_gather(b"", "what comes later")
    assert "process 1 (pid 101 on host1) was lost" in caplog.text


def test_a_process_that_falls_silent_is_lost() -> None:
    with job(2, silence=0.5) as found:
        found.members[1]._silence = 1000  # it is silent from now on
        found.members[1]._connection.send = lambda *args: None
        with pytest.raises(ProcessLostError, match=r"Process 1 .*not been heard of for 0.5 sec"):
            found.members[0].all_gather(b"", "never")


def test_a_process_that_has_failed_or_ended_is_named() -> None:
    with job(3) as found:
        found.members[2].leave("ValueError: mine", 5)
        with pytest.raises(ProcessFailedError, match="Process 2 .* has failed: ValueError: mine"):
            found.members[0].all_gather(b"", "never")
    with job(2) as found:
        ended = threading.Thread(target=found.members[1].leave, args=(None, 3))
        ended.start()
        with pytest.raises(ProcessLostError, match="Process 1 .* has ended, and this process wait"):
            found.members[0].all_gather(b"", "never")
        found.members[0].leave(None, 3)
        ended.join()


@contextmanager
def told_by_hand() -> Iterator[tuple[Member, Connection]]:
    """Gives process 0 of two, and the connection by which a coordinator would talk to it."""
    with listening("localhost", 0) as server:
        found: list[Member] = []
        begins = threading.Thread(
            target=lambda: found.append(member(server.getsockname()[1], 0, 2, 10))
        )
        begins.start()
        coordinator = Connection(server.accept()[0])
        assert coordinator.receive()[0]["kind"] == "hello"
        infos = [{"pid": 100 + n, "host": f"host{n}"} for n in range(2)]
        coordinator.send({"kind": "welcome", "infos": infos, "secret": "s"})
        begins.join()
        try:
            yield found[0], coordinator
        finally:
            coordinator.close()
            found[0].leave("the test is over", 1)


@pytest.mark.parametrize("reason", [None, "ValueError: mine"])
def test_a_process_ends_when_all_have_its_last_word(reason: str | None) -> None:
    """Process 0 ends the coordinator after this, which had then not read the word."""
    with told_by_hand() as (me, coordinator):
        leaves = threading.Thread(target=me.leave, args=(reason, 30))
        leaves.start()
        if reason is None:
            coordinator.send({"kind": "bye", "index": 1, "reason": None})
        word, _ = coordinator.receive()
        leaves.join(0.2)
        assert leaves.is_alive()
        coordinator.send({**word, "index": 0})
        coordinator.close()
        leaves.join(10)
        assert not leaves.is_alive()
        assert reason or not me.is_broken


def test_what_a_process_sent_before_it_ended_may_come_after_its_word() -> None:
    with told_by_hand() as (me, coordinator):
        coordinator.send({"kind": "bye", "index": 1, "reason": None})
        while me.ended([1]) is None:
            time.sleep(0.001)
        patience = Patience(me, "what has come", [0, 1])
        patience.look()
        patience.look()
        with pytest.raises(ProcessLostError, match="Process 1 .* has ended, and this process wait"):
            patience.listen()


def test_who_has_come_to_the_end_does_not_wait_for_a_lost_coordinator() -> None:
    with told_by_hand() as (me, coordinator):
        leaves = threading.Thread(target=me.leave, args=(None, 300))
        leaves.start()
        assert coordinator.receive()[0]["kind"] == "bye"
        coordinator.close()
        leaves.join(10)
        assert not leaves.is_alive()
        with pytest.raises(ProcessLostError, match="Process 0 .* was lost: its connection has end"):
            me.check()


def test_an_error_on_a_device_is_told_to_other_processes() -> None:
    def program(engine: ProcessEngine, position: int) -> object:
        if position == 1:
            raise ValueError("my bug")
        return engine.communicate(PSUM, position, PART)

    with job(2) as found:
        told = found.run(found.meshes([0, 1]), program)[0]
    assert isinstance(told, (ProcessFailedError, CollectiveAbortedError)), told
    assert "Process 1 (pid 101 on host1) has failed: ValueError: my bug" in str(told)


def test_who_waits_too_long_tells_what_the_others_do() -> None:
    with job(2) as found, axir.config(axir_collective_timeout=2):
        began = time.monotonic()
        with pytest.raises(ProcessTimeoutError) as caught:
            found.members[0].all_gather(b"", "a place")
        assert 2 <= time.monotonic() - began < 10
    told = str(caught.value)
    assert "process 0 (pid 100 on host0) has waited 2 seconds in a place" in told
    assert "process 1 (pid 101 on host1) is elsewhere" in told
    assert "axir_collective_timeout higher" in told


def member(port: int, index: int, count: int, seconds: float) -> Member:
    return Member(("localhost", port), index, count, {"pid": 1, "host": "h"}, seconds, 30)


def test_processes_that_do_not_fit_together() -> None:
    with socket.socket() as unused:
        unused.bind(("localhost", 0))
        port = unused.getsockname()[1]
    with pytest.raises(DistributedSetupError, match="could not reach process 0 at localhost"):
        member(port, 1, 2, 0.3)
    coordinator = Coordinator(listening("localhost", 0), 2, 30)
    with pytest.raises(DistributedSetupError, match="it was told of 3 processes, process 0 of 2"):
        member(coordinator.port, 1, 3, 5)
    with pytest.raises(DistributedSetupError, match="waited 0.3 seconds until all 2 processes"):
        member(coordinator.port, 1, 2, 0.3)
    with pytest.raises(DistributedSetupError, match="there are two processes 1"):
        member(coordinator.port, 1, 2, 5)
    coordinator.close()


def test_strangers_are_shown_the_door() -> None:
    with job(2) as found:
        for noise in (b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 64):
            for port in (found.coordinator.port, found.sockets[0].port):
                with socket.create_connection(("localhost", port)) as stranger:
                    stranger.sendall(noise)
                    stranger.settimeout(15)
                    assert stranger.recv(1) == b""
        spy = Connection(socket.create_connection(("localhost", found.sockets[0].port)))
        spy.send({"secret": "guessed", "index": 1, "name": "(0, 1)"})
        assert spy.socket.recv(1) == b""
        spy.close()
        assert found.all(lambda n: found.members[n].all_gather(b"", "x")) == [[b"", b""]] * 2


def test_launchers_variables_are_hidden_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PMI_RANK", "0")
    with without_launcher_variables():
        assert "PMI_RANK" not in os.environ
    assert os.environ["PMI_RANK"] == "0"
