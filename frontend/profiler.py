"""Looking inside programs: where time and memory go, under the names of `jax.profiler`.

A trace is a file for https://ui.perfetto.dev or `chrome://tracing`: the phases of compiling, calls,
transfers between host and device, and the dispatches of compiled programs with the lines that they
were written in. Without a trace that is recorded, nothing of this takes time.

>>> import axir, axir.numpy as jnp, tempfile
>>> step = axir.jit(lambda x: jnp.sort(x) * 2.0)
>>> folder = tempfile.mkdtemp()
>>> with trace(folder):
...     with StepTraceAnnotation("train", step_num=0):
...         _ = step(jnp.arange(8.0)).block_until_ready()
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from axir._arguments.wrapping import wraps
from axir._profiling.data import ProfileData, ProfileEvent, ProfileLine, ProfilePlane
from axir._profiling.memory import memory_profile
from axir._profiling.python_calls import ProfileOptions, PythonCalls
from axir._profiling.servers import TraceServer, serve_to_perfetto
from axir._profiling.trace_files import (
    PERFETTO_FILE,
    compressed,
    host_file,
    run_folder,
    trace_json,
    write,
)
from axir.dialect.core.annotations import UserFunction, UserObject
from axir.dialect.core.errors import ProfileError
from axir.dialect.core.timeline import span, timeline
from axir.runtime import devices
from axir.runtime.calls.compiled_function import begin_timeline

__all__ = [
    "ProfileData", "ProfileEvent", "ProfileLine", "ProfileOptions", "ProfilePlane",
    "ProfileSession", "StepTraceAnnotation", "TraceAnnotation", "annotate_function",
    "device_memory_profile", "export_profile_data", "save_device_memory_profile", "start_server",
    "start_trace", "stop_server", "stop_trace", "trace",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


class _Session:
    """The trace that is being recorded; at most one is recorded at a time."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.options: ProfileOptions | None = None
        self.log_dir: Path | None = None
        self.perfetto = (False, False)
        self.python_calls = PythonCalls()
        self.server: TraceServer | None = None

    def begin(self, options: ProfileOptions | None) -> None:
        """Begins to record; raises ProfileError if something is recorded already."""
        options = options or ProfileOptions()
        with self.lock:
            if self.options is not None:
                raise ProfileError(
                    "Profile has already been started. Only one profile may be run at a time.",
                    "Call stop_trace before start_trace, or leave the `with trace(...)` block.",
                )
            self.options = options
        begin_timeline(options.device_tracer_level > 0)
        if options.python_tracer_level > 0:
            self.python_calls.begin()

    def end(self) -> bytes:
        """Ends recording; returns the trace file. Raises ProfileError if nothing is recorded."""
        with self.lock:
            options, self.options = self.options, None
        if options is None:
            raise ProfileError("No profile started.", "Call start_trace first.")
        if options.python_tracer_level > 0:
            self.python_calls.end()
        timeline.end()
        shown = {0: ("dispatch",), 1: ("dispatch", "annotation")}.get(options.host_tracer_level)
        if shown is not None:
            timeline.events = [event for event in timeline.events if event.category in shown]
        return compressed(trace_json(timeline))

    def record(self, seconds: float) -> bytes:
        """Records for a while, as a client of the server requests."""
        self.begin(None)
        time.sleep(seconds)
        return self.end()


_session = _Session()


