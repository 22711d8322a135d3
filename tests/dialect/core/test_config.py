"""Options: defaults, environment, updates, overrides of one thread, errors."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from axir.dialect.core import config as config_module
from axir.dialect.core.config import Config, ConfigError, UnknownOptionError, config
from axir.dialect.core.options import OPTIONS


def in_another_thread(function: Callable[[], Any]) -> Any:
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(function()))
    thread.start()
    thread.join()
    return results[0]


def test_defaults() -> None:
    fresh = Config()
    assert fresh.jax_enable_x64 is False
    assert fresh.jax_threefry_partitionable is False
    assert fresh.jax_numpy_rank_promotion == "allow"
    assert fresh.jax_numpy_dtype_promotion == "standard"
    assert fresh.jax_default_matmul_precision is None
    assert fresh.axir_driver == "auto"
    assert fresh.axir_cache_dir is None
    assert fresh.values == {name: option.default for name, option in OPTIONS.items()}


def test_every_default_is_legal() -> None:
    for option in OPTIONS.values():
        assert option.check(option.default, option.name) == option.default


@pytest.mark.parametrize("variable", ["JAX_ENABLE_X64", "AXIR_ENABLE_X64"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [("1", True), ("True", True), (" yes ", True), ("ON", True), ("0", False), ("no", False)],
)
def test_environment_sets_booleans(variable: str, text: str, expected: bool) -> None:
    assert Config({variable: text}).jax_enable_x64 is expected


def test_environment_sets_other_types() -> None:
    fresh = Config(
        {
            "AXIR_CACHE_DIR": "/somewhere",
            "AXIR_CACHE_MAX_BYTES": "4096",
            "AXIR_OPT_LEVEL": "3",
            "AXIR_DRIVER": "local-task",
            "JAX_NUMPY_RANK_PROMOTION": "raise",
            "JAX_DEFAULT_MATMUL_PRECISION": "none",
            "JAX_PLATFORMS": "",
        }
    )
    assert fresh.axir_cache_dir == "/somewhere"
    assert fresh.axir_cache_max_bytes == 4096
    assert fresh.axir_opt_level == 3
    assert fresh.axir_driver == "local-task"
    assert fresh.jax_numpy_rank_promotion == "raise"
    assert fresh.jax_default_matmul_precision is None
    assert fresh.jax_platforms is None


def test_variable_of_axir_wins_over_that_of_jax() -> None:
    fresh = Config({"JAX_ENABLE_X64": "1", "AXIR_ENABLE_X64": "0"})
    assert fresh.jax_enable_x64 is False


def test_options_of_axir_have_no_variable_of_jax() -> None:
    assert OPTIONS["axir_driver"].environment == ("AXIR_DRIVER",)
    assert OPTIONS["jax_enable_x64"].environment == ("AXIR_ENABLE_X64", "JAX_ENABLE_X64")


def test_environment_is_read_at_import() -> None:
    command = "from axir.dialect.core.config import config; print(config.jax_enable_x64)"
    finished = subprocess.run(
        [sys.executable, "-c", command],
        env={"JAX_ENABLE_X64": "true", "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert finished.stdout == "True\n"


@pytest.mark.parametrize(
    ("variable", "text", "legal"),
    [
        ("JAX_ENABLE_X64", "perhaps", "True, False"),
        ("AXIR_OPT_LEVEL", "fast", "0, 1, 2, 3"),
        ("AXIR_OPT_LEVEL", "7", "0, 1, 2, 3"),
        ("AXIR_CACHE_MAX_BYTES", "-2", "an integer, at least -1"),
        ("AXIR_DRIVER", "gpu", "'auto', 'local-sync', 'local-task'"),
    ],
)
def test_bad_environment_names_the_variable(variable: str, text: str, legal: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Config({variable: text})
    assert variable in str(caught.value)
    assert f"Legal values: {legal}." in str(caught.value)


def test_update_sets_all_threads() -> None:
    config.update("jax_enable_x64", True)
    assert config.jax_enable_x64 is True
    assert config.read("jax_enable_x64") is True
    assert config.values["jax_enable_x64"] is True
    assert in_another_thread(lambda: config.jax_enable_x64) is True


@pytest.mark.parametrize("value", [1, np.True_, True])
def test_booleans_become_python_booleans(value: Any) -> None:
    config.update("jax_enable_x64", value)
    assert config.jax_enable_x64 is True


def test_default_device_takes_any_object() -> None:
    device = object()
    with config_module.default_device(device):
        assert config.jax_default_device is device
        with config_module.default_device(None):
            assert config.jax_default_device is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("jax_enable_x64", "true"),
        ("jax_enable_x64", 2),
        ("jax_enable_x64", None),
        ("jax_enable_x64", 1.0),
        ("jax_numpy_rank_promotion", "forbid"),
        ("jax_numpy_rank_promotion", None),
        ("jax_numpy_dtype_promotion", True),
        ("jax_default_matmul_precision", "float31"),
        ("axir_cache_max_bytes", True),
        ("axir_cache_max_bytes", -2),
        ("axir_cache_max_bytes", 1.5),
        ("axir_cache_dir", Path("/somewhere")),
        ("axir_opt_level", "2"),
    ],
)
def test_illegal_value_changes_nothing(name: str, value: Any) -> None:
    before = config.values
    with pytest.raises(ConfigError, match=f"of the option {name}. Legal values: "):
        config.update(name, value)
    with pytest.raises(ConfigError):
        config(**{name: value})
    assert config.values == before


@pytest.mark.parametrize(
    "use",
    [
        lambda: config.update("jax_enable_64", True),
        lambda: config.read("jax_enable_64"),
        lambda: config(jax_enable_64=True),
        lambda: config.jax_enable_64,
        lambda: setattr(config, "jax_enable_64", True),
    ],
    ids=["update", "read", "with", "attribute", "assignment"],
)
def test_unknown_name_suggests_the_nearest(use: Callable[[], Any]) -> None:
    with pytest.raises(UnknownOptionError, match="no option 'jax_enable_64'. Did you mean jax_en"):
        use()


def test_unknown_option_is_an_attribute_error_and_a_value_error() -> None:
    with pytest.raises(AttributeError, match="axir.config.values lists them"):
        config.update("zzz", 1)
    with pytest.raises(ValueError, match="no option 'zzz'"):
        config.update("zzz", 1)
    assert not hasattr(config, "zzz")


def test_assignment_names_update() -> None:
    with pytest.raises(ConfigError, match=r"call config.update\('jax_enable_x64', True\)"):
        config.jax_enable_x64 = True
    assert config.jax_enable_x64 is False


def test_overrides_nest_and_end() -> None:
    with config(jax_enable_x64=True, axir_opt_level=0):
        assert (config.jax_enable_x64, config.axir_opt_level) == (True, 0)
        with config(jax_enable_x64=False):
            assert (config.jax_enable_x64, config.axir_opt_level) == (False, 0)
        assert (config.jax_enable_x64, config.axir_opt_level) == (True, 0)
    assert (config.jax_enable_x64, config.axir_opt_level) == (False, 2)
    assert type(config) is Config


def test_override_ends_with_an_exception() -> None:
    with pytest.raises(KeyError), config(jax_enable_x64=True):
        raise KeyError
    assert config.jax_enable_x64 is False
    assert type(config) is Config


def test_override_is_of_one_thread() -> None:
    with config(jax_enable_x64=True):
        assert in_another_thread(lambda: config.jax_enable_x64) is False
        assert in_another_thread(lambda: config.cache_key) != config.cache_key


def test_overrides_of_two_threads_do_not_meet() -> None:
    both_inside = threading.Barrier(2, timeout=10)
    seen: dict[int, tuple[int, int]] = {}

    def work(level: int) -> None:
        with config(axir_opt_level=level):
            both_inside.wait()
            inside = config.axir_opt_level
            both_inside.wait()
        seen[level] = (inside, config.axir_opt_level)

    threads = [threading.Thread(target=work, args=(level,)) for level in (0, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == {0: (0, 2), 3: (3, 2)}
    assert type(config) is Config


def test_update_inside_an_override_shows_when_it_ends() -> None:
    with config(axir_opt_level=0):
        config.update("axir_opt_level", 3)
        assert config.axir_opt_level == 0
        assert in_another_thread(lambda: config.axir_opt_level) == 3
    assert config.axir_opt_level == 3


def test_override_decorates_a_recursive_function() -> None:
    @config_module.enable_x64()
    def depth(n: int) -> list[bool]:
        return [config.jax_enable_x64, *(depth(n - 1) if n else [])]

    assert depth(2) == [True, True, True]
    assert config.jax_enable_x64 is False


@pytest.mark.parametrize(
    ("manager", "name", "value"),
    [
        (config_module.enable_x64, "jax_enable_x64", True),
        (config_module.debug_nans, "jax_debug_nans", True),
        (config_module.debug_infs, "jax_debug_infs", True),
        (config_module.check_tracer_leaks, "jax_check_tracer_leaks", True),
        (config_module.disable_jit, "jax_disable_jit", True),
        (config_module.log_compiles, "jax_log_compiles", True),
        (config_module.numpy_rank_promotion, "jax_numpy_rank_promotion", "raise"),
        (config_module.numpy_dtype_promotion, "jax_numpy_dtype_promotion", "strict"),
        (config_module.threefry_partitionable, "jax_threefry_partitionable", True),
        (config_module.default_matmul_precision, "jax_default_matmul_precision", "float32"),
    ],
)
def test_named_context_managers(
    manager: Callable[..., AbstractContextManager[None]], name: str, value: Any
) -> None:
    default = OPTIONS[name].default
    with manager(value):
        assert config.read(name) == value
    assert config.read(name) == default


def test_cache_key_follows_the_options_that_matter() -> None:
    plain = config.cache_key
    with config(jax_log_compiles=True, axir_dump_dir="/somewhere"):
        assert config.cache_key == plain
    with config(jax_enable_x64=True):
        overridden = config.cache_key
    assert overridden != plain
    config.update("jax_enable_x64", True)
    assert config.cache_key == overridden


def test_repr_shows_values() -> None:
    assert "jax_enable_x64=False" in repr(config)
