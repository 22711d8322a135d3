"""The values of axir's options, and every way to set them.

The options themselves stand in `options.py`, one row each. A value is looked up in this order: an
override of the current thread (`with`), `config.update`, the environment when axir was imported,
the default.

>>> config.jax_enable_x64
False
>>> with enable_x64(True):
...     config.jax_enable_x64
True
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

from . import command_line_flags
from .annotations import OptionValue
from .option_kinds import ConfigError, Option
from .options import OPTIONS, UnknownOptionError, option_of_name

__all__ = [
    "Config",
    "ConfigError",
    "UnknownOptionError",
    "UserContext",
    "allow_f16_reductions",
    "array_garbage_collection_guard",
    "auto_pcast",
    "check_tracer_leaks",
    "checking_leaks",
    "config",
    "debug_infs",
    "debug_key_reuse",
    "debug_nans",
    "default_device",
    "default_matmul_precision",
    "default_prng_impl",
    "disable_jit",
    "enable_checks",
    "enable_custom_prng",
    "enable_x64",
    "explain_cache_misses",
    "legacy_prng_key",
    "log_compiles",
    "make_user_context",
    "no_execution",
    "no_tracing",
    "numpy_dtype_promotion",
    "numpy_rank_promotion",
    "remove_size_one_mesh_axis_from_type",
    "softmax_custom_jvp",
    "thread_guard",
    "threefry_partitionable",
    "transfer_guard",
    "transfer_guard_device_to_device",
    "transfer_guard_device_to_host",
    "transfer_guard_host_to_device",
]

_CACHE_KEY_NAMES = tuple(option.name for option in OPTIONS.values() if option.is_in_cache_key)


class CacheKey:
    """The values of all options on which a traced or compiled program depends.

    There is one object for equal values, so that looking up dependent values hashes an address.

    Attributes:
        values: The values, by the names of the options.
    """

    __slots__ = ("values",)

    def __init__(self, values: Mapping[str, OptionValue]):
        self.values = values

    def __repr__(self) -> str:
        return f"CacheKey({', '.join(f'{k}={v!r}' for k, v in self.values.items())})"


_cache_keys: dict[tuple[OptionValue, ...], CacheKey] = {}


def _cache_key(values: tuple[OptionValue, ...]) -> CacheKey:
    key = _cache_keys.get(values)
    if key is None:
        made = CacheKey(dict(zip(_CACHE_KEY_NAMES, values, strict=True)))
        key = _cache_keys.setdefault(values, made)
    return key


class Config:
    """The options' values: `config.<name>` reads one, `update` and `config(...)` set them.

    Values are instance attributes, so that a read on a hot path is a plain attribute read. Only
    while some thread is inside a `with config(...)`, the object belongs to `_OverriddenConfig`. The
    properties of that class ask the thread's overrides first.
    """

    cache_key: CacheKey
    """What a traced or compiled program depends on, hashable."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        state = self.__dict__
        state["_thread"] = threading.local()
        state["_lock"] = threading.Lock()
        state["_override_count"] = 0
        state["_fixed"] = {}
        for option in OPTIONS.values():
            state[option.name] = _initial_value(option, environment or {})
        self._refresh_cache_key()

    def update(self, name: str, value: OptionValue) -> None:
        """Sets an option for all threads.

        A `with config(...)` that is active keeps its value until it ends.

        Raises:
            UnknownOptionError: no option has this name.
            ConfigError: the value is not legal.

        >>> config.update("axir_opt_level", 3)
        >>> config.axir_opt_level
        3
        >>> config.update("axir_opt_level", 2)
        """
        option = option_of_name(name)
        checked = option.check(value, name)
        with self._lock:
            self._check_free(option.name, checked)
            self.__dict__[option.name] = checked
            self._refresh_cache_key()
        if option.name == "jax_logging_level":
            _set_logging_level(checked)

    def fix(self, name: str, value: OptionValue, reason: str) -> None:
        """Fixes the value of an option from now on.

        Args:
            name: The option.
            value: The value.
            reason: Why the value is fixed, as a sentence in the error for another value.
        """
        with self._lock:
            self.__dict__[name] = value
            self._fixed[name] = reason

    def is_fixed(self, name: str) -> bool:
        """Tells whether an option cannot be set any more."""
        return name in self._fixed

    def _check_free(self, name: str, value: OptionValue) -> None:
        reason = self._fixed.get(name)
        if reason is not None and value != self.__dict__[name]:
            raise ConfigError(
                f"The option {name} cannot be set to {value!r} any more: {reason} Set it right "
                "after importing axir, or in the environment "
                f"({' or '.join(option_of_name(name).environment)})."
            )

    def read(self, name: str) -> OptionValue:
        """Returns the value that an option has in this thread."""
        return getattr(self, option_of_name(name).name)

    def config_with_absl(self) -> None:
        """Makes every option a flag of absl, so that the program's command line sets it.

        Raises:
            ConfigError: absl is not installed.
        """
        command_line_flags.define_flags(self.update)

    def parse_flags_with_absl(self) -> None:
        """Makes every option a flag of absl, and sets options from this program's command line.

        Raises:
            ConfigError: absl is not installed, or a flag has a value that is not legal.
        """
        command_line_flags.parse_flags(self.update)

    @property
    def values(self) -> dict[str, OptionValue]:
        """The values of all options in this thread, by name."""
        return {name: getattr(self, name) for name in OPTIONS}

    @property
    def x64_enabled(self) -> bool:
        """Whether arrays may have 64-bit types in this thread: `jax_enable_x64`."""
        return bool(self.jax_enable_x64)

    @property
    def overrides(self) -> dict[str, OptionValue]:
        """The values that are overridden in this thread, by name."""
        return dict(self._thread.__dict__)

    def __call__(self, **values: OptionValue) -> AbstractContextManager[None]:
        """Overrides options in this thread, inside a `with` or in a decorated function.

        >>> with config(jax_enable_x64=True, jax_debug_nans=True):
        ...     config.jax_enable_x64, config.jax_debug_nans
        (True, True)
        """
        checked = {}
        for name, value in values.items():
            option = option_of_name(name)
            checked[option.name] = option.check(value, name)
            self._check_free(option.name, checked[option.name])
        return self._override(checked)

    @contextmanager
    def _override(self, values: Mapping[str, OptionValue]) -> Iterator[None]:
        overrides = self._thread.__dict__
        previous = {name: overrides[name] for name in values if name in overrides}
        overrides.update(values)
        self._count_overrides(1)
        try:
            yield
        finally:
            for name in values:
                del overrides[name]
            overrides.update(previous)
            self._count_overrides(-1)

    def _count_overrides(self, change: int) -> None:
        with self._lock:
            self.__dict__["_override_count"] += change
            is_overridden = self._override_count > 0
            object.__setattr__(self, "__class__", _OverriddenConfig if is_overridden else Config)

    def _refresh_cache_key(self) -> None:
        state = self.__dict__
        state["cache_key"] = _cache_key(tuple(state[name] for name in _CACHE_KEY_NAMES))

    def __getattr__(self, name: str) -> OptionValue:
        found = option_of_name(name).name
        if found == name:
            raise UnknownOptionError(name)  # only while the object is made
        return getattr(self, found)

    def __setattr__(self, name: str, value: OptionValue) -> None:
        option_of_name(name)
        raise ConfigError(f"options are not assigned; call config.update({name!r}, {value!r})")

    def __repr__(self) -> str:
        return f"<axir.config: {', '.join(f'{k}={v!r}' for k, v in self.values.items())}>"


