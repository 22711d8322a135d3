"""The table of axir's options: one row each, from which every way to set and read it follows.

Elsewhere: the form of an option (`option_kinds.py`), the current values (`config.py`), and the
effect of an option, in the code that reads it.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from .annotations import OptionValue
from .option_kinds import SYNONYMS, ConfigError, Option
from .options_without_effect import WITHOUT_EFFECT


class UnknownOptionError(ConfigError, AttributeError):
    """There is no option of this name."""

    def __init__(self, name: str) -> None:
        near = difflib.get_close_matches(name, list(OPTIONS), n=3, cutoff=0.5)
        hint = f"Did you mean {' or '.join(near)}?" if near else "axir.config.values lists them."
        ValueError.__init__(self, f"axir has no option {name!r}. {hint}")


_PRECISIONS = (
    "default high highest bfloat16 tensorfloat32 float32 "
    "ANY_F8_ANY_F8_F32 ANY_F8_ANY_F8_F32_FAST_ACCUM "
    "ANY_F8_ANY_F8_ANY ANY_F8_ANY_F8_ANY_FAST_ACCUM F16_F16_F16 F16_F16_F32 "
    "BF16_BF16_BF16 BF16_BF16_F32 BF16_BF16_F32_X3 BF16_BF16_F32_X6 BF16_BF16_F32_X9 "
    "TF32_TF32_F32 TF32_TF32_F32_X3 F32_F32_F32 F64_F64_F64"
)

TRANSFER_LEVELS = ("allow", "log", "disallow", "log_explicit", "disallow_explicit")
"""What may be said of transfers, implicit ones and then also explicit ones."""

_TABLE = (
    Option(
        "jax_enable_x64",
        bool,
        False,
        "Gives Python numbers, and arrays whose dtype is not stated, 64 bits, and keeps 64-bit "
        "types that are asked for. When off, 64-bit types become the 32-bit ones.",
        is_in_cache_key=True,
    ),
    Option(
        "jax_debug_nans",
        bool,
        False,
        "Raises FloatingPointError as soon as an operation yields a NaN.",
    ),
    Option(
        "jax_debug_infs",
        bool,
        False,
        "Raises FloatingPointError as soon as an operation yields an infinity.",
    ),
    Option(
        "jax_traceback_filtering",
        str,
        "auto",
        "Whether errors that leave a transformation have only the frames of the user's files in "
        "their tracebacks; 'off' keeps the frames of axir. JAX's other values mean 'auto'.",
        choices=("auto", "off", "tracebackhide", "remove_frames", "quiet_remove_frames"),
    ),
    Option(
        "jax_check_tracer_leaks",
        bool,
        False,
        "Raises an error when a traced function has stored a tracer where it outlives the tracing; "
        "slows tracing down.",
    ),
    Option(
        "jax_pallas_enable_debug_checks",
        bool,
        False,
        "Has checkify check what kernels say by pallas.debug_check; when off, nothing is checked.",
        is_in_cache_key=True,
    ),
    Option(
        "jax_check_static_indices",
        bool,
        False,
        "Raises IndexError for an index out of bounds whose value is known while tracing, unless a "
        "mode tells what happens. When off, reading clamps it and an update there is dropped.",
        is_in_cache_key=True,
    ),
    Option(
        "jax_disable_jit",
        bool,
        False,
        "Makes jit call the function as it stands, and control flow run as Python, so that "
        "values can be printed and inspected.",
    ),
    Option(
        "jax_numpy_rank_promotion",
        str,
        "allow",
        "What axir.numpy does when operands of different rank broadcast.",
        is_in_cache_key=True,
        choices=("allow", "warn", "raise"),
    ),
    Option(
        "jax_numpy_dtype_promotion",
        str,
        "standard",
        "Whether operands of different dtypes promote; under strict only Python numbers "
        "adapt to the other operand.",
        is_in_cache_key=True,
        choices=("standard", "strict"),
    ),
    Option(
        "jax_threefry_partitionable",
        bool,
        False,
        "Selects today's JAX random stream instead of the original one.",
        is_in_cache_key=True,
    ),
    Option(
        "jax_default_prng_impl",
        str,
        "threefry2x32",
        "The generator of keys that are made without naming one, and of keys made of words.",
        is_in_cache_key=True,
        choices=("threefry2x32", "rbg", "unsafe_rbg"),
    ),
    Option(
        "jax_enable_custom_prng",
        bool,
        False,
        "Makes random.PRNGKey return typed keys, as random.key does.",
        is_in_cache_key=True,
    ),
    Option(
        "jax_legacy_prng_key",
        str,
        "allow",
        "What axir.random does when it is given the words of a key instead of a typed key.",
        is_in_cache_key=True,
        choices=("allow", "warn", "error"),
    ),
    Option(
        "jax_default_device",
        object,
        None,
        "The device of results that no operand commits to another one; None is the first device.",
        is_in_cache_key=True,
    ),
    Option(
        "jax_platforms",
        str,
        None,
        "Platforms to offer, separated by commas, the default one first; None offers all.",
    ),
    Option(
        "jax_transfer_guard",
        str,
        None,
        "What happens when arrays are moved between host and devices, or between devices, without "
        "being asked for, or (…_explicit) at all.",
        choices=TRANSFER_LEVELS,
    ),
    Option(
        "jax_transfer_guard_host_to_device",
        str,
        None,
        "The same for numbers and arrays of NumPy that operations take; None is as "
        "jax_transfer_guard says.",
        choices=TRANSFER_LEVELS,
    ),
    Option(
        "jax_transfer_guard_device_to_device",
        str,
        None,
        "The same for arrays that programs on another device take.",
        choices=TRANSFER_LEVELS,
    ),
    Option(
        "jax_transfer_guard_device_to_host",
        str,
        None,
        "The same for looking at arrays; on the CPU that is no transfer.",
        choices=TRANSFER_LEVELS,
    ),
    Option(
        "jax_num_cpu_devices",
        int,
        None,
        "How many devices the CPU is, each with a thread of its own; they share the cores and the "
        "memory. To be set before the first use of a device. None takes the number that XLA_FLAGS "
        "gives (--xla_force_host_platform_device_count), or one.",
        minimum=1,
    ),
    Option(
        "jax_cuda_visible_devices",
        str,
        "all",
        "Numbers of the machine's CUDA devices that this process uses, in its order, separated by "
        "commas. To be set before their first use.",
    ),
    Option(
        "axir_vulkan_visible_devices",
        str,
        "all",
        "The same for Vulkan devices.",
    ),
    Option(
        "jax_default_matmul_precision",
        str,
        None,
        "Precision of matrix products and convolutions of 32-bit operands that state none.",
        is_in_cache_key=True,
        choices=tuple(_PRECISIONS.split()),
    ),
    Option(
        "jax_cpu_enable_async_dispatch",
        bool,
        True,
        "Lets calls of compiled functions that take longer than 5 ms return before they are done, "
        "with arrays that are waited for where their elements are used.",
    ),
    Option(
        "jax_log_compiles",
        bool,
        False,
        "Logs each tracing and each compilation with its time, at level WARNING.",
    ),
    Option(
        "axir_slow_compile_seconds",
        int,
        5,
        "Seconds after which a compilation that goes on is logged at level WARNING, once, with the "
        "name and the size of the program; 0 logs none.",
        minimum=-1,
    ),
    Option(
        "jax_debug_key_reuse",
        bool,
        False,
        "Raises KeyReuseError where a random key is used twice: by an operation at once, and "
        "inside of a compiled function when it is traced.",
        is_in_cache_key=True,
    ),
    Option(
        "jax_no_tracing",
        bool,
        False,
        "Raises RuntimeError where a compiled function would be traced for new arguments: finds "
        "what is traced again and again.",
    ),
    Option(
        "jax_no_execution",
        bool,
        False,
        "Raises RuntimeError where an operation would be computed or a compiled program would run: "
        "shows that a program only traces and compiles.",
        is_in_cache_key=True,
    ),
    Option(
        "jax_allow_f16_reductions",
        bool,
        True,
        "When off, sums of 16-bit floating-point numbers that are not summed in 32 bits raise "
        "DTypeError when they are traced.",
        is_in_cache_key=True,
    ),
    Option(
        "axir_user_contexts",
        object,
        (),
        "What `make_user_context` sets: values with which compiled functions are traced anew.",
        is_in_cache_key=True,
    ),
    Option(
        "jax_explain_cache_misses",
        bool,
        False,
        "Logs, at level WARNING, for which arguments a compiled function is traced, and for which "
        "it has been before.",
    ),
    Option(
        "jax_random_seed_offset",
        int,
        0,
        "Is added to the seeds of random keys: other random numbers without a change of the "
        "program.",
        is_in_cache_key=True,
    ),
    Option(
        "jax_high_dynamic_range_gumbel",
        bool,
        False,
        "Lets gumbel and categorical draw with mode 'high' unless a call says otherwise.",
        is_in_cache_key=True,
    ),
    Option(
        "jax_disable_most_optimizations",
        bool,
        False,
        "Compiles with axir_opt_level 0, whatever that option says.",
        is_in_cache_key=True,
    ),
    Option(
        "jax_logging_level",
        str,
        "NOTSET",
        "The level of axir's loggers: DEBUG, INFO, WARNING, ERROR, CRITICAL; NOTSET leaves them.",
        choices=("NOTSET", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"),
    ),
    Option(
        "jax_enable_compilation_cache",
        bool,
        True,
        "Whether compiled programs are read from and kept in the cache on disk.",
    ),
    Option(
        "jax_persistent_cache_min_compile_time_secs",
        float,
        0.0,
        "Programs that compile in fewer seconds are not kept in the cache on disk.",
        minimum=0,
    ),
    Option(
        "jax_persistent_cache_min_entry_size_bytes",
        int,
        0,
        "Smaller programs are not kept in the cache on disk.",
    ),
    Option(
        "jax_raise_persistent_cache_errors",
        bool,
        False,
        "Raises OSError where the cache on disk cannot be written, instead of logging it.",
    ),
    Option(
        "axir_cache_dir",
        str,
        None,
        "Folder of compiled programs; None is the user's cache folder.",
    ),
    Option(
        "axir_cache_max_bytes",
        int,
        1 << 30,
        "Size above which the programs used longest ago leave the cache folder; 0 keeps nothing "
        "on disk, -1 everything.",
        minimum=-1,
    ),
    Option(
        "axir_compiler",
        str,
        "auto",
        "What compiles programs for the CPU: iree compiles all of them; native makes machine code "
        "of what can be made of kernels only, for good; auto does so for small programs, and for "
        "the first calls of others, until IREE is done.",
        is_in_cache_key=True,
        choices=("auto", "native", "iree"),
    ),
    Option(
        "axir_isolate_compiler",
        str,
        "auto",
        "Whether the IREE compiler runs in a helper process, so that its crash becomes an error: "
        "always, never, or wherever a helper can be started.",
        choices=("auto", "always", "never"),
    ),
    Option(
        "axir_on_compile_failure",
        str,
        "raise",
        "What happens when IREE cannot compile a program: an error, or a warning, after which the "
        "program is evaluated op by op in NumPy.",
        is_in_cache_key=True,
        choices=("raise", "evaluate"),
    ),
    Option(
        "axir_wait_for_compiler",
        bool,
        True,
        "Whether the first call of a compiled function waits for the compiler. If not, calls are "
        "evaluated op by op in NumPy until the compiled program is there; functions with effects "
        "wait nevertheless.",
    ),
    Option(
        "axir_dump_dir",
        str,
        None,
        "Folder that receives the module of every compilation after each stage; None writes none.",
    ),
    Option(
        "axir_driver",
        str,
        "auto",
        "The IREE driver of the CPU: local-sync runs on the calling thread, local-task on a pool "
        "of threads, auto chooses by the size of the program.",
        is_in_cache_key=True,
        choices=("auto", "local-sync", "local-task"),
    ),
    Option(
        "axir_num_threads",
        int,
        None,
        "Threads that compute a program on the CPU; 1 leaves it to the calling thread, None takes "
        "as many as the process has cores.",
        is_in_cache_key=True,
        minimum=1,
    ),
    Option(
        "axir_cpu_ids",
        str,
        None,
        "The cores to which the threads are pinned that compute a program on the CPU, such as "
        "'0,2-5'; None takes all that the process may use.",
        is_in_cache_key=True,
    ),
    Option(
        "axir_kept_memory",
        int,
        256,
        "MiB of freed memory that the process keeps, once it has computed on the CPU, for the "
        "temporary arrays of the next program; 0 leaves it to the C library, which gives most of "
        "it back to the system after each call.",
        minimum=0,
    ),
    Option(
        "axir_collective_timeout",
        int,
        600,
        "Seconds that a device of a mesh waits for the others in a collective before all of them "
        "get an error; 0 is no limit. In one process, devices that can never meet are found at "
        "once.",
        minimum=0,
    ),
    Option(
        "axir_opt_level",
        int,
        2,
        "How much the IREE compiler optimizes.",
        is_in_cache_key=True,
        choices=(0, 1, 2, 3),
    ),
)


def _ignored(name: str, default: OptionValue, reason: str) -> Option:
    """Returns the row of an option that does nothing, with JAX's default."""
    return Option(
        name,
        object if default is None else type(default),
        default,
        f"Without effect. {reason}",
        has_effect=False,
    )


_WITHOUT_EFFECT = [
    _ignored(name, default, reason)
    for reason, defaults in WITHOUT_EFFECT.items()
    for name, default in defaults.items()
]
OPTIONS: Mapping[str, Option] = {option.name: option for option in (*_TABLE, *_WITHOUT_EFFECT)}


def option_of_name(name: str) -> Option:
    """Returns the row of an option; raises UnknownOptionError.

    An option of JAX may have the prefix `axir_` instead of `jax_`, as in the environment.
    """
    name = SYNONYMS.get(name, name)
    found = OPTIONS.get(name) or OPTIONS.get(name.replace("axir_", "jax_", 1))
    if found is None:
        raise UnknownOptionError(name)
    return found
