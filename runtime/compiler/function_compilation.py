"""Compiling traced functions: lowered, legalized for IREE, tuned, and given to the compiler.

What does not live here: the compiler (`compilation.py`), calls (`runtime/calls/`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Sequence

from axir.dialect.core.annotations import Foreign
from axir.dialect.core.config import config
from axir.dialect.core.events import LOWERED, timed
from axir.dialect.core.timeline import span
from axir.dialect.program.function import Function
from axir.passes.framework.pipeline import run_passes
from axir.passes.framework.registry import find_pass
from axir.passes.transforms.lower_to_stablehlo import HostCall, lower_functions
from axir.runtime.device.devices import Device

from .compilation import compile_legalized
from .target import Target

_LEGALIZATION = "legalize-for-iree"
# Further passes by platform, from this optimization level on.
_TUNING = {"cpu": "tune-for-cpu"}
_TUNING_LEVEL = 1


def prepare_for_target(module: Foreign, target: Target) -> None:
    """Legalizes a StableHLO module for IREE, and tunes it for a machine, in place."""
    platform = target.backend
    is_tuned = target.opt_level >= _TUNING_LEVEL
    missing = () if target.gpu_features is None else target.gpu_features.missing_types()
    legalization = {
        "platform": platform,
        "missing": " ".join(missing),
        "fuses": is_tuned,
        "has_c_library": target.has_c_library,
    }
    passes = [find_pass(_LEGALIZATION).from_options(legalization)]
    if is_tuned and platform in _TUNING:
        options = {"vector_bits": target.vector_bits}
        passes.append(find_pass(_TUNING[platform]).from_options(options))
    run_passes(module, passes)


def compile_function(
    function: Function,
    device: Device,
    donated: tuple[int, ...] = (),
    host_functions: list[HostCall] | None = None,
    mesh_axes: Sequence[tuple[Hashable, int]] | None = None,
    marks_dispatches: bool = False,
) -> bytes:
    """Lowers, legalizes and compiles a function for a device; returns IREE's binary.

    `host_functions` collects the Python functions that it calls, which are no part of the binary;
    None if it must run without this process. `mesh_axes` are those of the mesh whose devices run
    the function on their parts, if it is such a one. `marks_dispatches` as for `Target`.
    """
    opt_level = 0 if config.jax_disable_most_optimizations else config.axir_opt_level
    # Whoever calls the binary has arguments of known types: see `CompiledFunction`.
    target = dataclasses.replace(
        Target.of_device(device, opt_level, checks_arguments=False),
        marks_dispatches=marks_dispatches,
    )
    with timed(LOWERED, function.name):
        with span("lower to StableHLO", "compiler"):
            module = lower_functions(
                {"main": function}, device.platform, donated, host_functions, mesh_axes=mesh_axes
            )

    def legalize(module: Foreign) -> None:
        prepare_for_target(module, target)

    return compile_legalized(module, target, function.name, legalize)
