"""Distribution of tests to the workers of pytest-xdist: a file to one worker, long files first.

The tests of a file share costly values: fixtures of module scope, which hold compiled programs, and
programs that JAX compiled for one test and reuses in the next. If tests were dealt one by one,
every worker would make all of them. The tests of `tests/gpu` share the device; a driver in software
keeps its threads busy. A file of long tests that share nothing is dealt test by test, in the end,
so that all workers end together.

Elsewhere: the costs of the tests (`run_report.py`).
"""

from __future__ import annotations

import os

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

_TOGETHER = "tests/gpu"
_DEALT_BY_TEST = ("tests/dialect/table/test_compiled.py",)
# A long file that begins late makes the other workers wait; only the balance depends on this.
_LONG = (
    "tests/dialect/table/test_compositions.py",
    "tests/dialect/table/test_in_kernels.py",
    "tests/runtime/cpp/test_examples.py",
    "tests/frontend/test_long_random_programs.py",
    "tests/runtime/cpp/test_long_programs.py",
    "tests/frontend/test_random_programs.py",
    "tests/runtime/cpp/test_targets.py",
    "tests/frontend/test_four_devices.py",
    "tests/runtime/cpp/test_cmake.py",
    "tests/runtime/cpp/test_sanitizers.py",
    "tests/runtime/cpp/test_state.py",
    "tests/frontend/test_memory.py",
    "tests/distributed/test_example.py",
    "tests/repository/test_wheel.py",
    "tests/repository/test_doctests.py",
)


class FileScheduling(LoadScopeScheduling):
    """Deals whole files, except one that is dealt by test and a folder that is dealt whole."""

    def _split_scope(self, nodeid: str) -> str:
        file = _file(nodeid)
        if file.startswith(_TOGETHER):
            return _TOGETHER
        return nodeid if file in _DEALT_BY_TEST else file


def _file(nodeid: str) -> str:
    return nodeid.partition("::")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FileScheduling:
    """Lets the controlling process deal files in their order, for any `--dist`."""
    config.option.loadscopereorder = False
    return FileScheduling(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the long files first, and the files that are dealt by test last."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        ranks = {file: rank for rank, file in enumerate(_LONG)}
        ranks |= dict.fromkeys(_DEALT_BY_TEST, len(_LONG) + 1)
        items.sort(key=lambda item: ranks.get(_file(item.nodeid), len(_LONG)))
