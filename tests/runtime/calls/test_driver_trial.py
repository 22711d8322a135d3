"""Which driver runs a function faster."""

from __future__ import annotations

import pytest

from axir.dialect.program.costs import PARALLEL_OPERATIONS
from axir.runtime.calls.driver_trial import FOR_GOOD, DriverTrial

SYNC, TASK = "local-sync", "local-task"


def seconds(trial: DriverTrial, times: dict[str, float]) -> list[str]:
    used = []
    while not trial.calls_to_rest:
        used.append(trial.driver)
        trial.record(trial.driver, times[trial.driver])
    return used


@pytest.mark.parametrize(
    ("work", "sync_time", "task_time", "tried", "chosen"),
    [
        (0, 2e-6, 1e-6, [SYNC] * 4, SYNC),  # too short to gain
        (0, 2e-4, 1e-4, [SYNC] * 4 + [TASK] * 4, TASK),
        (0, 2e-4, 1.9e-4, [SYNC] * 4 + [TASK] * 4, SYNC),  # no worthwhile gain
        (0, 1e-2, 1.1e-2, [SYNC] * 4 + [TASK] * 4, SYNC),  # as on a busy machine
        (0, 1e-3, 4e-3, [SYNC] * 4 + [TASK] * 4, SYNC),  # a loop of small steps
        (0, 1e-2, 1.8e-2, [SYNC] * 4 + [TASK] * 2, SYNC),  # one call suffices
        (PARALLEL_OPERATIONS, 0.5, 0.3, [TASK] * 4 + [SYNC], TASK),  # without warming up
        (PARALLEL_OPERATIONS, 0.3, 0.5, [TASK] * 4 + [SYNC] * 4, SYNC),
        (PARALLEL_OPERATIONS, 1e-3, 5e-3, [TASK] * 4 + [SYNC] * 4, SYNC),
        (PARALLEL_OPERATIONS, 1e-3, 6e-4, [TASK] * 4 + [SYNC] * 4, TASK),
        (PARALLEL_OPERATIONS, 100.0, 50.0, [TASK] * 4, TASK),  # one core would take too long
    ],
)
def test_the_faster_driver_is_chosen(work, sync_time, task_time, tried, chosen):
    trial = DriverTrial(work)
    assert seconds(trial, {SYNC: sync_time, TASK: task_time}) == tried
    assert trial.driver == chosen


def test_drivers_are_tried_again_and_again():
    trial = DriverTrial(0)
    seconds(trial, {SYNC: 1e-2, TASK: 2e-2})
    assert trial.driver == SYNC
    calls = trial.calls_to_rest
    trial.begin_again()
    seconds(trial, {SYNC: 1e-2, TASK: 6e-3})
    assert trial.driver == TASK
    assert 0 < calls < trial.calls_to_rest < 100
    for _ in range(6):
        trial.begin_again()
        seconds(trial, {SYNC: 1e-2, TASK: 6e-3})
        assert trial.driver == TASK
    assert trial.calls_to_rest == 2048
    trial.begin_again()
    seconds(trial, {SYNC: 1e-2, TASK: 2e-2})  # other programs keep the cores busy
    assert trial.driver == SYNC


def test_the_time_of_a_call_is_known_without_that_of_warming_up():
    trial = DriverTrial(0, (SYNC,))
    trial.record(SYNC, 0.01)
    assert trial.seconds == 0
    trial.record(SYNC, 0.004)
    trial.record(SYNC, 0.003)
    assert trial.seconds == 0.003
    trial = DriverTrial(0, (SYNC,))
    trial.record(SYNC, 0.5)
    assert trial.seconds == 0.5


def test_one_driver_is_decided_after_a_few_calls():
    trial = DriverTrial(PARALLEL_OPERATIONS, (SYNC,))
    assert seconds(trial, {SYNC: 1.0}) == [SYNC] * 4
    assert trial.calls_to_rest == FOR_GOOD
