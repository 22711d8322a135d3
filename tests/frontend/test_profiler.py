"""Traces: their contents, where they are written, and refusals."""

from __future__ import annotations

import gzip
import json
import logging
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import profiler
from axir.dialect.core.config import config
from axir.dialect.core.timeline import timeline
from axir.errors import ProfileError
from axir.extend.backend import wait_for_compilers
from axir.runtime.calls import background


@pytest.fixture(autouse=True)
def nothing_is_recorded() -> Iterator[None]:
    yield
    assert not timeline.is_on


def events_of(folder: Path, name: str = "*.trace.json.gz") -> list[dict]:
    (file,) = folder.rglob(name)
    content = json.loads(gzip.decompress(file.read_bytes()))
    return [event for event in content["traceEvents"] if event["ph"] == "X"]


def named(events: list[dict], category: str) -> list[str]:
    return [event["name"] for event in events if event["cat"] == category]


HERE = Path(__file__).name


@axir.jit
def program(x: axir.Array) -> axir.Array:
    product = jnp.tanh(x @ x)
    return axir.lax.fori_loop(0, 3, lambda i, a: jnp.sort(a + i), product)


@pytest.fixture
def by_iree() -> None:
    """Programs have dispatches where IREE runs them."""
    config.update("axir_compiler", "iree")


@pytest.mark.usefixtures("by_iree")
def test_a_trace_has_phases_calls_transfers_and_dispatches_with_lines(tmp_path: Path) -> None:
    x = np.ones((32, 32), np.float32)
    expected = program(x)
    with profiler.trace(tmp_path):
        with profiler.StepTraceAnnotation("train", step_num=7):
            result = np.asarray(program(x))
        program(x)
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(program(x), expected)
    events = events_of(tmp_path)
    (step,) = (event for event in events if event["cat"] == "annotation")
    assert step["name"] == "train"
    assert step["args"] == {"step_num": 7}
    phases = named(events, "compiler")
    assert {"lower to StableHLO", "legalize-for-iree", "tune-for-cpu", "compile"} <= {*phases}
    assert phases.count("compile") == 1  # with marks, once
    assert "look up in the cache" in named(events, "cache")
    assert named(events, "call").count("program") == 2
    assert "to the host" in named(events, "transfer")
    dispatches = [event for event in events if event["cat"] == "dispatch"]
    lines = {line.rpartition(":")[2] for d in dispatches for line in d["args"]["lines"]}
    assert all(HERE in d["args"]["line"] for d in dispatches)
    first = program.__wrapped__.__code__.co_firstlineno
    assert {str(first + 2), str(first + 3)} <= lines
    (call,) = (e for e in events if e["name"] == "program" and e["ts"] < step["ts"] + step["dur"])
    inside = [d for d in dispatches if call["ts"] <= d["ts"] < call["ts"] + call["dur"]]
    assert inside
    assert sum(d["dur"] for d in inside) <= call["dur"]


@pytest.mark.chooses_compiler
def test_machine_code_is_one_call(tmp_path: Path) -> None:
    f = axir.jit(lambda x: jnp.tanh(x) * 2)
    with profiler.trace(tmp_path):
        f(np.ones(3, np.float32))
    events = events_of(tmp_path)
    (run,) = (event for event in events if event["name"] == "run lambda")
    assert run["args"]["driver"] == "native"
    assert not named(events, "dispatch")


@pytest.mark.chooses_compiler
def test_a_program_that_serves_until_another_is_there_is_shown_as_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = threading.Semaphore(0)  # the other one is not made until the end
    monkeypatch.setattr(background, "_turns", turns)
    f = axir.jit(lambda x: jnp.tanh(x @ x).sum(axis=0))
    x = np.full((128, 128), 0.01, np.float32)
    expected = f(x)
    with profiler.trace(tmp_path):
        result = f(x)
    turns.release()
    np.testing.assert_array_equal(result, expected)
    assert named(events_of(tmp_path), "dispatch")


@pytest.mark.usefixtures("by_iree")
def test_host_calls_and_donation_work_in_programs_with_marks(tmp_path: Path) -> None:
    def solve(a: axir.Array, b: axir.Array) -> axir.Array:
        doubled = axir.pure_callback(lambda x: 2 * x, axir.ShapeDtypeStruct((4,), "float32"), b)
        return jnp.linalg.solve(a, doubled) + b

    compiled = axir.jit(solve, donate_argnums=1)
    with profiler.trace(tmp_path):
        given = jnp.arange(4.0) + 0
        result = compiled(2 * jnp.eye(4), given)
        with pytest.raises(axir.errors.DeletedArrayError):
            _ = given + 1
    np.testing.assert_allclose(result, 2 * np.arange(4.0))
    assert named(events_of(tmp_path), "dispatch")


