"""How tests are dealt to the workers of pytest-xdist: each file to one worker, long files first.

The tests of a file share what is costly: fixtures of module scope, which hold compiled programs,
and what JAX compiled for one of them and has ready for the next. Dealt one by one, every worker
would make all of it. Those of `tests/gpu` share the device, whose threads a driver in software
keeps busy. A file whose tests share nothing and take minutes is dealt test by test, in the end, so
that all workers end together.

Elsewhere: what the tests cost (`run_report.py`).
"""

from __future__ import annotations

import os

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

_TOGETHER = "tests/gpu"
_DEALT_BY_TEST = ("tests/dialect/table/test_compiled.py",)
# A long file that begins late has the other workers wait: nothing but the balance depends on this.
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
    """Deals whole files, save for one that is dealt by test and a folder that is dealt whole."""

    def _split_scope(self, nodeid: str) -> str:
        file = _file(nodeid)
        if file.startswith(_TOGETHER):
            return _TOGETHER
        return nodeid if file in _DEALT_BY_TEST else file


def _file(nodeid: str) -> str:
    return nodeid.partition("::")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FileScheduling:
    """Has the controlling process deal files in their order, whatever `--dist` says."""
    config.option.loadscopereorder = False
    return FileScheduling(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the long files first, and what is dealt by test last."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        ranks = {file: rank for rank, file in enumerate(_LONG)}
        ranks |= dict.fromkeys(_DEALT_BY_TEST, len(_LONG) + 1)
        items.sort(key=lambda item: ranks.get(_file(item.nodeid), len(_LONG)))
