"""`load_object`: the code of an object file (ELF), in this process's memory and ready to run.

The system's linker and loader do the same in 4 ms and two files. An object of one kernel needs
little of them: its sections are placed one after another, its relocations are filled in, and the
functions of the C library that it calls are looked up in this process. The format is defined by the
System V ABI, with the supplement for AMD64 (gitlab.com/x86-psABIs) or AArch64
(github.com/ARM-software/abi-aa).
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import struct
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import NamedTuple

from axir.runtime.errors import LoadError


class ObjectFileError(LoadError):
    """An object file cannot be loaded."""


class ForbiddenCodeError(ObjectFileError):
    """The system refuses to run code that is not in a file."""


_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_MACHINES = {62: "x86_64", 183: "aarch64"}
# Of 64-bit words, the least significant byte first; not linked yet.
_BEGIN, _RELOCATABLE = b"\x7fELF\2\1\1", 1
_SYMBOLS, _RELOCATIONS, _NO_BITS = 2, 4, 8
_WRITABLE, _ALLOCATED = 1, 2
# A section that only the loader writes to.
_ADDRESSES = ".data.rel.ro"
# The range of references, which have four bytes.
_MOST_BYTES = 1 << 31
_UNDEFINED, _LEAST_RESERVED = 0, 0xFF00
_READ_AND_RUN = mmap.PROT_READ | mmap.PROT_EXEC
_POINTER = 8
_WORD = 4
# A jump to an address that follows it.
_JUMP = {
    "x86_64": bytes.fromhex("ff2500000000"),  # jmp *(%rip)
    "aarch64": bytes.fromhex("5000005800021fd6"),  # ldr x16, 8; br x16
}
_JUMP_BYTES = 16

Write = Callable[["_Memory", int, int], None]


class LoadedCode:
    """Machine code in memory, which stays as long as this object.

    Args:
        memory: Where it is.
        exported: The addresses of its functions, by name.
    """

    def __init__(self, memory: mmap.mmap, exported: Mapping[str, int]):
        self._memory = memory
        self.exported = dict(exported)

    def address_of(self, name: str) -> int:
        """Returns the address of a function that the object exports."""
        try:
            return self.exported[name]
        except KeyError:
            raise ObjectFileError(
                f"Machine code has no function {name!r}.",
                "It is damaged: compile the program again.",
            ) from None


class _Section(NamedTuple):
    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int


class _Symbol(NamedTuple):
    name: str
    section: int
    value: int
    is_global: bool


class _Memory:
    """Memory that is written to before it is run.

    Args:
        size: In bytes.
    """

    def __init__(self, size: int):
        self.pages = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.start = ctypes.addressof(ctypes.c_char.from_buffer(self.pages))
        self._size = size

    def word(self, place: int) -> int:
        """Returns the four bytes at an address."""
        return struct.unpack_from("<I", self.pages, place - self.start)[0]

    def put(self, place: int, content: bytes) -> None:
        """Writes bytes at an address."""
        start = place - self.start
        self.pages[start : start + len(content)] = content

    def make_runnable(self) -> None:
        """Makes the memory read-only and executable."""
        if host_machine() == "aarch64":  # its caches of code and of data are separate
            libgcc = ctypes.CDLL("libgcc_s.so.1")
            libgcc.__clear_cache(
                ctypes.c_void_p(self.start), ctypes.c_void_p(self.start + self._size)
            )
        if _protect()(self.start, self._size, _READ_AND_RUN):
            raise ForbiddenCodeError(
                "The system does not let this process run code that it has loaded.",
                "Set axir_compiler to 'iree', whose code lies in files.",
            )


def load_object(content: bytes, symbols: Mapping[str, int]) -> LoadedCode:
    """Loads an object file.

    Args:
        content: The file.
        symbols: Addresses of external symbols, by name; other symbols are functions of the C
            library.

    Raises:
        ObjectFileError: it is damaged, for another machine, or refers to an unknown symbol.
        ForbiddenCodeError: the system does not let this process run it.

    >>> load_object(b"no object", {})
    Traceback (most recent call last):
    axir.runtime.native.object_files.ObjectFileError: This is no object file of machine code...
    """
    try:
        return _Loader(content, symbols).load()
    except (struct.error, LookupError, ValueError, OverflowError) as error:
        raise ObjectFileError(
            f"This is no object file of machine code for this machine: {error!r}.",
            "It is damaged, or from another machine: compile the program again, here.",
        ) from error


class _Loader:
    def __init__(self, content: bytes, symbols: Mapping[str, int]):
        self._content = content
        self._symbols = symbols
        header = _HEADER.unpack_from(content)
        self._machine = _MACHINES[header[2]]
        if not content.startswith(_BEGIN) or header[1] != _RELOCATABLE:
            raise ValueError("another kind of file")
        if self._machine != host_machine():
            raise ValueError(f"it is for {self._machine}")
        start, count = header[6], header[12]
        self._sections = [
            _Section(*_SECTION.unpack_from(content, start + number * _SECTION.size))
            for number in range(count)
        ]
        for section in self._sections:
            if section.kind != _NO_BITS and section.offset + section.size > len(content):
                raise ValueError("it is cut off")
        self._places: dict[int, int] = {}
        self._table = list(self._read_symbols())
        self._stubs: dict[str, int] = {}
        self._slots: dict[str, int] = {}

    def load(self) -> LoadedCode:
        outside = [x.name for x in self._table if x.section == _UNDEFINED and x.name]
        offsets, size = self._layout()
        stubs = size
        size += len(outside) * (_JUMP_BYTES + _POINTER)
        if size > _MOST_BYTES:
            raise ValueError(f"it wants {size:,} bytes")
        memory = _Memory(max(size, mmap.PAGESIZE))
        for number, offset in offsets.items():
            self._places[number] = memory.start + offset
            section = self._sections[number]
            end = section.offset + section.size
            memory.put(self._places[number], self._content[section.offset : end])
        for number, name in enumerate(outside):
            place = memory.start + stubs + number * (_JUMP_BYTES + _POINTER)
            address = struct.pack("<Q", self._address_of(name))
            jump = _JUMP[self._machine]
            # The address follows the jump, which reads it.
            memory.put(place, jump + address)
            self._stubs[name], self._slots[name] = place, place + len(jump)
        for section in self._sections:
            if section.kind == _RELOCATIONS and section.info in self._places:
                self._relocate(section, memory)
        memory.make_runnable()
        exported = {
            x.name: self._places[x.section] + x.value
            for x in self._table
            if x.is_global
            and x.section in self._places
            and x.value < self._sections[x.section].size
        }
        return LoadedCode(memory.pages, exported)

    def _layout(self) -> tuple[dict[int, int], int]:
        """Returns where sections that are loaded begin, and where the last one ends."""
        offsets, end = {}, 0
        for number, section in enumerate(self._sections):
            if section.flags & _ALLOCATED and section.size and not self._is_of_lines(section):
                name = self._name_of(section)
                if section.flags & _WRITABLE and not name.startswith(_ADDRESSES):
                    raise ObjectFileError(
                        f"Machine code has memory of its own to write to ({name}), and a kernel "
                        "has none.",
                        "Set axir_compiler to 'iree'.",
                    )
                end = -(-end // max(1, section.alignment)) * max(1, section.alignment)
                offsets[number] = end
                end += section.size
        return offsets, -(-end // _JUMP_BYTES) * _JUMP_BYTES

    def _is_of_lines(self, section: _Section) -> bool:
        """Tells whether a section describes how to unwind the stack, which is never done."""
        return self._name_of(section).startswith(".eh_frame")

    def _name_of(self, section: _Section) -> str:
        header = _HEADER.unpack_from(self._content)
        return self._text(self._sections[header[13]], section.name)

    def _text(self, table: _Section, start: int) -> str:
        start += table.offset
        return self._content[start : self._content.index(b"\0", start)].decode()

    def _read_symbols(self) -> Iterator[_Symbol]:
        for section in self._sections:
            if section.kind != _SYMBOLS:
                continue
            names = self._sections[section.link]
            for start in range(section.offset, section.offset + section.size, _SYMBOL.size):
                name, info, _, index, value, _ = _SYMBOL.unpack_from(self._content, start)
                if _LEAST_RESERVED <= index:
                    index = -1  # the name of a file, or a number
                yield _Symbol(self._text(names, name), index, value, bool(info >> 4))

    def _address_of(self, name: str) -> int:
        known = self._symbols.get(name)
        found = _function_of_c(name) if known is None else known
        if found is None:
            raise ObjectFileError(
                f"Machine code calls {name!r}, which this process does not have.",
                "Set axir_compiler to 'iree'.",
            )
        return found

    def _relocate(self, section: _Section, memory: _Memory) -> None:
        base = self._places[section.info]
        for start in range(section.offset, section.offset + section.size, _RELOCATION.size):
            offset, info, addend = _RELOCATION.unpack_from(self._content, start)
            if offset + _WORD > self._sections[section.info].size:
                raise ValueError("it changes code that is not there")
            symbol = self._table[info >> 32]
            write = _REFERENCES[self._machine].get(info & 0xFFFFFFFF)
            if write is None:
                raise ObjectFileError(
                    f"Machine code refers to {symbol.name!r} in a way (relocation "
                    f"{info & 0xFFFFFFFF}) that is not known.",
                    "Set axir_compiler to 'iree'.",
                )
            kind, put = write
            put(memory, base + offset, self._target(symbol, kind) + addend)

    def _target(self, symbol: _Symbol, kind: str) -> int:
        if symbol.section in self._places:
            if kind == "slot":
                raise KeyError(symbol.name)
            return self._places[symbol.section] + symbol.value
        if kind == "slot":
            return self._slots[symbol.name]
        return self._stubs[symbol.name] if kind == "code" else self._address_of(symbol.name)


# References, by their numbers in the supplements for the processors -----------------------------


def _absolute(memory: _Memory, place: int, target: int) -> None:
    memory.put(place, struct.pack("<Q", target))


def _relative(memory: _Memory, place: int, target: int) -> None:
    memory.put(place, struct.pack("<i", target - place))


def _page(memory: _Memory, place: int, target: int) -> None:
    distance = ((target >> 12) - (place >> 12)) & 0x1FFFFF
    word = memory.word(place) & 0x9F00001F
    memory.put(place, struct.pack("<I", word | (distance & 3) << 29 | (distance >> 2) << 5))


def _in_page(shift: int) -> Write:
    def write(memory: _Memory, place: int, target: int) -> None:
        word = memory.word(place) & 0xFFC003FF
        memory.put(place, struct.pack("<I", word | (target & 0xFFF) >> shift << 10))

    return write


def _branch(memory: _Memory, place: int, target: int) -> None:
    distance = (target - place) >> 2 & 0x3FFFFFF
    memory.put(place, struct.pack("<I", memory.word(place) & 0xFC000000 | distance))


# The kind of target (an address, a slot that holds one, code that may be far away), and how it is
# written into the code.
_REFERENCES: dict[str, dict[int, tuple[str, Write]]] = {
    "x86_64": {
        1: ("address", _absolute),
        2: ("address", _relative),
        4: ("code", _relative),
        9: ("slot", _relative),
        41: ("slot", _relative),
        42: ("slot", _relative),
    },
    "aarch64": {
        257: ("address", _absolute),
        261: ("address", _relative),
        275: ("address", _page),
        277: ("address", _in_page(0)),
        278: ("address", _in_page(0)),
        282: ("code", _branch),
        283: ("code", _branch),
        284: ("address", _in_page(1)),
        285: ("address", _in_page(2)),
        286: ("address", _in_page(3)),
        299: ("address", _in_page(4)),
        311: ("slot", _page),
        312: ("slot", _in_page(3)),
    },
}


def host_machine() -> str:
    """Returns the architecture of this process."""
    return platform.machine()


@cache
def _protect() -> Callable[[int, int, int], int]:
    function = ctypes.CDLL(None, use_errno=True).mprotect
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return function


@cache
def _function_of_c(name: str) -> int | None:
    """Returns the address of a function of the C library, or of a loaded library."""
    for library in (None, "libm.so.6"):
        try:
            function = getattr(ctypes.CDLL(library), name)
        except (AttributeError, OSError):
            continue
        return ctypes.cast(function, ctypes.c_void_p).value
    return None
