"""What all tests share: a clean environment, and options that no test leaves changed."""

from __future__ import annotations

import functools
import gc
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from types import ModuleType

import pytest
from hypothesis import settings
from support.memory import release_free_memory, resident_memory

# Bytes by which a process may grow before it is asked to forget what it can make again.
MAX_GROWTH = 500_000_000
pytest_plugins = ["support.distribution", "support.run_report"]

# JAX is the oracle for small arrays, and compiles a program for each op and shape: in half to a
# third of the time where XLA does not optimize. It ends a process that names a flag which it does
# not know, and its inside changes: only the versions of JAX that were tried get what is done here.
XLA_FLAGS = (
    "--xla_backend_optimization_level=0",
    "--xla_cpu_use_fusion_emitters=false",
    "--xla_cpu_parallel_codegen_split_count=1",
)
KNOWS_JAX = version("jax").startswith("0.10.")

# The workers of pytest-xdist inherit the environment that the controlling process prepares here,
# before anything imports axir.
IS_CONTROLLER = "PYTEST_XDIST_WORKER" not in os.environ
# How many devices a process has is settled as it begins: tests/four_devices has one of its own.
CPU_DEVICES = os.environ.get("TEST_CPU_DEVICES")
# The value of `axir_compiler` under which all tests run that do not set it themselves.
COMPILER = os.environ.get("TEST_COMPILER", "auto")
# Fixtures of pytest by which a test sees or changes what all threads of the process share.
WATCHING = frozenset({"caplog", "monkeypatch"})
if IS_CONTROLLER:
    for variable in [name for name in os.environ if name.startswith(("AXIR_", "JAX_"))]:
        del os.environ[variable]
    os.environ["JAX_PLATFORMS"] = "cpu"
    flags = XLA_FLAGS if KNOWS_JAX else ()
    if CPU_DEVICES:
        flags = (*flags, f"--xla_force_host_platform_device_count={CPU_DEVICES}")
    if flags:
        os.environ["XLA_FLAGS"] = " ".join(flags)
    if COMPILER != "auto":
        os.environ["AXIR_COMPILER"] = COMPILER
    os.environ["AXIR_CACHE_DIR"] = tempfile.mkdtemp(prefix="axir-test-cache-")
    # Tests start a hundred processes, each of which compiled axir's modules for a second without.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False

# A compilation within an example takes longer than hypothesis expects of one.
settings.register_profile("axir", deadline=None, derandomize=True)
settings.load_profile("axir")


_resident_after_clearing = 0


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "chooses_compiler: runs under `axir_compiler='auto'` always")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips what compares with JAX where another JAX is all that there is, as on Python 3.10."""
    if KNOWS_JAX:
        return
    skip = pytest.mark.skip(reason=f"compares with JAX 0.10, and JAX {version('jax')} is installed")
    for item in items:
        if isinstance(item, pytest.Function) and _uses_jax(item.module):
            item.add_marker(skip)


@functools.cache
def _uses_jax(module: ModuleType) -> bool:
    """Whether a module of tests, or one of their support that it imports from, imports JAX."""
    seen = {module.__name__}
    waiting = [module]
    while waiting:
        for value in vars(waiting.pop()).values():
            of_module = getattr(
                value, "__name__" if isinstance(value, ModuleType) else "__module__", None
            )
            name = of_module if isinstance(of_module, str) else ""
            if name.partition(".")[0] == "jax":
                return True
            if name.startswith("support.") and name not in seen:
                seen.add(name)
                waiting.append(sys.modules[name])
    return False


def pytest_unconfigure() -> None:
    if IS_CONTROLLER:
        shutil.rmtree(os.environ["AXIR_CACHE_DIR"], ignore_errors=True)


@pytest.fixture(autouse=True)
def bounded_memory() -> Iterator[None]:
    """Has JAX forget its compiled programs, 1.5 MB for each op and shape, before they fill GBs."""
    global _resident_after_clearing
    _hasten_jax()
    yield
    if resident_memory() - _resident_after_clearing > MAX_GROWTH:
        if "jax" in sys.modules:
            sys.modules["jax"].clear_caches()
        gc.collect()
        release_free_memory()
        _resident_after_clearing = resident_memory()


def _hasten_jax() -> None:
    """Has JAX compile all in one context of MLIR: one for each takes a quarter of its time."""
    lowering = sys.modules.get("jax._src.interpreters.mlir")
    if lowering is not None and KNOWS_JAX and not hasattr(lowering.make_ir_context, "cache_info"):
        lowering.make_ir_context = functools.cache(lowering.make_ir_context)
        # No folder is given, but each program's key is made.
        sys.modules["jax"].config.update("jax_enable_compilation_cache", False)


@pytest.fixture(autouse=True)
def idle_compilers(request: pytest.FixtureRequest) -> None:
    """Lets a test that replaces parts of axir or reads the log begin with nothing else running.

    Programs of the tests before it are compiled in the background: its clocks would be theirs.
    """
    background = sys.modules.get("axir.runtime.calls.background")
    if background is not None and not WATCHING.isdisjoint(request.fixturenames):
        background.wait_for_all()


@pytest.fixture
def small_heap() -> Iterator[None]:
    """Has collections of garbage look at what the test makes alone, for tests with many of them."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def restored_options(request: pytest.FixtureRequest) -> Iterator[None]:
    """Gives every test the options that the one before it found."""
    from axir.dialect.core.config import config

    before = config.values
    chooses = COMPILER != "auto" and request.node.get_closest_marker("chooses_compiler")
    if chooses:
        config.update("axir_compiler", "auto")
        os.environ["AXIR_COMPILER"] = "auto"  # for the processes that it starts
    logger = logging.getLogger("axir")  # the command line sets its level
    level = logger.level
    yield
    logger.setLevel(level)
    if chooses:
        os.environ["AXIR_COMPILER"] = COMPILER
    for name, value in before.items():
        if config.read(name) != value and not config.is_fixed(name):
            config.update(name, value)
