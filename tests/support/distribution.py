"""How tests are dealt to the workers of pytest-xdist: each file to one worker, long files first.

The tests of a file share what is costly: fixtures of module scope, which hold compiled programs,
and what JAX compiled for one of them and has ready for the next. Dealt one by one, every worker
would make all of it. Files whose tests share nothing and take minutes are dealt test by test.

What does not live here: what the tests cost (`run_report.py`).
"""

from __future__ import annotations

import os

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

_DEALT_BY_TEST = ("tests/dialect/table/test_compiled.py",)
# A long file that begins last has the other workers wait: nothing but the balance depends on this.
_LONG = (
    "tests/dialect/table/test_compositions.py",
    "tests/repository/test_golden.py",
    "tests/frontend/random/test_random.py",
    "tests/frontend/numpy/test_reductions.py",
    "tests/frontend/lax/test_control_flow.py",
    "tests/frontend/random/test_typed_keys.py",
    *_DEALT_BY_TEST,
)


class FileScheduling(LoadScopeScheduling):
    """Deals whole files, save for those that are dealt by test."""

    def _split_scope(self, nodeid: str) -> str:
        file = _file(nodeid)
        return nodeid if file in _DEALT_BY_TEST else file


def _file(nodeid: str) -> str:
    return nodeid.partition("::")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FileScheduling:
    """Has the controlling process deal files, whatever `--dist` says."""
    return FileScheduling(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the long files first, in the order that the workers are dealt."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        ranks = {file: rank for rank, file in enumerate(_LONG)}
        items.sort(key=lambda item: ranks.get(_file(item.nodeid), len(ranks)))
