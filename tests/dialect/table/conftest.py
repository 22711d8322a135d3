"""Settings of the tests generated from the op table."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from axir.dialect.core.config import config
from axir.dialect.ops.calls.jit_call import set_executor


@pytest.fixture(autouse=True)
def all_dtypes() -> None:
    """Lets samples keep their 64-bit dtypes."""
    config.update("jax_enable_x64", True)


@pytest.fixture(autouse=True)
def evaluated_calls() -> Iterator[None]:
    """Has the evaluator run the bodies of calls, which otherwise are compiled."""
    executor = set_executor(None)
    yield
    set_executor(executor)