def test_levels_choose_what_is_shown(tmp_path: Path) -> None:
    def work() -> None:
        with profiler.TraceAnnotation("mine"):
            axir.jit(lambda x: x * 3 + 1)(np.float32(1))

    options = profiler.ProfileOptions(host_tracer_level=1, device_tracer_level=0)
    with profiler.trace(tmp_path / "a", profiler_options=options):
        work()
    assert [event["name"] for event in events_of(tmp_path / "a")] == ["mine"]
    options = profiler.ProfileOptions(
        python_tracer_level=1, session_id="run", device_tracer_level=0
    )
    with profiler.trace(tmp_path / "b", profiler_options=options):
        work()
    assert (tmp_path / "b/plugins/profile/run").is_dir()
    called = named(events_of(tmp_path / "b"), "python")
    assert any(name.endswith("work") for name in called)


def test_a_perfetto_file_and_a_block_that_raises(tmp_path: Path) -> None:
    @profiler.annotate_function
    def fails() -> None:
        raise KeyError("mine")

    with (
        pytest.raises(KeyError, match="mine"),
        profiler.trace(tmp_path, create_perfetto_trace=True),
    ):
        fails()
    events = events_of(tmp_path, "perfetto_trace.json.gz")
    assert [name.rpartition(".")[2] for name in named(events, "annotation")] == ["fails"]
    assert len(list(tmp_path.rglob("*.gz"))) == 2
    assert fails.__name__ == "fails"


def test_threads_have_rows_of_their_own(tmp_path: Path) -> None:
    def annotate() -> None:
        with profiler.TraceAnnotation("there"):
            pass

    wait_for_compilers()  # of programs of other tests
    with profiler.trace(tmp_path):
        thread = threading.Thread(target=annotate, name="a worker")
        thread.start()
        thread.join()
        with profiler.TraceAnnotation("here"):
            pass
    file = next(tmp_path.rglob("*.trace.json.gz"))
    plane = profiler.ProfileData.from_file(file).find_plane_with_name("Python and axir")
    assert plane is not None
    assert {(line.name, line.events[0].name) for line in plane.lines} == {
        ("a worker", "there"),
        (threading.current_thread().name, "here"),
    }
    assert plane.lines[0].events[0].end_ns >= plane.lines[0].events[0].start_ns


def test_one_trace_at_a_time(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="No profile started"):
        profiler.stop_trace()
    profiler.start_trace(tmp_path)
    with pytest.raises(ProfileError, match=r"(?s)already been started.*stop_trace"):
        profiler.start_trace(tmp_path)
    profiler.stop_trace()


def test_a_full_disk_ends_the_trace(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    profiler.start_trace(tmp_path / "file")
    with pytest.raises((FileExistsError, NotADirectoryError)):
        profiler.stop_trace()
    with profiler.trace(tmp_path):
        pass


def test_what_is_no_trace_is_refused(tmp_path: Path) -> None:
    for content in (b"", b"no trace", gzip.compress(b"[1]"), gzip.compress(b"{}")[:-9]):
        (tmp_path / "x.json.gz").write_bytes(content)
        with pytest.raises(ProfileError, match=r"x\.json\.gz is no trace file of axir"):
            profiler.ProfileData.from_file(tmp_path / "x.json.gz")


def test_the_memory_profile_counts_buffers_and_programs(tmp_path: Path) -> None:
    from axir._profiling.memory import in_use

    kept = axir.jit(lambda x: x + 1)
    before = in_use("cpu").get(("buffer", "float32[17,3]", "cpu:0"), (0, 0))
    results = [kept(jnp.zeros((17, 3))).block_until_ready() for _ in range(2)]
    count, size = in_use("cpu")["buffer", "float32[17,3]", "cpu:0"]
    assert count - before[0] in (2, 3)
    assert size == count * 17 * 3 * 4
    assert any(kind == "executable" and size > 0 for (kind, *_), (_, size) in in_use(None).items())
    profiler.save_device_memory_profile(tmp_path / "memory.prof", backend="cpu")
    content = gzip.decompress((tmp_path / "memory.prof").read_bytes())
    assert b"float32[17,3] on cpu:0" in content
    assert b"space" in content
    assert results[0].shape == (17, 3)
    with pytest.raises(axir.errors.DeviceNotFoundError):
        profiler.device_memory_profile("abacus")


def test_a_server_records_for_whoever_asks() -> None:
    server = profiler.start_server(0)
    try:
        with pytest.raises(ProfileError, match=r"(?s)Only one profiler server.*stop_server"):
            profiler.start_server(0)
        address = f"http://127.0.0.1:{server.port}"
        answer = urllib.request.urlopen(f"{address}/trace?milliseconds=5").read()
        assert "traceEvents" in json.loads(gzip.decompress(answer))
        for query, code in (("trace?milliseconds=never", 400), ("other", 404)):
            with pytest.raises(urllib.error.HTTPError) as failure:
                urllib.request.urlopen(f"{address}/{query}")
            assert failure.value.code == code
            failure.value.close()
    finally:
        profiler.stop_server()
    with pytest.raises(ProfileError, match="No active profiler server"):
        profiler.stop_server()


def test_a_taken_port_is_said(caplog: pytest.LogCaptureFixture) -> None:
    server = profiler.start_server(0)
    profiler.stop_server()
    import socket

    with socket.socket() as other, caplog.at_level(logging.ERROR):
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(ProfileError, match="cannot listen on port"):
            profiler.start_server(other.getsockname()[1])
    assert server.port > 0