class _OverriddenConfig(Config):
    """The class of the config while any thread overrides an option."""

    @property
    def cache_key(self) -> CacheKey:  # type: ignore[override]
        return _cache_key(tuple(getattr(self, name) for name in _CACHE_KEY_NAMES))


def _thread_value(name: str) -> property:
    def read(self: Config) -> OptionValue:
        overrides = self._thread.__dict__
        return overrides[name] if name in overrides else self.__dict__[name]

    return property(read)


for _name in OPTIONS:
    setattr(_OverriddenConfig, _name, _thread_value(_name))


def _initial_value(option: Option, environment: Mapping[str, str]) -> OptionValue:
    for variable in option.environment:
        if environment.get(variable):
            return option.parse(environment[variable], variable)
    return option.default


def _set_logging_level(level: OptionValue) -> None:
    logging.getLogger("axir").setLevel(level)


config = Config(os.environ)
_set_logging_level(config.jax_logging_level)


def no_execution(new_val: bool = True) -> AbstractContextManager[None]:
    """Overrides `jax_no_execution` in this thread."""
    return config(jax_no_execution=new_val)


def allow_f16_reductions(new_val: bool = True) -> AbstractContextManager[None]:
    """Overrides `jax_allow_f16_reductions` in this thread."""
    return config(jax_allow_f16_reductions=new_val)


