"""Builds StableHLO functions, compiles a module of them with IREE once, and runs them."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import iree.runtime as rt
import ml_dtypes
import numpy as np
from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core.context import context
from axir.dialect.core.types import element_type, numpy_dtype
from axir.passes.framework.pipeline import run_passes
from axir.runtime.compiler.binaries import linker_flags
from axir.runtime.compiler.invocation.invoker import UNVERIFIED
from axir.runtime.compiler.target import Target, process_flags

from .run_report import counted

Builder = Callable[..., Any]
Arrays = Sequence[Any]


@dataclasses.dataclass(frozen=True)
class Example:
    """A function made of StableHLO, its arguments, and its expected results."""

    name: str
    arguments: Arrays
    builder: Builder
    expected: Any  # one array or a list of arrays

    @property
    def expected_results(self) -> list[np.ndarray]:
        """The expected results as a list."""
        is_list = isinstance(self.expected, list | tuple)
        return [np.asarray(array) for array in (self.expected if is_list else [self.expected])]


def run_examples(
    examples: Sequence[Example],
    passes: str = "",
    flags: Sequence[str] = (),
    compiler: Callable[..., bytes] | None = None,
) -> dict[str, list[np.ndarray]]:
    """The results of all examples, compiled as one module after the pipeline `passes`.

    `compiler` turns the module into a binary; the default is IREE as it is, in its own process. It
    does not verify the module after each of its passes, which takes a fifth of its time: modules
    that it should refuse go to `Compiled` or `compile_module`.
    """
    names = [example.name for example in examples]
    assert len(set(names)) == len(names), "examples need different names"
    module = build({e.name: (e.arguments, e.builder) for e in examples})
    if passes:
        run_passes(module, passes)
    compiled = Compiled(module, (UNVERIFIED, *flags), compiler)
    return {e.name: compiled(e.name, *e.arguments) for e in examples}


def text_after(example: Example, passes: str) -> str:
    """The text of an example after the pipeline `passes`, which may be empty."""
    module = build({example.name: (example.arguments, example.builder)})
    if passes:
        run_passes(module, passes)
    return str(module)


def deviations(
    results: Sequence[np.ndarray], example: Example, ulps: float = 0, zero_signs: bool = True
) -> list[str]:
    """Where results differ from the expected ones by more than `ulps` units in the last place.

    nan equals nan; integers, truth values and (if `zero_signs`) signs of zeros must be equal.
    """
    found = []
    for index, (result, expected) in enumerate(zip(results, example.expected_results, strict=True)):
        label = f"{example.name}[{index}]"
        if (result.dtype, result.shape) != (expected.dtype, expected.shape):
            found.append(
                f"{label}: {result.dtype}{result.shape}, not {expected.dtype}{expected.shape}"
            )
            continue
        for got, want in _real_parts(result, expected):
            wrong = ~_agree(got, want, ulps, zero_signs)
            if wrong.any():
                place = tuple(int(axis[0]) for axis in np.nonzero(np.atleast_1d(wrong)))
                inputs = [
                    np.atleast_1d(argument)[place]
                    for argument in map(np.asarray, example.arguments)
                    if argument.shape == wrong.shape
                ]
                found.append(
                    f"{label}: {int(wrong.sum())} of {wrong.size} differ; at {place} of {inputs}: "
                    f"{np.atleast_1d(got)[place]!r}, not {np.atleast_1d(want)[place]!r}"
                )
    return found


def _real_parts(result: np.ndarray, expected: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    if result.dtype.kind != "c":
        return [(result, expected)]
    return [(result.real, expected.real), (result.imag, expected.imag)]


def _agree(result: np.ndarray, expected: np.ndarray, ulps: float, zero_signs: bool) -> np.ndarray:
    if result.dtype.kind in "biu":
        return result == expected
    info = ml_dtypes.finfo(result.dtype)
    got, want = result.astype(np.float64), expected.astype(np.float64)
    with np.errstate(all="ignore"):
        scale = np.maximum(np.abs(want), float(info.tiny))
        unit = 2.0 ** (np.floor(np.log2(scale)) - info.nmant)
        is_near = np.abs(got - want) <= ulps * unit
    is_same = (got == want) | (np.isnan(got) & np.isnan(want))
    if zero_signs:
        is_same &= (want != 0) | np.isnan(got) | (np.signbit(got) == np.signbit(want))
    return is_same | (is_near & (want != 0))


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

    def __init__(
        self,
        module: ir.Module,
        flags: Sequence[str] = (),
        compiler: Callable[..., bytes] | None = None,
    ):
        self.result_types = _result_types(module)
        binary = compiler(module) if compiler else compile_module(module, flags)
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
        if function.operation.name != "func.func":
            continue  # the executable of a kernel
        kind = ir.FunctionType(function.attributes["function_type"].value)
        name = function.attributes["sym_name"].value
        table[name] = [numpy_dtype(result.element_type) for result in kind.results]
    return table


@counted
def compile_module(module: ir.Module, flags: Sequence[str] = ()) -> bytes:
    """The IREE binary of a module.

    The compiler runs as a separate process: a module that it rejects may also crash it.
    """
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "module.mlirbc", Path(folder) / "module.vmfb"
        with source.open("wb") as file:
            module.operation.write_bytecode(file)
        tool = Path(sys.executable).parent / "iree-compile"
        usual = Target().flags()
        verified = [flag for flag in (*process_flags(usual), *usual) if flag != UNVERIFIED]
        command = [tool, source, "-o", target, *verified, *linker_flags(), *flags]
        finished = subprocess.run(command, capture_output=True, text=True, check=False)
        if finished.returncode:
            raise CompilationError(f"exit status {finished.returncode}\n{finished.stderr[:4000]}")
        return target.read_bytes()


class CompilationError(Exception):
    """IREE did not compile the module, or crashed."""
