"""Builds StableHLO functions, compiles a module of them with IREE once, and runs them."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import iree.runtime as rt
import numpy as np
from iree.compiler import ir

from axir.dialect import stablehlo as hlo
from axir.dialect.context import context
from axir.dialect.types import element_type, numpy_dtype

Builder = Callable[..., Any]
FLAGS = (
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
    "--iree-input-type=stablehlo",
    "--iree-input-demote-f64-to-f32=false",
    "--iree-llvmcpu-link-embedded=false",
)


def parse(text: str) -> ir.Module:
    """A module from its text."""
    return ir.Module.parse(text, context())


def build(functions: Mapping[str, tuple[Sequence[Any], Builder]]) -> ir.Module:
    """A module of public functions: name to (arrays or tensor types, builder of the results)."""
    with context(), ir.Location.unknown():
        module = ir.Module.create()
        for name, (arguments, builder) in functions.items():
            types = [_type_of(argument) for argument in arguments]
            with ir.InsertionPoint(module.body):
                function = ir.Operation.create(
                    "func.func",
                    attributes={
                        "sym_name": ir.StringAttr.get(name),
                        "function_type": ir.TypeAttr.get(ir.FunctionType.get(types, [])),
                    },
                    regions=1,
                )
            block = function.regions[0].blocks.append(*types)
            with ir.InsertionPoint(block):
                made = builder(*block.arguments)
                results = [made] if isinstance(made, ir.Value) else list(made)
                ir.Operation.create("func.return", operands=results)
            whole = ir.FunctionType.get(types, [result.type for result in results])
            function.attributes["function_type"] = ir.TypeAttr.get(whole)
        module.operation.verify()
        return module


def _type_of(argument: Any) -> ir.Type:
    if isinstance(argument, ir.Type):
        return argument
    if isinstance(argument, str):
        return ir.Type.parse(f"tensor<{argument}>")
    array = np.asarray(argument)
    return hlo.tensor_type(array.shape, element_type(array.dtype))


class Compiled:
    """A compiled module; functions are called by name with arrays and return a list of arrays."""

    def __init__(self, module: ir.Module, flags: Sequence[str] = ()):
        self.result_types = _result_types(module)
        binary = compile_module(module, flags)
        config = rt.Config("local-sync")
        self.device = config.device
        self.functions = rt.load_vm_module(
            rt.VmModule.copy_buffer(config.vm_instance, binary), config
        )

    def __call__(self, name: str, *arguments: Any) -> list[np.ndarray]:
        results = self.call_on_device(name, *map(self.put, arguments))
        return [np.array(result.to_host()) for result in results]

    def put(self, array: Any) -> rt.DeviceArray:
        """A device copy of an array."""
        array = np.array(array, order="C")
        if array.dtype.name == "bfloat16":
            buffer = self.device.allocator.allocate_buffer_copy(
                memory_type=rt.MemoryType.DEVICE_LOCAL | rt.MemoryType.HOST_VISIBLE,
                allowed_usage=rt.BufferUsage.DEFAULT | rt.BufferUsage.MAPPING,
                device=self.device,
                buffer=array.view(np.uint16),
                element_type=rt.HalElementType.BFLOAT_16,
            )
            return rt.DeviceArray(self.device, buffer, override_dtype=array.dtype)
        return rt.asdevicearray(self.device, array)

    def call_on_device(self, name: str, *arguments: Any) -> list[Any]:
        results = self.functions[name](*arguments)
        return [results] if isinstance(results, rt.DeviceArray) else list(results)


def _result_types(module: ir.Module) -> dict[str, list[np.dtype]]:
    table = {}
    for function in module.body.operations:
        kind = ir.FunctionType(function.attributes["function_type"].value)
        name = function.attributes["sym_name"].value
        table[name] = [numpy_dtype(result.element_type) for result in kind.results]
    return table


def compile_module(module: ir.Module, flags: Sequence[str] = ()) -> bytes:
    """The IREE binary of a module.

    The compiler runs as a process of its own: what it rejects may also crash it.
    """
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "module.mlirbc", Path(folder) / "module.vmfb"
        with source.open("wb") as file:
            module.operation.write_bytecode(file)
        tool = Path(sys.executable).parent / "iree-compile"
        command = [tool, source, "-o", target, *FLAGS, *flags]
        finished = subprocess.run(command, capture_output=True, text=True, check=False)
        if finished.returncode:
            raise CompilationError(f"exit status {finished.returncode}\n{finished.stderr[:4000]}")
        return target.read_bytes()


class CompilationError(Exception):
    """IREE did not compile the module, or crashed."""
