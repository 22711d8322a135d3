"""`emit_model`: from traced functions to the files of a C++ model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from axir.dialect.program.function import Function
from axir.dialect.program.rules import HostCall
from axir.passes.transforms.lower_to_stablehlo import lower_functions
from axir.runtime.calls.compiled_function import prepare_for_target
from axir.runtime.compiler.compilation import compile_object
from axir.runtime.compiler.result_storage import mark_donated, take_result_storage
from axir.runtime.compiler.target import Target

from .packaging.folder import KERNEL_PREFIX, model_files
from .program.interface import Interface
from .reading import read_program


def emit_model(
    functions: Mapping[str, Function],
    describe: Callable[[Sequence[HostCall]], Interface],
    donated: Mapping[str, Mapping[int, int]],
    target: Target,
    name: str,
    embed_limit: int,
) -> dict[str, bytes]:
    """Compiles functions and writes them as C++.

    Args:
        functions: By the names of the methods. What they capture is passed as arguments.
        describe: Returns what users see, given the callbacks that the functions call.
        donated: For each function the arguments whose memory becomes that of a result.
        target: The CPU to compile for.
        name: The name of the model.
        embed_limit: As for `model_files`.

    Returns:
        The files by their path in the model's folder.

    Raises:
        CompileError: if IREE cannot compile the functions.
        CppEmissionError: if the program does something that cannot be written as C++.
    """
    target = replace(target, linkage="object")
    calls: list[HostCall] = []
    module = lower_functions(functions, host_functions=calls, is_portable=True)
    mark_donated(module, {symbol: set(pairs) for symbol, pairs in donated.items()})
    prepare_for_target(module, target)
    take_result_storage(module, {s: set(donated.get(s, {}).values()) for s in functions})
    text, kernels = compile_object(module, target, KERNEL_PREFIX + name, name)
    program = read_program(text)
    return model_files(describe(calls), program, kernels, embed_limit)
