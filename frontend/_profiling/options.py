"""The options of a profile: the contents of a trace."""

from __future__ import annotations

from dataclasses import dataclass, field

from axir.dialect.core.annotations import UserObject


@dataclass
class ProfileOptions:
    """The contents of a trace.

    Attributes:
        host_tracer_level: 0 for nothing of this process, 1 for annotations only, 2 for calls,
            phases of compiling and transfers as well.
        device_tracer_level: 0 without dispatches, 1 with them. Programs that are called while they
            are shown are compiled once more, with marks, and kept in the cache.
        python_tracer_level: 1 for the calls of all Python functions outside of axir, which slows
            them down; 0 without.
        duration_ms: Without effect, like the rest: a trace lasts until it is stopped.
        enable_hlo_proto: Without effect.
        include_dataset_ops: Without effect.
        raise_error_on_start_failure: Without effect: errors are always raised.
        repository_path: Without effect.
        session_id: Name of the folder of the trace; by default the time.
        start_timestamp_ns: Without effect.
        advanced_configuration: Without effect.
    """

    host_tracer_level: int = 2
    device_tracer_level: int = 1
    python_tracer_level: int = 0
    duration_ms: int = 0
    enable_hlo_proto: bool = True
    include_dataset_ops: bool = True
    raise_error_on_start_failure: bool = False
    repository_path: str = ""
    session_id: str = ""
    start_timestamp_ns: int = 0
    advanced_configuration: dict[str, UserObject] = field(default_factory=dict)