def array_garbage_collection_guard(new_val: str | None = None) -> AbstractContextManager[None]:
    """Overrides `jax_array_garbage_collection_guard` in this thread, which has no effect."""
    return config(jax_array_garbage_collection_guard=new_val)


def auto_pcast(new_val: bool = True) -> AbstractContextManager[None]:
    """Overrides `jax_auto_pcast` in this thread, which has no effect."""
    return config(jax_auto_pcast=new_val)


def enable_checks(new_val: bool = True) -> AbstractContextManager[None]:
    """Overrides `jax_enable_checks` in this thread; its checks always run, so it has no effect."""
    return config(jax_enable_checks=new_val)


def remove_size_one_mesh_axis_from_type(new_val: bool = True) -> AbstractContextManager[None]:
    """Overrides `jax_remove_size_one_mesh_axis_from_type` in this thread, without effect."""
    return config(jax_remove_size_one_mesh_axis_from_type=new_val)


def softmax_custom_jvp(new_val: bool = True) -> AbstractContextManager[None]:
    """Overrides `jax_softmax_custom_jvp` in this thread: derivatives are the same either way."""
    return config(jax_softmax_custom_jvp=new_val)


def thread_guard(new_val: bool = True) -> AbstractContextManager[None]:
    """Overrides `jax_thread_guard` in this thread, which has no effect."""
    return config(jax_thread_guard=new_val)


class UserContext:
    """A value defined by the user; compiled functions are traced again for each value.

    Made by `make_user_context`.
    """

    def __init__(self, default: OptionValue):
        self._default = default

    @property
    def value(self) -> OptionValue:
        """The value in this thread."""
        return dict(config.axir_user_contexts).get(self, self._default)

    def get_global(self) -> OptionValue:
        """Returns the value of threads that have not set one."""
        return self._default

    def set_global(self, new_value: OptionValue) -> None:
        """Sets the value of threads that have not set one; it must be hashable."""
        self._default = new_value
        config.update("axir_user_contexts", self._among_others(new_value))

    def __call__(self, new_value: OptionValue) -> AbstractContextManager[None]:
        """Sets the value in this thread, inside a `with`; it must be hashable."""
        return config(axir_user_contexts=self._among_others(new_value))

    def _among_others(self, value: OptionValue) -> tuple[tuple[UserContext, OptionValue], ...]:
        return (*[each for each in config.axir_user_contexts if each[0] is not self], (self, value))


def make_user_context(default_value: OptionValue = None) -> UserContext:
    """Makes a user's context; compiled functions are traced again for each of its values.

    >>> scale = make_user_context(1)
    >>> with scale(3):
    ...     scale.value
    3
    >>> scale.value
    1
    """
    return UserContext(default_value)


def no_tracing(new_val: bool = True) -> AbstractContextManager[None]:
    """Overrides `jax_no_tracing` in this thread."""
    return config(jax_no_tracing=new_val)


def explain_cache_misses(new_val: bool = True) -> AbstractContextManager[None]:
    """Overrides `jax_explain_cache_misses` in this thread."""
    return config(jax_explain_cache_misses=new_val)


def debug_key_reuse(new_val: bool = True) -> AbstractContextManager[None]:
    """Overrides `jax_debug_key_reuse` in this thread."""
    return config(jax_debug_key_reuse=new_val)


