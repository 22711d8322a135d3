"""`emit_model`: from traced functions to the files of a C++ model."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from axir.dialect.program.function import Function
from axir.dialect.program.function_rules import HostCall
from axir.passes.transforms.lower_to_stablehlo import lower_functions
from axir.runtime.compiler.architectures import used_features
from axir.runtime.compiler.compilation import compile_object
from axir.runtime.compiler.function_compilation import prepare_for_target
from axir.runtime.compiler.result_storage import mark_donated, take_result_storage
from axir.runtime.compiler.target import Target

from .emitting.names import identifier
from .packaging.folder import KERNEL_PREFIX, model_files
from .program.interface import Interface
from .program.variant import Variant
from .reading import read_program


def emit_model(
    functions: Mapping[str, Function],
    describe: Callable[[Sequence[HostCall]], Interface],
    donated: Mapping[str, Mapping[int, int]],
    targets: Sequence[Target],
    name: str,
    embed_limit: int,
) -> dict[str, bytes]:
    """Compiles functions and writes them as C++.

    Args:
        functions: By the names of the methods. Their captures are passed as arguments.
        describe: Returns the model's interface, given the callbacks that the functions call.
        donated: For each function, the arguments that are donated, with the numbers of the results
            that take their memory.
        targets: The CPUs to compile for, of one architecture.
        name: The name of the model.
        embed_limit: As for `model_files`.

    Returns:
        The files by their path in the model's folder.

    Raises:
        CompileError: if IREE cannot compile the functions.
        CppEmissionError: if the program has an operation that cannot be written as C++.
    """
    calls: list[HostCall] = []
    variants, constants = [], list[bytes]()
    for target in targets:
        calls.clear()  # they are the same for all
        module = lower_functions(functions, host_functions=calls, is_portable=True)
        mark_donated(module, {symbol: set(pairs) for symbol, pairs in donated.items()})
        target = dataclasses.replace(target, linkage="object")
        prepare_for_target(module, target)
        take_result_storage(module, {s: set(donated.get(s, {}).values()) for s in functions})
        prefix = KERNEL_PREFIX + name
        if len(targets) > 1:
            prefix += f"_for_{identifier(target.cpu)}"
        text, kernels = compile_object(module, target, prefix, name)
        program = read_program(text, constants)
        features = program.machine.features if program.machine else ""
        used = used_features(target.architecture, features)
        variants.append(Variant(target.cpu, target.architecture, used, program, kernels, prefix))
    variants.sort(key=lambda variant: len(variant.features), reverse=True)
    return model_files(describe(calls), variants, constants, embed_limit)
