"""Compiled functions as bytes.

The bytes hold machine code and arrays, and no pickled objects; they are checked to be whole, and
for the machine that they were made for. Still, machine code does as it likes: load none from
strangers. Elsewhere: programs that any machine can compile (`axir.export`).
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Sequence

import numpy as np

from axir._arguments.arguments import to_values
from axir._transforms.stages import Compiled
from axir._trees import tree
from axir.dialect.core.annotations import AnyDtype, UserObject
from axir.dialect.core.array import ConcreteArray, as_array
from axir.dialect.core.dtypes import as_dtype
from axir.dialect.core.errors import DTypeError, ParameterError, ShapeError
from axir.dialect.core.extended_dtypes import key_dtype, words_of
from axir.dialect.core.types import ShapedArray
from axir.runtime import Device, default_device, devices
from axir.runtime.calls.arguments import buffer_of
from axir.runtime.calls.executable import Program
from axir.runtime.compiler.binaries import check_binary
from axir.runtime.compiler.function_compilation import compile_function
from axir.runtime.compiler.target import Target
from axir.runtime.errors import LoadError

__all__ = ["deserialize_and_load", "serialize"]


def __dir__() -> list[str]:
    return __all__


_FORMAT = 1


def serialize(compiled: Compiled) -> tuple[bytes, tree.TreeDef, tree.TreeDef]:
    """Returns a compiled function as bytes, and the structures of its arguments and results.

    Args:
        compiled: The result of `jit(f).lower(...).compile()`.

    Raises:
        ParameterError: if it is something else.
        HostCallNeededError: if the program calls Python functions, which no bytes can hold.

    >>> import axir
    >>> program = axir.jit(lambda x: x + 1).lower(1.0).compile()
    >>> loaded = deserialize_and_load(*serialize(program))
    >>> float(loaded(2.0))
    3.0
    """
    if not isinstance(compiled, Compiled):
        raise ParameterError(
            f"serialize: {compiled!r} is not a compiled function.",
            "Pass jit(f).lower(*args).compile().",
        )
    unit = compiled.runtime_executable()
    function = unit.function
    constants = [words_of(as_array(x).host()) for x in function.captured]
    header = {
        "format": _FORMAT,
        "name": function.name,
        "platform": unit.device.platform,
        "machine": Target.of_device(unit.device).machine,
        "arguments": [_described(t) for t in compiled.function.input_types],
        "results": [_described(t) for t in unit.result_types],
        "constants": [[list(x.shape), x.dtype.name] for x in constants],
    }
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("header.json", json.dumps(header))
        archive.writestr("program.vmfb", compile_function(function, unit.device))
        for number, host in enumerate(constants):
            archive.writestr(f"constant{number}", host.tobytes())
    return file.getvalue(), compiled.in_tree, compiled.out_tree


def _described(array_type: ShapedArray) -> list[object]:
    return [list(array_type.shape), array_type.dtype.name, array_type.weak_type]


def _type_of(described: Sequence[UserObject]) -> ShapedArray:
    shape, name, weak_type = described
    tag = name.removeprefix("key<").removesuffix(">")
    dtype: AnyDtype = key_dtype(tag) if tag != name else as_dtype(name)
    return ShapedArray(tuple(shape), dtype, weak_type)


def deserialize_and_load(
    serialized: bytes,
    in_tree: tree.TreeDef,
    out_tree: tree.TreeDef,
    backend: str | None = None,
    execution_devices: Sequence[Device] | None = None,
) -> LoadedFunction:
    """Returns the function that `serialize` made bytes of.

    Args:
        serialized: The bytes.
        in_tree: Structure of the arguments.
        out_tree: Structure of the results.
        backend: Platform to run on; by default the one that it was compiled for.
        execution_devices: Where to run: a device.

    Raises:
        LoadError: if the bytes are damaged, or for another machine or platform.
    """
    check_binary(serialized, "serialized function")
    try:
        with zipfile.ZipFile(io.BytesIO(serialized)) as archive:
            header = json.loads(archive.read("header.json"))
            binary = archive.read("program.vmfb")
            constants = [
                np.frombuffer(archive.read(f"constant{number}"), as_dtype(dtype)).reshape(shape)
                for number, (shape, dtype) in enumerate(header["constants"])
            ]
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise LoadError(
            f"deserialize_and_load: the bytes hold no serialized function ({error}).",
            "Pass what serialize returned.",
        ) from None
    platform = backend or header["platform"]
    device = execution_devices[0] if execution_devices else _device(platform)
    here = Target.of_device(device).machine
    if header["format"] != _FORMAT or (header["platform"], header["machine"]) != (
        device.platform,
        here,
    ):
        raise LoadError(
            f"deserialize_and_load: the function was compiled for {header['platform']} on another "
            f"machine or by another version than this ({device.platform}, {here}).",
            "Serialize it here, or save the program with axir.export, which runs anywhere.",
        )
    return LoadedFunction(binary, constants, header, in_tree, out_tree, device)


def _device(platform: str) -> Device:
    default = default_device()
    return default if default.platform == platform else devices(platform)[0]


class LoadedFunction:
    """A compiled function that was loaded from bytes; made by `deserialize_and_load`.

    Raises:
        TreeError: by a call with arguments of another structure.
        ShapeError, DTypeError: by a call with arguments of another shape or dtype.
    """

    def __init__(
        self,
        binary: bytes,
        constants: Sequence[np.ndarray],
        header: dict[str, UserObject],
        in_tree: tree.TreeDef,
        out_tree: tree.TreeDef,
        device: Device,
    ):
        self.in_tree, self.out_tree, self.device = in_tree, out_tree, device
        self._name = header["name"]
        self._types = [_type_of(t) for t in header["arguments"]]
        self._results = [_type_of(t) for t in header["results"]]
        self._constants = [device.put(x) for x in constants]
        self._executable = Program(binary, device).function("main")

    def __call__(self, *args: object, **kwargs: object) -> UserObject:
        """Runs the program."""
        leaves = tree.flatten_like(self.in_tree, (args, kwargs), f"Call of {self._name!r}")
        values = to_values(leaves, (args, kwargs), self._name)
        for index, (value, expected) in enumerate(zip(values, self._types, strict=True)):
            if (value.shape, value.dtype) != (expected.shape, expected.dtype):
                path = tree.paths((args, kwargs))[index]
                error = ShapeError if value.shape != expected.shape else DTypeError
                raise error(
                    f"argument {path} of {self._name!r} is of type {value.type}, and was "
                    f"{expected} when it was compiled.",
                    "Convert the argument.",
                )
        buffers = [buffer_of(x, self.device) for x in values]  # type: ignore[arg-type]
        found = self._executable([*buffers, *self._constants])
        results = [ConcreteArray(t, None, b) for t, b in zip(self._results, found, strict=True)]
        return self.out_tree.unflatten(results)
