"""Object files in the memory of this process: code that runs, and files that are refused."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import math
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.object_files import object_of

from axir.runtime.native import object_files
from axir.runtime.native.object_files import LoadedCode, ObjectFileError, load_object

# The parts of kernels' objects: calls of C, tables of numbers, addresses of internal and external
# symbols.
PROGRAM = """
@table = private constant [4 x double] [double 1.0, double 2.5, double -4.0, double 8.0]
@ways = internal constant [2 x ptr] [ptr @twice, ptr @thrice]
@outside = external global i32
declare double @hypot(double, double)

define internal double @twice(double %x) noinline {
  %y = fmul double %x, 2.0
  ret double %y
}

define internal double @thrice(double %x) noinline {
  %y = fmul double %x, 3.0
  ret double %y
}

define double @element(i64 %n) {
  %place = getelementptr double, ptr @table, i64 %n
  %x = load double, ptr %place
  ret double %x
}

define double @chosen(i64 %n, double %x) {
  %place = getelementptr ptr, ptr @ways, i64 %n
  %way = load ptr, ptr %place
  %y = call double %way(double %x)
  ret double %y
}

define double @distance(double %x, double %y) {
  %z = call double @hypot(double %x, double %y)
  ret double %z
}

define i32 @read_outside() {
  %x = load i32, ptr @outside
  ret i32 %x
}
"""
NUMBER = ctypes.c_int32(41)
SYMBOLS = {"outside": ctypes.addressof(NUMBER)}
MACHINE_AT, KIND_AT = 18, 16


@functools.cache
def content() -> bytes:
    return object_of(PROGRAM)


def function(code: LoadedCode, name: str, result: type, *arguments: type):
    return ctypes.CFUNCTYPE(result, *arguments)(code.address_of(name))


def test_functions_run_with_what_they_refer_to() -> None:
    code = load_object(content(), SYMBOLS)
    real, whole = ctypes.c_double, ctypes.c_int64
    element = function(code, "element", real, whole)
    assert [element(n) for n in range(4)] == [1.0, 2.5, -4.0, 8.0]
    chosen = function(code, "chosen", real, whole, real)
    assert (chosen(0, 5.0), chosen(1, 5.0)) == (10.0, 15.0)
    assert function(code, "distance", real, real, real)(3.0, 4.0) == math.hypot(3.0, 4.0)
    assert function(code, "read_outside", ctypes.c_int32)() == 41


@pytest.mark.parametrize(("begins", "name"), [("0", ".bss"), ("7", ".data")])
def test_memory_to_write_to_is_refused(begins: str, name: str) -> None:
    text = f"@count = internal global i32 {begins}\ndefine void @f() {{\n"
    text += (
        "  store volatile i32 1, ptr @count\n  %x = load volatile i32, ptr @count\n  ret void\n}\n"
    )
    with pytest.raises(ObjectFileError, match=rf"to write to \({name}\), and a kernel has none"):
        load_object(object_of(text), {})


def test_functions_of_the_object_alone_are_not_exported() -> None:
    code = load_object(content(), SYMBOLS)
    with pytest.raises(ObjectFileError, match="has no function 'twice'.*\n.*\n.*compile the prog"):
        code.address_of("twice")


def test_an_unknown_symbol_is_named() -> None:
    text = "declare double @axir_has_none(double)\ndefine double @f(double %x) {\n"
    text += "  %y = call double @axir_has_none(double %x)\n  ret double %y\n}\n"
    with pytest.raises(ObjectFileError, match="'axir_has_none', which this process does not have"):
        load_object(object_of(text), {})
    where = ctypes.cast(ctypes.pythonapi.Py_IncRef, ctypes.c_void_p).value
    assert where is not None
    assert load_object(object_of(text), {"axir_has_none": where}).address_of("f")


def test_an_unknown_way_to_refer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = object_files.host_machine()
    monkeypatch.setitem(object_files._REFERENCES, machine, {})
    with pytest.raises(ObjectFileError, match=r"in a way \(relocation \d+\) that is not known"):
        load_object(content(), SYMBOLS)


@pytest.mark.parametrize("bad", [b"", b"\x7fELF", b"no object" * 20, b"\0" * 1000])
def test_what_is_no_object_file_is_refused(bad: bytes) -> None:
    with pytest.raises(ObjectFileError, match="This is no object file of machine code") as caught:
        load_object(bad, {})
    assert "compile the program again, here." in str(caught.value)


def test_an_object_of_another_machine_is_refused() -> None:
    other = {"x86_64": 183, "aarch64": 62}[object_files.host_machine()]
    for number in (other, 40):
        changed = bytearray(content())
        struct.pack_into("<H", changed, MACHINE_AT, number)
        with pytest.raises(ObjectFileError, match="from another machine"):
            load_object(bytes(changed), SYMBOLS)


def test_a_linked_file_is_refused() -> None:
    changed = bytearray(content())
    struct.pack_into("<H", changed, KIND_AT, 3)
    with pytest.raises(ObjectFileError, match="another kind of file"):
        load_object(bytes(changed), SYMBOLS)


def test_a_file_that_is_cut_off_is_refused() -> None:
    whole = content()
    for length in range(0, len(whole), 37):
        with pytest.raises(ObjectFileError, match="no object file"):
            load_object(whole[:length], SYMBOLS)


@settings(max_examples=400)
@given(st.data())
def test_a_damaged_file_is_refused_or_loaded(data: st.DataObject) -> None:
    """For any content of its tables: a loader does not interpret the bytes of code."""
    changed = bytearray(content())
    tables = struct.unpack_from("<Q", changed, 40)[0]
    places = (
        st.integers(0, 63)
        | st.integers(tables, len(changed) - 1)
        | st.integers(0, len(changed) - 1)
    )
    for place in data.draw(st.lists(places, min_size=1, max_size=3)):
        changed[place] = data.draw(st.integers(0, 255))
    with contextlib.suppress(ObjectFileError):
        assert isinstance(load_object(bytes(changed), SYMBOLS), LoadedCode)


def test_a_system_that_refuses_to_run_it_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_files, "_protect", lambda: lambda *_: -1)
    with pytest.raises(ObjectFileError, match="does not let this process run code") as caught:
        load_object(content(), SYMBOLS)
    assert caught.value.way_out == "Set axir_compiler to 'iree', whose code lies in files."
