"""Which of two programs of a function serves: the native one, or IREE's."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import axir.numpy as jnp
from axir.dialect.program.function_tracing import trace_function
from axir.extend.backend import wait_for_compilers
from axir.runtime import default_device
from axir.runtime.calls import successor
from axir.runtime.calls.compiled_function import CompiledFunction
from axir.runtime.calls.executable import Executable
from axir.runtime.calls.native_executable import NativeExecutable
from axir.runtime.calls.successor import ProgramTrial

pytestmark = pytest.mark.chooses_compiler


@dataclasses.dataclass
class Follower:
    """IREE's program, whose driver is found after some calls."""

    seconds: float
    calls_left: int = 2

    @property
    def quick(self) -> object:
        """Returns None during the trial of drivers."""
        return None if self.calls_left else "local-sync"


@dataclasses.dataclass
class Native:
    """A native program, which was called once before the trial."""

    seconds: float
    timed_calls: int = 1
    was_overtaken: bool = False
    served_again: tuple[bool, ...] = ()

    def serve_again(self, *, for_good: bool) -> None:
        """Notes the call."""
        self.served_again += (for_good,)


@pytest.mark.parametrize(
    ("native_seconds", "follower_seconds", "order", "winner"),
    [
        (1e-3, 2e-3, "iinnnn", "n"),
        (1e-3, 0.9e-3, "iinnni", "i"),
        (1e-3, 1.05e-3, "iinnni", "i"),  # it gains too little
        (3e-3, 1e-3, "iii", "i"),  # no call of it is needed
    ],
)
def test_the_faster_program_serves(
    native_seconds: float, follower_seconds: float, order: str, winner: str
) -> None:
    native, follower = Native(native_seconds), Follower(follower_seconds)
    trial = ProgramTrial(native, follower)  # type: ignore[arg-type]
    calls = ""
    is_over = False
    while not is_over:
        program, is_over = trial.next()
        if program is native:
            native.timed_calls += 1
        else:
            follower.calls_left = max(0, follower.calls_left - 1)
        calls += "n" if program is native else "i"
    assert calls == order
    assert calls[-1] == winner
    assert native.served_again[-1:] == ((True,) if winner == "n" else native.served_again[-1:])


def test_a_program_that_was_overtaken_serves_no_more() -> None:
    native, follower = Native(0.0, 0, was_overtaken=True), Follower(1.0, 0)
    assert ProgramTrial(native, follower).next() == (follower, True)  # type: ignore[arg-type]


def test_the_native_program_is_timed_by_the_wall_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    x = jnp.asarray(np.ones((310, 310), np.float32))
    traced = trace_function(lambda x: [jnp.tanh(x @ x)], [x.type], name="timed")
    program = CompiledFunction(traced, default_device())
    native = program._executable
    assert isinstance(native, NativeExecutable)
    monkeypatch.setattr(native, "_clock", lambda: 0.0)  # it waits for a processor all the time
    program.run([x])
    assert native.seconds > 0
    assert native.timed_calls == 1


@pytest.mark.parametrize(("ratio", "kind"), [(1e3, NativeExecutable), (0.0, Executable)])
def test_results_stay_while_programs_are_compared(
    ratio: float, kind: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(successor, "_WORTHWHILE_RATIO", ratio)
    monkeypatch.setattr(successor, "_CLEAR_LOSS_RATIO", 1e9)
    x = jnp.asarray(np.random.default_rng(0).normal(size=(310, 310)).astype(np.float32))

    def function(x: Any, y: Any) -> Any:
        return [jnp.tanh(x @ y) - x * ratio]

    traced = trace_function(function, [x.type, x.type], name="compared")
    program = CompiledFunction(traced, default_device(), donated=(1,))
    results, kinds = [], []
    for turn in range(40):
        [result] = program.run([x, x + 0])
        results.append(result.host())
        kinds.append(type(program._executable))
        if not turn:
            wait_for_compilers()
    assert program._trial is None
    assert {NativeExecutable, Executable} == set(kinds)
    assert kinds[-1] is kind
    is_quick = program._native is not None if kind is NativeExecutable else program._results
    assert is_quick
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])
    # What was found serves the next process, which does not try again.
    again = CompiledFunction(traced, default_device(), donated=(1,))
    assert type(again._executable) is kind
    assert again._successor is None
