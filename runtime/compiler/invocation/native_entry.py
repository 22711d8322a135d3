"""How Python runs kernels: a function of CPython's C interface, as LLVM IR.

It takes NumPy arrays, looks whether each is one that kernels can read and write where it lies, and
runs the kernels one after the other, workgroup after workgroup, on their addresses. Python calls
such a function in 50 ns, where `ctypes` takes 300 and the address of an array another 400.

The layout of arrays is that of `PyArrayObject` ("Array API", "Python types and C-structures" in
NumPy's manual), that of what kernels take is IREE's (`iree/hal/local/executable_library.h`,
version 6). What does not live here: who fills in the addresses of what stands outside
(`runtime/native/programs.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

ENTRY = "axir_entry"
# The arrays that a kernel reads where they lie: in the order of C, and aligned to their elements.
_USABLE = 0x101
# As in `runtime/native/module_reader.py`.
Place = tuple[int, int]
Step = tuple[str, int, tuple[Place, ...]]

_HEAD = """
@axir_array_type = external global i8
@_Py_NoneStruct = external global i8
declare void @Py_IncRef(ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define internal void @axir_workgroups(ptr %kernel, ptr %state, ptr %workgroup, ptr %environment, \
i32 %count) noinline {
  %counts = getelementptr i8, ptr %state, i64 12
  store i32 %count, ptr %counts
  br label %next
next:
  %i = phi i32 [ 0, %0 ], [ %following, %next ]
  store i32 %i, ptr %workgroup
  %status = call i32 %kernel(ptr %environment, ptr %state, ptr %workgroup)
  %following = add i32 %i, 1
  %is_last = icmp eq i32 %following, %count
  br i1 %is_last, label %end, label %next
end:
  ret void
}
"""

_ENTRY = """
define ptr @{entry}(ptr %self, ptr %arguments, i64 %number) {{
begin:
  %addresses = alloca [{count} x ptr], align 16
  %bound = alloca [{most} x ptr], align 16
  %state = alloca [12 x i64], align 16
  %workgroup = alloca [4 x i64], align 16
  %environment = alloca [16 x i64], align 16
  %fits = icmp eq i64 %number, {count}
  br i1 %fits, label %next, label %unusable
next:
  %i = phi i64 [ 0, %begin ], [ %following, %usable ]
  %place = getelementptr ptr, ptr %arguments, i64 %i
  %array = load ptr, ptr %place
  %type_place = getelementptr i8, ptr %array, i64 {type_offset}
  %type = load ptr, ptr %type_place
  %is_array = icmp eq ptr %type, @axir_array_type
  br i1 %is_array, label %look, label %unusable
look:
  %flags_place = getelementptr i8, ptr %array, i64 {flags_offset}
  %flags = load i32, ptr %flags_place
  %wanted = and i32 %flags, {usable}
  %is_usable = icmp eq i32 %wanted, {usable}
  br i1 %is_usable, label %usable, label %unusable
usable:
  %data_place = getelementptr i8, ptr %array, i64 {data_offset}
  %data = load ptr, ptr %data_place
  %slot = getelementptr ptr, ptr %addresses, i64 %i
  store ptr %data, ptr %slot
  %following = add i64 %i, 1
  %is_last = icmp eq i64 %following, {count}
  br i1 %is_last, label %run, label %next
run:
  call void @llvm.memset.p0.i64(ptr align 16 %state, i8 0, i64 96, i1 false)
  call void @llvm.memset.p0.i64(ptr align 16 %workgroup, i8 0, i64 32, i1 false)
  %workgroups = getelementptr i8, ptr %state, i64 12
  store i32 1, ptr %workgroups
  %pointers = getelementptr i8, ptr %state, i64 32
  store ptr %bound, ptr %pointers
  {release}
  {steps}
  {acquire}
  %first = load ptr, ptr %arguments
  call void @Py_IncRef(ptr %first)
  ret ptr %first
unusable:
  call void @Py_IncRef(ptr @_Py_NoneStruct)
  ret ptr @_Py_NoneStruct
}}
"""


def entry_text(steps: Sequence[Step], arrays: int, releases_lock: bool) -> bytes:
    """Returns a function that Python calls with so many arrays, which runs kernels on them.

    The function returns its first argument, or None if an array is of another kind.

    Args:
        steps: Kernels and copies, in order.
        arrays: How many arrays the function takes.
        releases_lock: Whether other threads of Python may run meanwhile.
    """
    head = object.__basicsize__
    release = "%thread = call ptr @PyEval_SaveThread()" if releases_lock else ""
    acquire = "call void @PyEval_RestoreThread(ptr %thread)" if releases_lock else ""
    lines = [line for n, step in enumerate(steps) for line in _lines(f"s{n}", *step)]
    text = _ENTRY.format(
        entry=ENTRY,
        count=arrays,
        most=max(len(places) for _, _, places in steps),
        type_offset=head - 8,
        data_offset=head,
        flags_offset=head + 48,
        usable=_USABLE,
        release=release,
        steps="\n  ".join(lines),
        acquire=acquire,
    )
    return (_HEAD + text).encode()


def _lines(name: str, kernel: str, count: int, places: Sequence[Place]) -> Iterator[str]:
    """Yields the code of a step."""
    addresses = []
    for number, (array, start) in enumerate(places):
        yield f"%{name}_{number}s = getelementptr ptr, ptr %addresses, i64 {array}"
        yield f"%{name}_{number}p = load ptr, ptr %{name}_{number}s"
        addresses.append(f"%{name}_{number}p")
        if start:
            addresses[-1] = f"%{name}_{number}"
            yield f"%{name}_{number} = getelementptr i8, ptr %{name}_{number}p, i64 {start}"
    if not kernel:
        target, source = addresses
        yield (
            f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {count}, i1 false)"
        )
        return
    for number, address in enumerate(addresses):
        yield f"%{name}_{number}b = getelementptr ptr, ptr %bound, i64 {number}"
        yield f"store ptr {address}, ptr %{name}_{number}b"
    if count == 1:
        yield "store i32 0, ptr %workgroup"
        yield "store i32 1, ptr %workgroups"
        yield (f"%{name} = call i32 @{kernel}(ptr %environment, ptr %state, ptr %workgroup)")
    else:
        yield (
            f"call void @axir_workgroups(ptr @{kernel}, ptr %state, ptr %workgroup, "
            f"ptr %environment, i32 {count})"
        )