def enable_x64(new_val: bool = True) -> AbstractContextManager[None]:
    """Overrides `jax_enable_x64` in this thread."""
    return config(jax_enable_x64=new_val)


def debug_nans(new_val: bool = True) -> AbstractContextManager[None]:
    """Overrides `jax_debug_nans` in this thread."""
    return config(jax_debug_nans=new_val)


def debug_infs(new_val: bool = True) -> AbstractContextManager[None]:
    """Overrides `jax_debug_infs` in this thread."""
    return config(jax_debug_infs=new_val)


def check_tracer_leaks(new_val: bool = True) -> AbstractContextManager[None]:
    """Overrides `jax_check_tracer_leaks` in this thread."""
    return config(jax_check_tracer_leaks=new_val)


def checking_leaks() -> AbstractContextManager[None]:
    """Turns `jax_check_tracer_leaks` on in this thread."""
    return config(jax_check_tracer_leaks=True)


def disable_jit(disable: bool = True) -> AbstractContextManager[None]:
    """Overrides `jax_disable_jit` in this thread."""
    return config(jax_disable_jit=disable)


def log_compiles(new_val: bool = True) -> AbstractContextManager[None]:
    """Overrides `jax_log_compiles` in this thread."""
    return config(jax_log_compiles=new_val)


def numpy_rank_promotion(new_val: str) -> AbstractContextManager[None]:
    """Overrides `jax_numpy_rank_promotion` in this thread: allow, warn or raise."""
    return config(jax_numpy_rank_promotion=new_val)


def numpy_dtype_promotion(new_val: str) -> AbstractContextManager[None]:
    """Overrides `jax_numpy_dtype_promotion` in this thread: standard or strict."""
    return config(jax_numpy_dtype_promotion=new_val)


def threefry_partitionable(new_val: bool) -> AbstractContextManager[None]:
    """Overrides `jax_threefry_partitionable` in this thread."""
    return config(jax_threefry_partitionable=new_val)


def default_prng_impl(new_val: str) -> AbstractContextManager[None]:
    """Overrides `jax_default_prng_impl` in this thread: threefry2x32, rbg or unsafe_rbg."""
    return config(jax_default_prng_impl=new_val)


def enable_custom_prng(new_val: bool = True) -> AbstractContextManager[None]:
    """Overrides `jax_enable_custom_prng` in this thread."""
    return config(jax_enable_custom_prng=new_val)


def legacy_prng_key(new_val: str) -> AbstractContextManager[None]:
    """Overrides `jax_legacy_prng_key` in this thread: allow, warn or error."""
    return config(jax_legacy_prng_key=new_val)


def default_matmul_precision(new_val: str | None) -> AbstractContextManager[None]:
    """Overrides `jax_default_matmul_precision` in this thread."""
    return config(jax_default_matmul_precision=new_val)


def transfer_guard(new_val: str) -> AbstractContextManager[None]:
    """Overrides `jax_transfer_guard` in this thread, for all directions.

    Args:
        new_val: allow, log, disallow, log_explicit or disallow_explicit.
    """
    directions = ("host_to_device", "device_to_device", "device_to_host")
    return config(
        jax_transfer_guard=new_val,
        **{f"jax_transfer_guard_{direction}": new_val for direction in directions},
    )


def transfer_guard_host_to_device(new_val: str) -> AbstractContextManager[None]:
    """Overrides `jax_transfer_guard_host_to_device` in this thread; see `transfer_guard`."""
    return config(jax_transfer_guard_host_to_device=new_val)


def transfer_guard_device_to_device(new_val: str) -> AbstractContextManager[None]:
    """Overrides `jax_transfer_guard_device_to_device` in this thread; see `transfer_guard`."""
    return config(jax_transfer_guard_device_to_device=new_val)


def transfer_guard_device_to_host(new_val: str) -> AbstractContextManager[None]:
    """Overrides `jax_transfer_guard_device_to_host` in this thread; see `transfer_guard`."""
    return config(jax_transfer_guard_device_to_host=new_val)


def default_device(new_val: object) -> AbstractContextManager[None]:
    """Overrides `jax_default_device` in this thread."""
    return config(jax_default_device=new_val)
