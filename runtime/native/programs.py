"""`NativeProgram`: machine code of kernels, called with arrays of the host.

Arrays go in and come out as NumPy arrays: nothing is copied, queued or looked up. Elsewhere: the
decision to run a program so (`runtime/compiler/`), and calls with axir's arrays (`runtime/calls/`).
"""

from __future__ import annotations

import ctypes
import itertools
import struct
from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np

from axir.dialect.core.annotations import Dtype, HostArray
from axir.dialect.program.function_rules import HostCall
from axir.runtime.device.buffers import aligned_empty

from .kernel_program import (
    ARGUMENT,
    CONSTANT,
    HOST_CALL,
    JUMPS,
    KINDS,
    RESULT,
    Entry,
    HostStep,
    KernelProgram,
    Overtaking,
    Step,
    only_host_steps,
    usable,
    with_stops,
)
from .object_files import LoadedCode, load_object

ENTRY = "axir_entry"
# The flag of a function of C that takes its arguments as an array of objects.
_FAST_CALL = 0x80
_NOTHING = np.empty(0)
_END = "end"
_DONE: Step = (_END, 0, ())
# The numbers of steps that are no kernels, as the entry knows them.
_KINDS = {name: number for number, name in enumerate((*KINDS, _END))}
Kind = tuple[tuple[int, ...], Dtype]


class _MethodDefinition(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("documentation", ctypes.c_char_p),
    ]


class NativeProgram:
    """A program of kernels, loaded.

    Args:
        program: The program.
        kinds: Shapes and dtypes of its results.
        host_calls: Host functions that it calls, by number.
        overtaking: As for `with_stops`.

    Attributes:
        size: Of the machine code, in bytes.
        entry: The kernel as a function of Python: takes the arrays that it reads, then `constants`,
            then the arrays that it writes. If an array is of a kind that kernels cannot read, it
            returns None and has done nothing.
        arguments: Numbers of the program's arguments that the kernel reads, in order.
        constants: The other arrays that it reads.
        written: Shapes and dtypes of the results that it writes.
        is_direct: Whether these are the results, all of them in order.
        handed_on: Numbers of the arguments that are results.
        makes: For each result whether the program makes it; else it is an argument or a constant.

    Raises:
        ObjectFileError: the machine code cannot be loaded.
    """

    def __init__(
        self,
        program: KernelProgram,
        kinds: Sequence[Kind],
        host_calls: Sequence[HostCall] = (),
        overtaking: Overtaking | None = None,
    ):
        self._overtaking = Overtaking() if overtaking is None else overtaking
        self.size = sum(map(len, program.object_files))
        self.arguments = program.arguments
        constants = self.constants = tuple(_constant(*x) for x in program.constants)
        written = [(shape, np.dtype(name)) for name, shape in program.results]
        # Arrays that become results are allocated with the result's dtype: words of keys as keys,
        # for example.
        for (kind, number), result in zip(program.returns, kinds, strict=True):
            if kind == RESULT:
                written[number] = result
        self.written: tuple[Kind, ...] = tuple(written)
        self._returns: list[tuple[int, int | HostArray, Kind]] = []
        for (kind, number), result in zip(program.returns, kinds, strict=True):
            source = _as_kind(constants[number], result) if kind == CONSTANT else number
            self._returns.append((kind, source, result))
        self.is_direct = not program.space and list(program.returns) == [
            (RESULT, n) for n in range(len(written))
        ]
        self.handed_on = tuple(n for kind, n in program.returns if kind == ARGUMENT)
        self.makes = tuple(kind == RESULT for kind, _ in program.returns)
        # Scratch memory of the code, which calls reuse.
        self._space = program.space
        self._spaces: list[HostArray] = []
        self._codes: list[LoadedCode] = []
        self.entry: Entry = _nothing
        self._definitions: list[_MethodDefinition] = []
        if program.libraries:
            libraries = [_library(x) for x in program.libraries]
            shared = {name: at for x in libraries for name, at in x.exported.items()}
            codes = [load_object(x, shared) for x in program.object_files]
            self._codes = [*codes, *libraries]
            self._start = libraries[0].address_of(ENTRY)
        if program.steps:
            self.entry = self._entry(program, host_calls)

    def _entry(self, program: KernelProgram, host_calls: Sequence[HostCall]) -> Entry:
        """Returns the steps of the program as one function."""
        count = len(self.arguments) + len(self.constants)
        host_steps = [
            HostStep(host_calls[number], places, count)
            for name, number, places in program.steps
            if name == HOST_CALL
        ]
        if len(host_steps) == len(program.steps):
            return only_host_steps(host_steps)
        entry, definition = _as_function(self._start, self._plan(program))
        self._definitions.append(definition)
        if not program.stops:
            return entry
        return with_stops(entry, host_steps, len(program.slots), self._overtaking)

    def _plan(self, program: KernelProgram) -> bytes:
        """Returns the plan that the entry reads: its number of arrays, and the places of each step.

        First that number, the most places of a step, whether other threads may run, whether the
        code stops, and the number of slots; for each slot its place. Then for each step the address
        of its kernel or the number of its kind; the number of its workgroups or bytes, or the word
        that it jumps to; the number of its places, and these.
        """
        arrays = len(self.arguments) + len(self.constants) + len(self.written) + bool(self._space)
        steps = [*program.steps, _DONE]
        most = max(1, *(len(places) for _, _, places in steps))
        head = [arrays, most, int(program.may_last), int(program.stops), len(program.slots)]
        words = [*head, *(word for place in program.slots for word in place)]
        sizes = [0 if name == HOST_CALL else len(places) for name, _, places in steps]
        lengths = (3 + 2 * size for size in sizes)
        begins = list(itertools.accumulate(lengths, initial=len(words)))
        kernels = {name: code for code in self._codes for name in code.exported}
        turns = itertools.count(1)
        for (name, count, places), size in zip(steps, sizes, strict=True):
            kind = _KINDS[name] if name in _KINDS else kernels[name].address_of(name)
            if name in JUMPS:
                count = begins[count]
            elif name == HOST_CALL:
                count = next(turns)
            words += [kind, count, size]
            words += [word for place in places[:size] for word in place]
        return struct.pack(f"<{len(words)}Q", *words)

    def __call__(self, arguments: Sequence[HostArray]) -> list[HostArray]:
        """Runs the program.

        Args:
            arguments: Arrays of the types of the program's arguments, which stay as they are.

        Returns:
            The results: new arrays, constants of the program, or arguments. Nobody may write to
            them.
        """
        written = self.make_room()
        given = [*(arguments[n] for n in self.arguments), *self.constants]
        is_done = self.entry(*given, *written) is not None
        if not is_done and self.entry(*map(usable, given), *written) is None:
            raise AssertionError("kernels read arrays in the order of C")
        self.give_back(written)
        return self.returned(arguments, written)

    def make_room(self) -> list[HostArray]:
        """Returns arrays for the code to write: the results, and its scratch memory."""
        written = [np.empty(*kind) for kind in self.written]
        if self._space:
            try:
                written.append(self._spaces.pop())
            except IndexError:
                written.append(aligned_empty((self._space,), np.uint8))
        return written

    def give_back(self, written: Sequence[HostArray]) -> None:
        """Keeps the scratch memory of a call until the next call."""
        if self._space:
            self._spaces.append(written[-1])

    def returned(
        self,
        arguments: Sequence[HostArray] | Mapping[int, HostArray],
        written: Sequence[HostArray],
    ) -> list[HostArray]:
        """Returns the results, given the arguments and the arrays that the kernel has written."""
        results = []
        for kind, x, result in self._returns:
            if isinstance(x, np.ndarray):
                results.append(x)
                continue
            returned = arguments[x] if kind == ARGUMENT else written[x]
            # One array may be several results, in other shapes or dtypes.
            if returned.shape != result[0] or returned.dtype != result[1]:
                returned = _as_kind(returned, result)
            results.append(returned)
        return results


