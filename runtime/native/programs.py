"""`NativeProgram`: machine code of one kernel, called with arrays of the host.

Arrays go in and come out as NumPy arrays: nothing is copied, queued or looked up. What does not live
here: who decides that a program is run so (`runtime/compiler/`), and calls with axir's arrays
(`runtime/calls/`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from axir.dialect.core.annotations import Dtype, HostArray

from .kernel_program import ARGUMENT, CONSTANT, RESULT, KernelProgram
from .object_files import LoadedCode, load_object

ENTRY = "axir_entry"
# The flag of a function of C that takes its arguments as an array of objects.
_FAST_CALL = 0x80
_empty = np.empty


class _MethodDefinition(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("documentation", ctypes.c_char_p),
    ]


class NativeProgram:
    """A program of one kernel, loaded.

    Args:
        program: What to load.

    Attributes:
        size: Of the machine code, in bytes.
        entry: The kernel as a function of Python: takes the arrays of `arguments`, then those of
            `rest`. It returns None if an array is of another kind than kernels read, and has done
            nothing then.
        arguments: Numbers of the program's arguments that the kernel takes, in order.
        results: Shapes and dtypes of the arrays that the kernel writes.

    Raises:
        ObjectFileError: the machine code cannot be loaded.
    """

    def __init__(self, program: KernelProgram):
        self.size = len(program.object_file)
        self.arguments = tuple(n for kind, n in program.bindings if kind == ARGUMENT)
        self.results = tuple((shape, np.dtype(name)) for name, shape in program.results)
        self._bindings = program.bindings
        self._constants = [_constant(*x) for x in program.constants]
        self._returns = program.returns
        self._code: LoadedCode | None = None
        self.entry: Callable[..., HostArray | None] = _nothing
        if program.object_file:
            self._code = load_object(program.object_file, _python_symbols())
            self.entry, self._definition = _as_function(self._code.addresses[ENTRY])
        # Results that nobody sees are memory for the kernel's own use, which calls take in turns.
        seen = {n for kind, n in program.returns if kind == RESULT}
        self._is_seen = [number in seen for number in range(len(self.results))]
        self._spaces: list[list[HostArray]] = []
        self.is_plain = self._find_plain()

    def _find_plain(self) -> bool:
        """Tells whether the kernel takes arguments and results only, and all of these."""
        order = [(ARGUMENT, n) for n in self.arguments]
        written = [(RESULT, n) for n in range(len(self.results))]
        return list(self._bindings) == order + written and list(self._returns) == written

    def __call__(self, arguments: Sequence[HostArray]) -> list[HostArray]:
        """Runs the program.

        Args:
            arguments: Arrays of the types of the program's arguments, which stay as they are.

        Returns:
            The results: new arrays, constants of the program, or arguments. Nobody may write to
            them.
        """
        written = [
            _empty(shape, dtype) if is_seen else None
            for (shape, dtype), is_seen in zip(self.results, self._is_seen, strict=True)
        ]
        spaces = self._take_spaces()
        given = self._given(arguments, written, spaces)
        if self._code is not None and self.entry(*given) is None:
            given = [usable(x) for x in given]
            if self.entry(*given) is None:
                raise AssertionError("arrays in the order of C are what kernels read")
        if spaces:
            self._spaces.append(spaces)
        return [self._returned(kind, n, arguments, written) for kind, n in self._returns]

    def _take_spaces(self) -> list[HostArray]:
        if all(self._is_seen):
            return []
        try:
            return self._spaces.pop()
        except IndexError:
            kinds = zip(self.results, self._is_seen, strict=True)
            return [_empty(shape, dtype) for (shape, dtype), is_seen in kinds if not is_seen]

    def _given(
        self,
        arguments: Sequence[HostArray],
        written: Sequence[HostArray | None],
        spaces: Sequence[HostArray],
    ) -> list[HostArray]:
        unseen = iter(spaces)
        given: list[HostArray] = []
        for kind, number in self._bindings:
            if kind == ARGUMENT:
                given.append(arguments[number])
            elif kind == CONSTANT:
                given.append(self._constants[number])
            else:
                array = written[number]
                given.append(next(unseen) if array is None else array)
        return given

    def _returned(
        self,
        kind: int,
        number: int,
        arguments: Sequence[HostArray],
        written: Sequence[HostArray | None],
    ) -> HostArray:
        if kind == ARGUMENT:
            return arguments[number]
        if kind == CONSTANT:
            return self._constants[number]
        array = written[number]
        assert array is not None
        return array


def usable(x: HostArray) -> HostArray:
    """Returns an array as kernels read it: aligned, in the order of C, and no subclass's."""
    return np.require(np.asarray(x), requirements="CA")


def _constant(name: str, shape: tuple[int, ...], content: bytes) -> HostArray:
    dtype: Dtype = np.dtype(name)
    return np.frombuffer(content, dtype).reshape(shape)


def _nothing(*arrays: HostArray) -> None:
    """Does what a program without a kernel does."""


@cache
def _python_symbols() -> dict[str, int]:
    """Returns the addresses of what entries refer to: see `invocation/native_entry.py`."""
    python = ctypes.pythonapi
    names = ("Py_IncRef", "PyEval_SaveThread", "PyEval_RestoreThread")
    functions = {
        name: ctypes.cast(getattr(python, name), ctypes.c_void_p).value or 0 for name in names
    }
    return {**functions, "_Py_NoneStruct": id(None), "axir_array_type": id(np.ndarray)}


def _as_function(address: int) -> tuple[Callable[..., HostArray | None], _MethodDefinition]:
    """Returns the code at an address as a function of Python, and what must live as long."""
    definition = _MethodDefinition(b"kernel", address, _FAST_CALL, None)
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    return make(ctypes.addressof(definition), None, None), definition
