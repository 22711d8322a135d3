"""How Python runs kernels: a function of CPython's C interface, as LLVM IR.

It takes NumPy arrays, looks whether each is one that kernels can read and write where it lies, and
runs the kernels one after the other, workgroup after workgroup, on their addresses. Python calls
such a function in 50 ns, where `ctypes` takes 300 and the address of an array another 400. One
function serves all programs: which kernels on which arrays stands in a plan, the bytes object that
the function is called with as its `self` (`runtime/native/programs.py` writes it).

The layout of arrays is that of `PyArrayObject` ("Array API", "Python types and C-structures" in
NumPy's manual), that of what kernels take is IREE's (`iree/hal/local/executable_library.h`,
version 6). As under IREE's runtime, denormal numbers count as zeros while kernels run. What does
not live here: who fills in the addresses of what stands outside (`runtime/native/programs.py`).
"""

from __future__ import annotations

from typing import NamedTuple

# The arrays that a kernel reads where they lie: in the order of C, and aligned to their elements.
_USABLE = 0x101

_ENTRY = """
@axir_array_type = external global i8
@_Py_NoneStruct = external global i8
declare void @Py_IncRef(ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare ptr @memmove(ptr, ptr, i64)

define ptr @axir_entry(ptr %self, ptr %arguments, i64 %number) {{
begin:
  %plan = getelementptr i8, ptr %self, i64 {plan_offset}
  %count = load i64, ptr %plan
  %fits = icmp eq i64 %number, %count
  br i1 %fits, label %room, label %unusable

room:
  %most_place = getelementptr i64, ptr %plan, i64 1
  %most = load i64, ptr %most_place
  %addresses = alloca ptr, i64 %count, align 16
  %bound = alloca ptr, i64 %most, align 16
  %state = alloca [12 x i64], align 16
  %workgroup = alloca [4 x i64], align 16
  %environment = alloca [16 x i64], align 16
  br label %next

next:
  %i = phi i64 [ 0, %room ], [ %following, %usable ]
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
  %is_last = icmp eq i64 %following, %count
  br i1 %is_last, label %run, label %next

run:
  call void @llvm.memset.p0.i64(ptr align 16 %state, i8 0, i64 96, i1 false)
  call void @llvm.memset.p0.i64(ptr align 16 %workgroup, i8 0, i64 32, i1 false)
  %workgroups = getelementptr i8, ptr %state, i64 12
  %pointers = getelementptr i8, ptr %state, i64 32
  store ptr %bound, ptr %pointers
  %releases_place = getelementptr i64, ptr %plan, i64 2
  %releases_word = load i64, ptr %releases_place
  %keeps = icmp eq i64 %releases_word, 0
  br i1 %keeps, label %flush, label %release

release:
  %released = call ptr @PyEval_SaveThread()
  br label %flush

flush:
  %thread = phi ptr [ null, %run ], [ %released, %release ]
  {flush}
  %steps_place = getelementptr i64, ptr %plan, i64 3
  %steps = load i64, ptr %steps_place
  %first_step = getelementptr i64, ptr %plan, i64 4
  br label %step

step:
  %n = phi i64 [ 0, %flush ], [ %n_next, %step_end ]
  %at = phi ptr [ %first_step, %flush ], [ %at_next, %step_end ]
  %kernel = load ptr, ptr %at
  %amount_place = getelementptr i64, ptr %at, i64 1
  %amount = load i64, ptr %amount_place
  %places_place = getelementptr i64, ptr %at, i64 2
  %places = load i64, ptr %places_place
  %first_bound = getelementptr i64, ptr %at, i64 3
  br label %bind

bind:
  %b = phi i64 [ 0, %step ], [ %b_next, %bind ]
  %b_at = phi ptr [ %first_bound, %step ], [ %at_next, %bind ]
  %b_array = load i64, ptr %b_at
  %b_start_place = getelementptr i64, ptr %b_at, i64 1
  %b_start = load i64, ptr %b_start_place
  %b_slot = getelementptr ptr, ptr %addresses, i64 %b_array
  %b_data = load ptr, ptr %b_slot
  %b_address = getelementptr i8, ptr %b_data, i64 %b_start
  %b_bound = getelementptr ptr, ptr %bound, i64 %b
  store ptr %b_address, ptr %b_bound
  %at_next = getelementptr i64, ptr %b_at, i64 2
  %b_next = add i64 %b, 1
  %b_is_last = icmp eq i64 %b_next, %places
  br i1 %b_is_last, label %act, label %bind

act:
  %is_copy = icmp eq ptr %kernel, null
  br i1 %is_copy, label %copy, label %call

copy:
  %target = load ptr, ptr %bound
  %source_place = getelementptr ptr, ptr %bound, i64 1
  %source = load ptr, ptr %source_place
  %copied = call ptr @memmove(ptr %target, ptr %source, i64 %amount)
  br label %step_end

call:
  %amount_short = trunc i64 %amount to i32
  store i32 %amount_short, ptr %workgroups
  br label %group

group:
  %w = phi i32 [ 0, %call ], [ %w_next, %group ]
  store i32 %w, ptr %workgroup
  %status = call i32 %kernel(ptr %environment, ptr %state, ptr %workgroup)
  %w_next = add i32 %w, 1
  %w_is_last = icmp eq i32 %w_next, %amount_short
  br i1 %w_is_last, label %step_end, label %group

step_end:
  %n_next = add i64 %n, 1
  %n_is_last = icmp eq i64 %n_next, %steps
  br i1 %n_is_last, label %unflush, label %step

unflush:
  {unflush}
  br i1 %keeps, label %end, label %acquire

acquire:
  call void @PyEval_RestoreThread(ptr %thread)
  br label %end

end:
  %first = load ptr, ptr %arguments
  call void @Py_IncRef(ptr %first)
  ret ptr %first

unusable:
  call void @Py_IncRef(ptr @_Py_NoneStruct)
  ret ptr @_Py_NoneStruct
}}
"""


