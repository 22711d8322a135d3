"""Tests on a GPU, which are skipped where there is none; `make test-gpu` runs all of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from support.gpus import REFUSED, found_gpu, gpu_or_skip

from axir.dialect.core.config import config
from axir.extend.backend import clear_backends
from axir.runtime import Device


@pytest.fixture(scope="module", autouse=True)
def closed_in_the_end() -> Iterator[None]:
    """Closes the device after the last test of a file: its threads may never rest."""
    yield
    platforms = config.jax_platforms
    config.update("jax_platforms", None)
    clear_backends()
    config.update("jax_platforms", platforms)


@pytest.fixture
def gpu() -> Device:
    """The device that `TEST_GPU` names."""
    config.update("jax_platforms", None)  # other tests have the CPU only, as JAX beside them
    return gpu_or_skip()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if "TEST_GPU" not in os.environ:
        return
    config.update("jax_platforms", None)
    found = found_gpu(os.environ["TEST_GPU"])
    terminalreporter.section("GPU")
    if isinstance(found, str):
        terminalreporter.line(f"none: {found}")
        return
    terminalreporter.line(f"{found}: {found.device_kind}")
    terminalreporter.line(f"{found.features}")
    for what, reason in REFUSED.items():
        terminalreporter.line(f"refused: {what}: {reason}")