def start_trace(
    log_dir: str | os.PathLike[str],
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> None:
    """Begins to record the events of all threads of this process, until `stop_trace`.

    Args:
        log_dir: Folder for the trace, `plugins/profile/TIME/HOST.trace.json.gz` in it.
        create_perfetto_link: Whether `stop_trace` prints a link that opens the trace in Perfetto,
            and waits until it has been opened.
        create_perfetto_trace: Whether to write the trace as `perfetto_trace.json.gz`, too.
        profiler_options: What to show; see `ProfileOptions`.

    Raises:
        ProfileError: if a trace is being recorded already.
    """
    directory = Path(log_dir)
    _session.begin(profiler_options)
    _session.log_dir = directory
    _session.perfetto = (create_perfetto_link, create_perfetto_trace)


def stop_trace() -> None:
    """Ends the trace, and writes it to the folder that `start_trace` was given.

    Raises:
        ProfileError: if no trace is being recorded.
        OSError: if the file cannot be written.
    """
    options = _session.options
    content = _session.end()
    has_link, has_copy = _session.perfetto
    assert _session.log_dir is not None
    assert options is not None
    _write(content, _session.log_dir, options.session_id, has_link, has_copy)


def _write(content: bytes, log_dir: Path, name: str, has_link: bool, has_copy: bool) -> None:
    names = [host_file(), *([PERFETTO_FILE] if has_link or has_copy else [])]
    write(run_folder(log_dir, name), content, names)
    if has_link:
        serve_to_perfetto(content, PERFETTO_FILE)


@contextmanager
def trace(
    log_dir: str | os.PathLike[str],
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> Iterator[None]:
    """Records events while a `with` block runs, even if it raises; see `start_trace`."""
    start_trace(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options)
    try:
        yield
    finally:
        stop_trace()


class ProfileSession:
    """A trace that stays in memory: a `with` block, or `start()` and `stop()`.

    Args:
        log_dir: Folder for the trace as well, as of `start_trace`; none by default.
        create_perfetto_link, create_perfetto_trace, profiler_options: As of `start_trace`.

    >>> with ProfileSession() as session:
    ...     with TraceAnnotation("a step"):
    ...         pass
    >>> session.is_running, session.profile_data.find_plane_with_name("Python and axir").name
    (False, 'Python and axir')
    """

    def __init__(
        self,
        log_dir: str | os.PathLike[str] | None = None,
        create_perfetto_link: bool = False,
        create_perfetto_trace: bool = False,
        profiler_options: ProfileOptions | None = None,
    ):
        self._log_dir = log_dir
        self._perfetto = (create_perfetto_link, create_perfetto_trace)
        self._options = profiler_options
        self.is_running = False
        self.profile_data: ProfileData | None = None

    def start(self) -> None:
        """Begins to record; raises `ProfileError` if something is recorded already."""
        _session.begin(self._options)
        self.is_running, self.profile_data = True, None

    def stop(self) -> ProfileData:
        """Ends recording and returns the recorded events; `profile_data` keeps them, too.

        Raises:
            ProfileError: if this session is not recording.
            OSError: if the file cannot be written.
        """
        if not self.is_running:
            raise ProfileError("No profile started.", "Call start() of this session first.")
        self.is_running = False
        self.profile_data = ProfileData.from_bytes(_session.end())
        if self._log_dir is not None:
            name = self._options.session_id if self._options else ""
            export_profile_data(self.profile_data, self._log_dir, *self._perfetto, name)
        return self.profile_data

    def export_profile_data(
        self,
        log_dir: str | os.PathLike[str],
        create_perfetto_link: bool = False,
        create_perfetto_trace: bool = False,
        session_id: str | None = None,
    ) -> None:
        """Writes the recorded events to a folder; see `axir.profiler.export_profile_data`."""
        export_profile_data(self, log_dir, create_perfetto_link, create_perfetto_trace, session_id)

    def __enter__(self) -> ProfileSession:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()


def export_profile_data(
    profile_data: ProfileData | ProfileSession,
    log_dir: str | os.PathLike[str],
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    session_id: str | None = None,
) -> None:
    """Writes a trace to a folder, as `stop_trace` does.

    Args:
        profile_data: The trace, or a session that has ended.
        log_dir, create_perfetto_link, create_perfetto_trace: As of `start_trace`.
        session_id: Name of the folder in `plugins/profile`; by default the time.

    Raises:
        ProfileError: if the session has not recorded anything, or the trace was not read from bytes
            that could be written.
        OSError: if the file cannot be written.
    """
    found = profile_data.profile_data if isinstance(profile_data, ProfileSession) else profile_data
    if found is None:
        raise ProfileError(
            "export_profile_data: the session holds no trace.", "Call its stop() first."
        )
    if not found.content:
        raise ProfileError(
            "export_profile_data: the trace was made of a dictionary, so there are no bytes of a "
            "file to write.",
            "Read it by ProfileData.from_file or ProfileData.from_bytes.",
        )
    _write(
        found.content, Path(log_dir), session_id or "", create_perfetto_link, create_perfetto_trace
    )


class TraceAnnotation(span):
    """A `with` block that appears in the trace under a name.

    Args:
        name: The name.
        **kwargs: What else to show of it.

    >>> with TraceAnnotation("read the data", file="digits.csv"):
    ...     pass
    """

    __slots__ = ()

    def __init__(self, name: str, **kwargs: UserObject):
        super().__init__(name, "annotation", **kwargs)

    @staticmethod
    def is_enabled() -> bool:
        """Tells whether a trace is being recorded."""
        return timeline.is_on

    def set_metadata(self, **kwargs: object) -> None:
        """Shows more of it."""
        self.details.update(kwargs)


class StepTraceAnnotation(TraceAnnotation):
    """A `with` block that is a step of training: `step_num=` gives its number.

    >>> for number in range(2):
    ...     with StepTraceAnnotation("train", step_num=number):
    ...         pass
    """

    __slots__ = ()


def annotate_function(
    func: Callable[..., object], name: str | None = None, **decorator_kwargs: object
) -> UserFunction:
    """Returns a function with calls that appear in the trace.

    Args:
        func: The function.
        name: Name of the calls; by default the function's name.
        **decorator_kwargs: What else to show of them.

    >>> @annotate_function
    ... def load(n):
    ...     return n
    >>> load(3)
    3
    """
    label: str = name or getattr(func, "__qualname__", None) or repr(func)

    @wraps(func)
    def annotated(*args: object, **kwargs: object) -> object:
        with TraceAnnotation(label, **decorator_kwargs):
            return func(*args, **kwargs)

    return annotated


def device_memory_profile(backend: str | None = None) -> bytes:
    """Returns the contents of the devices' memory, as a compressed profile for Google's `pprof`.

    Buffers are grouped by dtype, shape and device; compiled programs count, too. Arrays that eager
    operations made lie in the host's memory until a device needs them, and are not in it.

    Args:
        backend: The platform of the devices to include; by default all platforms.

    Raises:
        DeviceNotFoundError: if the platform does not exist.

    >>> device_memory_profile()[:2].hex()
    '1f8b'
    """
    return memory_profile(None if backend is None else devices(backend)[0].platform)


def save_device_memory_profile(
    filename: str | os.PathLike[str], backend: str | None = None
) -> None:
    """Writes `device_memory_profile` to a file: `pprof -top FILE` shows it.

    Raises:
        OSError: if the file cannot be written.
    """
    Path(filename).write_bytes(device_memory_profile(backend))


def start_server(port: int, requires_backend: bool = True) -> TraceServer:
    """Lets others record traces of this process, over HTTP on this machine.

    `http://localhost:PORT/trace?milliseconds=1000` answers with a trace of the next second:
    `curl -o trace.json.gz ...`. TensorBoard's dialog speaks another protocol, for XLA.

    Args:
        port: Where to listen; 0 for any free port, which the result's `port` tells.
        requires_backend: Without effect: the server needs no device.

    Raises:
        ProfileError: if there is a server already, or the port is taken.
    """
    with _session.lock:
        if _session.server is not None:
            raise ProfileError(
                "Only one profiler server can be active at a time.", "Call stop_server first."
            )
        try:
            _session.server = TraceServer(port, _session.record)
        except OSError as error:
            raise ProfileError(
                f"The profiler server cannot listen on port {port}: {error.strerror}.",
                "Choose another port; 0 stands for any that is free.",
            ) from error
        return _session.server


def stop_server() -> None:
    """Ends the server; raises ProfileError if no server runs."""
    with _session.lock:
        server, _session.server = _session.server, None
    if server is None:
        raise ProfileError("No active profiler server.", "Call start_server first.")
    server.stop()