def _as_kind(x: HostArray, kind: Kind) -> HostArray:
    """Returns the bytes of an array as elements of another kind."""
    shape, dtype = kind
    return np.ascontiguousarray(x).reshape(-1).view(dtype).reshape(shape)


def _constant(name: str, shape: tuple[int, ...], content: bytes) -> HostArray:
    dtype: Dtype = np.dtype(name)
    return np.frombuffer(content, dtype).reshape(shape)


@cache
def _library(content: bytes) -> LoadedCode:
    """Loads functions that several programs share, once."""
    return load_object(content, _python_symbols())


def _nothing(*arrays: HostArray) -> HostArray | None:
    """Does nothing, as the entry of a program without a kernel."""
    return _NOTHING


@cache
def _python_symbols() -> dict[str, int]:
    """Returns the addresses of the symbols that entries use: see `invocation/native_entry.py`."""
    python = ctypes.pythonapi
    names = ("Py_IncRef", "PyEval_SaveThread", "PyEval_RestoreThread")
    functions = {
        name: ctypes.cast(getattr(python, name), ctypes.c_void_p).value or 0 for name in names
    }
    return {**functions, "_Py_NoneStruct": id(None), "axir_array_type": id(np.ndarray)}


def _as_function(address: int, plan: bytes) -> tuple[Entry, _MethodDefinition]:
    """Returns the code at an address as a function of Python, and an object that must live as long.

    Args:
        address: The entry's address.
        plan: The plan, which the entry gets as its `self`.
    """
    definition = _MethodDefinition(b"kernel", address, _FAST_CALL, None)
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    return make(ctypes.addressof(definition), plan, None), definition
