"""Options of JAX's users: synonyms of axir's options, and options without effect."""

from __future__ import annotations

import logging
from pathlib import Path

import jax
import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir.dialect.core.config import Config, config
from axir.dialect.core.option_kinds import SYNONYMS, ConfigError
from axir.dialect.core.options import OPTIONS
from axir.dialect.ops.reductions.reduce import HalfPrecisionSumError
from axir.errors import ExecutionForbiddenError, TracingForbiddenError
from axir.runtime.compiler.cache import program_cache

# Options of JAX that axir does not have, each with the reason.
LEFT_OUT = {
    "check_vma": "what shard_map checks is an argument of it",
    "jax_cuda_visible_devices": "CUDA_VISIBLE_DEVICES does it, for all programs",
    "jax_debug_log_modules": "Python's logging does it: logging.getLogger('axir').setLevel",
    "jax_error_checking_behavior_divide": "checkify is the way to check",
    "jax_error_checking_behavior_nan": "checkify is the way to check",
    "jax_error_checking_behavior_oob": "checkify is the way to check",
    "jax_explicit_x64_dtypes": "64-bit types without x64 become 32-bit ones",
}


def test_options_of_jax_are_known_or_left_out_with_a_reason() -> None:
    known = {*OPTIONS, *SYNONYMS}
    missing = {name for name in jax.config.values if name not in known}
    assert missing - {*LEFT_OUT} == set()


def test_synonyms_name_the_same_option() -> None:
    with config(jax_compilation_cache_dir="/somewhere"):
        assert config.axir_cache_dir == config.jax_compilation_cache_dir == "/somewhere"
    assert Config({"JAX_COMPILATION_CACHE_DIR": "/else"}).axir_cache_dir == "/else"
    assert (
        Config({"AXIR_CACHE_DIR": "/a", "JAX_COMPILATION_CACHE_DIR": "/b"}).axir_cache_dir == "/a"
    )
    assert Config({"JAX_PLATFORM_NAME": "cpu"}).jax_platforms == "cpu"


def test_options_without_effect_are_taken_and_checked() -> None:
    with config(jax_use_shardy_partitioner=False, jax_traceback_filtering="off"):
        assert config.jax_traceback_filtering == "off"
    with pytest.raises(ConfigError, match="jax_use_shardy_partitioner"):
        config.update("jax_use_shardy_partitioner", "perhaps")
    assert not OPTIONS["jax_use_shardy_partitioner"].has_effect


def test_numbers_are_options() -> None:
    fresh = Config({"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.5"})
    assert fresh.jax_persistent_cache_min_compile_time_secs == 0.5
    with pytest.raises(ConfigError, match="a number, at least 0"):
        config.update("jax_persistent_cache_min_compile_time_secs", -1)


def test_the_cache_keeps_what_options_let_in(tmp_path: Path) -> None:
    def programs(**options: object) -> int:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        with config(axir_cache_dir=str(folder), **options):
            axir.jit(lambda x: x * 1.375)(1.0)
        return len(list(folder.iterdir()))

    assert programs(jax_enable_compilation_cache=False) == 0
    assert programs(jax_persistent_cache_min_compile_time_secs=1000) == 0
    assert programs(jax_persistent_cache_min_entry_size_bytes=1 << 30) == 0
    assert programs(jax_compilation_cache_max_size=-1) == 1
    # IREE's program, and the link to it from the module before legalization.
    assert programs(jax_compilation_cache_max_size=-1, axir_compiler="iree") == 2
    (tmp_path / "file").write_text("")
    with config(axir_cache_dir=str(tmp_path / "file"), jax_raise_persistent_cache_errors=True):
        with pytest.raises(OSError, match="file"):
            program_cache().put("key", b"program")


def test_tracing_is_forbidden_and_explained(caplog: pytest.LogCaptureFixture) -> None:
    double = axir.jit(lambda x: 2 * x)
    double(1.0)
    with axir.no_tracing():
        double(3.0)
        with pytest.raises(TracingForbiddenError, match=r"traced for .*int32.*been for .*float32"):
            double(np.arange(3))
    with axir.explain_cache_misses(), caplog.at_level(logging.WARNING):
        double(3.0)
        assert not caplog.records
        double(jnp.zeros(3))
    assert "TRACING CACHE MISS at" in caplog.text
    assert "test_jax_options.py" in caplog.text


def test_seeds_and_optimizations() -> None:
    with config(jax_random_seed_offset=2):
        offset = [axir.random.PRNGKey(40), axir.random.PRNGKey(jnp.array(40))]
    assert all(np.array_equal(key, axir.random.PRNGKey(42)) for key in offset)
    key = axir.random.key(0)
    with config(jax_high_dynamic_range_gumbel=True):
        high = axir.random.gumbel(key, (4,))
    np.testing.assert_array_equal(high, axir.random.gumbel(key, (4,), mode="high"))
    with config(jax_disable_most_optimizations=True):
        assert axir.jit(lambda x: x + 2.5)(1.0) == 3.5


def test_the_level_of_loggers() -> None:
    logger = logging.getLogger("axir")
    before = logger.level
    config.update("jax_logging_level", "DEBUG")
    assert logger.level == logging.DEBUG
    config.update("jax_logging_level", "NOTSET")
    logger.setLevel(before)


def test_nothing_is_computed_where_that_is_forbidden() -> None:
    triple = axir.jit(lambda x: jnp.arange(3.0) * 3 + x)
    x = jnp.ones(3)
    triple(x)
    with axir.no_execution():
        compiled = triple.lower(x).compile()
        for call in (lambda: triple(x), lambda: compiled(x), lambda: x + 1):
            with pytest.raises(ExecutionForbiddenError, match="option jax_no_execution forbids it"):
                call()
    np.testing.assert_array_equal(compiled(x), triple(x))


def test_sums_of_short_numbers_can_be_forbidden() -> None:
    x = jnp.ones(3, jnp.float16)
    with axir.allow_f16_reductions(False):
        assert jnp.sum(x) == 3
        for call in (lambda: axir.lax.reduce_sum(x, axes=(0,)), lambda: axir.jit(_sum)(x)):
            with pytest.raises(HalfPrecisionSumError, match=r"reduce_sum of float16\[3\]"):
                call()
    assert axir.jit(_sum)(x) == 3


def _sum(x: axir.Array) -> axir.Array:
    return axir.lax.reduce_sum(x, axes=(0,))


def test_functions_are_traced_for_each_value_of_a_users_context() -> None:
    scale, other = axir.make_user_context(1), axir.make_user_context()
    traced = []

    @axir.jit
    def scaled(x: axir.Array) -> axir.Array:
        traced.append(scale.value)
        return x * scale.value

    assert scaled(2.0) == 2
    with scale(3), other("a"):
        assert (scaled(2.0), scaled(5.0), other.value) == (6, 15, "a")
        with scale(4):
            assert (scaled(2.0), scale.value) == (8, 4)
    assert (scaled(3.0), scale.value, other.value) == (3, 1, None)
    assert traced == [1, 3, 4]
    other.set_global(5)
    assert other.get_global() == other.value == 5
    config.update("axir_user_contexts", ())


@pytest.mark.parametrize(
    "name",
    [
        "array_garbage_collection_guard", "auto_pcast", "enable_checks", "thread_guard",
        "remove_size_one_mesh_axis_from_type", "softmax_custom_jvp",
    ],
)  # fmt: skip
def test_contexts_of_options_without_effect(name: str) -> None:
    value = "log" if name == "array_garbage_collection_guard" else True
    with getattr(axir, name)(value):
        assert config.read(f"jax_{name}") == value