class _Flush(NamedTuple):
    """How denormal numbers come to count as zeros, and to count again.

    Attributes:
        begin: Keeps the register that says so, and changes it.
        end: Puts it back.
        declarations: Of what these call.
    """

    begin: str
    end: str
    declarations: str


# By the processor: the bits are "flush to zero" and "denormals are zeros" of MXCSR, and FZ and FZ16
# of FPCR. Both belong to the thread.
_FLUSHES = {
    "x86_64": _Flush(
        """%register = alloca [2 x i32], align 4
  %changed = getelementptr i8, ptr %register, i64 4
  call void @llvm.x86.sse.stmxcsr(ptr %register)
  %modes = load i32, ptr %register
  %flushing = or i32 %modes, 32832
  store i32 %flushing, ptr %changed
  call void @llvm.x86.sse.ldmxcsr(ptr %changed)""",
        "call void @llvm.x86.sse.ldmxcsr(ptr %register)",
        "declare void @llvm.x86.sse.stmxcsr(ptr)\ndeclare void @llvm.x86.sse.ldmxcsr(ptr)\n",
    ),
    "aarch64": _Flush(
        """%modes = call i64 @llvm.aarch64.get.fpcr()
  %flushing = or i64 %modes, 17301504
  call void @llvm.aarch64.set.fpcr(i64 %flushing)""",
        "call void @llvm.aarch64.set.fpcr(i64 %modes)",
        "declare i64 @llvm.aarch64.get.fpcr()\ndeclare void @llvm.aarch64.set.fpcr(i64)\n",
    ),
}


def entry_text(architecture: str) -> bytes:
    """Returns the function that Python calls with arrays, which runs kernels on them.

    It returns its first argument, or None if an array is of another kind.

    Args:
        architecture: The first part of LLVM's name of the machine.
    """
    head = object.__basicsize__
    flush = _FLUSHES[architecture]
    text = _ENTRY.format(
        plan_offset=bytes.__basicsize__ - 1,
        type_offset=head - 8,
        data_offset=head,
        flags_offset=head + 48,
        usable=_USABLE,
        flush=flush.begin,
        unflush=flush.end,
    )
    return (flush.declarations + text).encode()
