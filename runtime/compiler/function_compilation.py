"""Compiling traced functions: lowered, legalized for IREE, tuned, and given to the compiler.

Here: also arguments for the memory of results, for callers that call kernels directly. Programs of
the runtime allocate their results.
Elsewhere: the compiler (`compilation.py`), calls (`runtime/calls/`).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Hashable, Mapping, Sequence, Set

from iree.compiler import ir

from axir.dialect.core.annotations import Foreign
from axir.dialect.core.config import config
from axir.dialect.core.context import context
from axir.dialect.core.timeline import LOWERED, span, timed
from axir.dialect.program.function import Function
from axir.dialect.text.signature import is_public
from axir.passes.framework.pipeline import run_passes
from axir.passes.framework.registry import find_pass
from axir.passes.transforms.lower_to_stablehlo import DONATED, HostCall, lower_functions
from axir.runtime.device.devices import Device
from axir.runtime.device.workers import thread_count
from axir.runtime.native.kernel_program import KernelProgram

from .compilation import begin_legalized, compile_legalized, find_legalized, text_of
from .native_compilation import (
    compile_kernels,
    compile_natively,
    find_kernels,
    is_known_as_faster,
    remember_as_faster,
)
from .target import Target

_LEGALIZATION = "legalize-for-iree"
# Further passes by platform, from this optimization level on.
_TUNING = {"cpu": "tune-for-cpu"}
_TUNING_LEVEL = 1
_FEW_THREADS = 2


def prepare_for_target(module: Foreign, target: Target, part: str = "regions") -> None:
    """Legalizes a StableHLO module for IREE, and tunes it for a machine, in place.

    `part` names the steps of `legalize-for-iree` that remain, apart from its last step; none if it
    is empty.
    """
    if part:
        _legalize(module, target, part)
    _tune(module, target)
    _legalize(module, target, "blocks")


def _legalize(module: Foreign, target: Target, part: str) -> None:
    missing = () if target.gpu_features is None else target.gpu_features.missing_types()
    options = {
        "platform": target.backend,
        "missing": " ".join(missing),
        "fuses": target.opt_level >= _TUNING_LEVEL,
        "has_c_library": target.has_c_library,
        "part": part,
    }
    run_passes(module, [find_pass(_LEGALIZATION).from_options(options)])


def _tune(module: Foreign, target: Target, *, calls: bool = False) -> None:
    """Tunes a module for a machine; `calls` as for `tune-for-cpu`."""
    if target.opt_level >= _TUNING_LEVEL and target.backend in _TUNING:
        options = {
            "vector_bits": target.vector_bits,
            "byte_products": target.multiplies_bytes,
            "calls": calls,
        }
        run_passes(module, [find_pass(_TUNING[target.backend]).from_options(options)])


def compile_function(
    function: Function,
    device: Device,
    donated: tuple[int, ...] = (),
    host_functions: list[HostCall] | None = None,
    mesh_axes: Sequence[tuple[Hashable, int]] | None = None,
    marks_dispatches: bool = False,
) -> bytes:
    """Lowers, legalizes and compiles a function for a device; returns IREE's binary.

    `host_functions` collects the Python functions that the function calls, which are no part of the
    binary; None if the binary must run without this process. `mesh_axes` are the axes of the mesh
    if the devices of a mesh run the function on their parts. `marks_dispatches` as for `Target`.
    """
    target = dataclasses.replace(_target_of(device), marks_dispatches=marks_dispatches)
    module = _lowered(function, device, donated, host_functions, mesh_axes)
    return _compiled(module, target, function.name)


def compile_program(
    function: Function, device: Device, donated: tuple[int, ...], host_functions: list[HostCall]
) -> KernelProgram | bytes | Provisional:
    """Compiles a function for a device of this process, as the option `axir_compiler` says.

    Args:
        function: As for `compile_function`, like the others.
        device: See there.
        donated: See there.
        host_functions: See there.

    Returns:
        Kernels in machine code, IREE's binary, or kernels and a way to make the binary later.
    """
    target = _target_of(device)
    module = _lowered(function, device, donated, host_functions)
    may_be_native = (
        device.platform == "cpu"
        and target.opt_level >= _TUNING_LEVEL
        and config.axir_compiler != "iree"
    )
    if not may_be_native:
        return _compiled(module, target, function.name)
    text = text_of(module)
    if host_functions:
        return _with_kernels(module, target, function.name, text, "regions")
    made = compile_natively(module, text, function.name)
    if isinstance(made, KernelProgram):
        return made
    if made.left is None:
        module = _lowered(function, device, donated, host_functions)
    return _with_kernels(module, target, function.name, text, made.left or "regions")


def _with_kernels(
    module: ir.Module, target: Target, name: str, text: str, left: str
) -> KernelProgram | bytes | Provisional:
    """Compiles a program of more than one kernel; `text` is its module before legalization.

    It runs the steps of `legalize-for-iree` that are `left`.
    """
    stays_native = config.axir_compiler == "native" or is_known_as_faster(text)
    known = None if stays_native else find_legalized(text, target, name)
    if known is not None:
        return known
    kernels = find_kernels(text)
    if kernels is None:
        _legalize(module, target, left)
        left = ""
        # The kernels for this process's own runtime come from a copy, which is tuned differently.
        copy = module.operation.clone()
        _tune(copy, target, calls=True)
        kernels = compile_kernels(copy, text, name)

    def finish(module: ir.Module) -> None:
        prepare_for_target(module, target, left)

    def compile_it() -> bytes:
        return begin_legalized(module, target, name, finish, text)()

    if kernels is None:
        return compile_it()
    if stays_native or (kernels.suits_one_thread and thread_count() <= _FEW_THREADS):
        return kernels
    return Provisional(kernels, compile_it, functools.partial(remember_as_faster, text))


@dataclasses.dataclass(frozen=True)
class Provisional:
    """A program that runs until a better one is ready.

    Attributes:
        kernels: The program.
        compile: Makes IREE's binary, in any thread.
        remember_as_faster: Keeps on disk that the better one is not faster.
    """

    kernels: KernelProgram
    compile: Callable[[], bytes]
    remember_as_faster: Callable[[], None]


def _target_of(device: Device) -> Target:
    opt_level = 0 if config.jax_disable_most_optimizations else config.axir_opt_level
    # The caller of the binary has arguments of known types: see `CompiledFunction`.
    return Target.of_device(device, opt_level, checks_arguments=False)


def _lowered(
    function: Function,
    device: Device,
    donated: tuple[int, ...],
    host_functions: list[HostCall] | None,
    mesh_axes: Sequence[tuple[Hashable, int]] | None = None,
) -> ir.Module:
    with timed(LOWERED, function.name), span("lower to StableHLO", "compiler"):
        return lower_functions(
            {"main": function}, device.platform, donated, host_functions, mesh_axes=mesh_axes
        )


def _compiled(module: ir.Module, target: Target, name: str) -> bytes:
    def legalize(module: ir.Module) -> None:
        prepare_for_target(module, target)

    return compile_legalized(module, target, name, legalize)


def mark_donated(module: ir.Module, donated: Mapping[str, Set[int]]) -> None:
    """Marks the arguments, by function, that the program may overwrite."""
    with context():
        for function in _functions(module, donated):
            attributes = _argument_attributes(function)
            for number in donated[_name(function)]:
                attributes[number] = ir.DictAttr.get({DONATED: ir.UnitAttr.get()})
            function.attributes["arg_attrs"] = ir.ArrayAttr.get(attributes)


def take_result_storage(module: ir.Module, without: Mapping[str, Set[int]]) -> None:
    """Gives each public function an argument for each result; the result is written to its memory.

    Args:
        module: StableHLO, prepared for the compiler.
        without: Numbers of results, by function, that get no such argument.
    """
    with context():
        for function in _functions(module, without):
            old = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
            attributes = _argument_attributes(function)
            block = function.regions[0].blocks[0]
            types = list(old.inputs)
            for number, result_type in enumerate(old.results):
                if number in without[_name(function)]:
                    continue
                block.add_argument(result_type, function.location)
                index = ir.IntegerAttr.get(ir.IndexType.get(), number)
                attributes.append(ir.DictAttr.get({"iree.abi.output": index}))
                types.append(result_type)
            function.attributes["arg_attrs"] = ir.ArrayAttr.get(attributes)
            new = ir.FunctionType.get(types, old.results)
            function.attributes["function_type"] = ir.TypeAttr.get(new)


def _functions(module: ir.Module, wanted: Mapping[str, Set[int]]) -> list[ir.Operation]:
    operations = [op.operation for op in module.body.operations]
    functions = [op for op in operations if op.name == "func.func" and is_public(op)]
    return [op for op in functions if _name(op) in wanted]


def _name(function: ir.Operation) -> str:
    return ir.StringAttr(function.attributes["sym_name"]).value


def _argument_attributes(function: ir.Operation) -> list[ir.Attribute]:
    if "arg_attrs" in function.attributes:
        return list(ir.ArrayAttr(function.attributes["arg_attrs"]))
    return [ir.DictAttr.get({}) for _ in function.regions[0].blocks[0].arguments]
