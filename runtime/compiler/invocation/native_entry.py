"""How Python runs kernels: a function of CPython's C interface, as LLVM IR.

It takes NumPy arrays, looks whether each is one that kernels can read and write where it lies, and
runs the kernels one after the other, workgroup after workgroup, on their addresses. Python calls
such a function in 50 ns, where `ctypes` takes 300 and the address of an array another 400. One
function serves all programs: which kernels on which arrays stands in a plan, the bytes object that
the function is called with as its `self` (`runtime/native/programs.py` writes it).

Loops and branches are jumps in the plan. The memory of a loop's carry may change from pass to pass.
The plan then names a slot, behind the arrays, and the function keeps the address in that slot. A
program that calls host functions, or has loops, has one more array, of words: the word of the plan
to continue at, 0 for the begin; the host function that has to run before; then the addresses of all
arrays and slots. The function returns where a host function is next, and from a loop about once a
second, so that Python can handle signals. When it is done, the first two words are 0.

The layout of arrays is `PyArrayObject`'s ("Array API", "Python types and C-structures" in NumPy's
manual); the layout of the kernels' arguments is IREE's (`iree/hal/local/executable_library.h`,
version 6). As under IREE's runtime, denormal numbers count as zeros while kernels run. Elsewhere:
filling in the addresses of external symbols (`runtime/native/programs.py`).
"""

from __future__ import annotations

from typing import NamedTuple

# Flags of NumPy arrays that a kernel can use in place: C order, and aligned to their elements.
_USABLE = 0x101

_ENTRY = """
@axir_array_type = external global i8
@_Py_NoneStruct = external global i8
declare void @Py_IncRef(ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare ptr @memmove(ptr, ptr, i64)
declare i64 @time(ptr)

define ptr @axir_entry(ptr %self, ptr %arguments, i64 %number) {{
begin:
  %plan = getelementptr i8, ptr %self, i64 {plan_offset}
  %count = load i64, ptr %plan
  %stops_place = getelementptr i64, ptr %plan, i64 3
  %stops_word = load i64, ptr %stops_place
  %slots_place = getelementptr i64, ptr %plan, i64 4
  %slots = load i64, ptr %slots_place
  %first_slot = getelementptr i64, ptr %plan, i64 5
  %slot_words = mul i64 %slots, 2
  %plan_begin = getelementptr i64, ptr %first_slot, i64 %slot_words
  %wanted_number = add i64 %count, %stops_word
  %fits = icmp eq i64 %number, %wanted_number
  br i1 %fits, label %room, label %unusable

room:
  %most_place = getelementptr i64, ptr %plan, i64 1
  %most = load i64, ptr %most_place
  %bound = alloca ptr, i64 %most, align 16
  %state = alloca [12 x i64], align 16
  %workgroup = alloca [4 x i64], align 16
  %environment = alloca [16 x i64], align 16
  %begun = alloca i64, align 8
  store i64 0, ptr %begun
  %stops = icmp ne i64 %stops_word, 0
  br i1 %stops, label %find, label %take

take:
  %own = alloca ptr, i64 %count, align 16
  br label %next

find:
  %control_place = getelementptr ptr, ptr %arguments, i64 %count
  %control_array = load ptr, ptr %control_place
  %control_data_place = getelementptr i8, ptr %control_array, i64 {data_offset}
  %found_control = load ptr, ptr %control_data_place
  %found = getelementptr i64, ptr %found_control, i64 2
  %going_on = load i64, ptr %found_control
  %is_new = icmp eq i64 %going_on, 0
  br i1 %is_new, label %next, label %go_on

go_on:
  %on_at = getelementptr i64, ptr %plan, i64 %going_on
  br label %run

next:
  %i = phi i64 [ 0, %take ], [ 0, %find ], [ %following, %usable ]
  %control = phi ptr [ null, %take ], [ %found_control, %find ], [ %control, %usable ]
  %addresses = phi ptr [ %own, %take ], [ %found, %find ], [ %addresses, %usable ]
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
  br i1 %is_last, label %next_slot, label %next

next_slot:
  %s = phi i64 [ 0, %usable ], [ %s_next, %slot_found ]
  %s_at = phi ptr [ %first_slot, %usable ], [ %s_at_next, %slot_found ]
  %has_slot = icmp ult i64 %s, %slots
  br i1 %has_slot, label %slot_found, label %run

slot_found:
  %s_array = load i64, ptr %s_at
  %s_start_place = getelementptr i64, ptr %s_at, i64 1
  %s_start = load i64, ptr %s_start_place
  %s_data_place = getelementptr ptr, ptr %addresses, i64 %s_array
  %s_data = load ptr, ptr %s_data_place
  %s_address = getelementptr i8, ptr %s_data, i64 %s_start
  %s_number = add i64 %count, %s
  %s_place = getelementptr ptr, ptr %addresses, i64 %s_number
  store ptr %s_address, ptr %s_place
  %s_next = add i64 %s, 1
  %s_at_next = getelementptr i64, ptr %s_at, i64 2
  br label %next_slot

run:
  %list = phi ptr [ %found, %go_on ], [ %addresses, %next_slot ]
  %control_words = phi ptr [ %found_control, %go_on ], [ %control, %next_slot ]
  %first_step = phi ptr [ %on_at, %go_on ], [ %plan_begin, %next_slot ]
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
  br label %step

step:
  %at = phi ptr [ %first_step, %flush ], [ %at_next, %copy ], [ %at_next, %same ],
    [ %at_next, %group ], [ %jump_at, %jump ], [ %jump_at, %again ], [ %unless_at, %unless ],
    [ %choice_at, %choose ], [ %at_next, %exchanged ]
  %kind = load i64, ptr %at
  %amount_place = getelementptr i64, ptr %at, i64 1
  %amount = load i64, ptr %amount_place
  %places_place = getelementptr i64, ptr %at, i64 2
  %places = load i64, ptr %places_place
  %first_bound = getelementptr i64, ptr %at, i64 3
  %jump_at = getelementptr i64, ptr %plan, i64 %amount
  %has_none = icmp eq i64 %places, 0
  br i1 %has_none, label %act, label %bind

bind:
  %b = phi i64 [ 0, %step ], [ %b_next, %bind ]
  %b_at = phi ptr [ %first_bound, %step ], [ %b_at_next, %bind ]
  %b_array = load i64, ptr %b_at
  %b_start_place = getelementptr i64, ptr %b_at, i64 1
  %b_start = load i64, ptr %b_start_place
  %b_slot = getelementptr ptr, ptr %list, i64 %b_array
  %b_data = load ptr, ptr %b_slot
  %b_address = getelementptr i8, ptr %b_data, i64 %b_start
  %b_bound = getelementptr ptr, ptr %bound, i64 %b
  store ptr %b_address, ptr %b_bound
  %b_at_next = getelementptr i64, ptr %b_at, i64 2
  %b_next = add i64 %b, 1
  %b_is_last = icmp eq i64 %b_next, %places
  br i1 %b_is_last, label %act, label %bind

act:
  %at_next = phi ptr [ %first_bound, %step ], [ %b_at_next, %bind ]
  %target = load ptr, ptr %bound
  switch i64 %kind, label %call [ i64 0, label %copy  i64 1, label %jump  i64 2, label %again
    i64 3, label %unless  i64 4, label %choose  i64 5, label %exchange  i64 6, label %host
    i64 7, label %done ]

copy:
  %source_place = getelementptr ptr, ptr %bound, i64 1
  %source = load ptr, ptr %source_place
  %is_same = icmp eq ptr %source, %target
  br i1 %is_same, label %step, label %same

same:
  %copied = call ptr @memmove(ptr %target, ptr %source, i64 %amount)
  br label %step

jump:
  br label %step

again:
  %now = call i64 @time(ptr null)
  %then = load i64, ptr %begun
  %is_first = icmp eq i64 %then, 0
  %kept = select i1 %is_first, i64 %now, i64 %then
  store i64 %kept, ptr %begun
  %is_late = icmp ne i64 %kept, %now
  br i1 %is_late, label %pause, label %step

unless:
  %truth = load i8, ptr %target
  %holds = icmp ne i8 %truth, 0
  %unless_at = select i1 %holds, ptr %at_next, ptr %jump_at
  br label %step

choose:
  %number_chosen = load i32, ptr %target
  %wide = zext i32 %number_chosen to i64
  %is_inside = icmp ult i64 %wide, %amount
  %last_choice = sub i64 %amount, 1
  %choice = select i1 %is_inside, i64 %wide, i64 %last_choice
  %choice_words = mul i64 %choice, 3
  %choice_at = getelementptr i64, ptr %at_next, i64 %choice_words
  br label %step

exchange:
  %e = phi i64 [ 0, %act ], [ %e_next, %exchange ]
  %e_at = phi ptr [ %first_bound, %act ], [ %e_at_next, %exchange ]
  %e_slot = load i64, ptr %e_at
  %e_place = getelementptr ptr, ptr %list, i64 %e_slot
  %e_other = add i64 %e, 1
  %e_bound = getelementptr ptr, ptr %bound, i64 %e_other
  %e_address = load ptr, ptr %e_bound
  store ptr %e_address, ptr %e_place
  %e_next = add i64 %e, 2
  %e_at_next = getelementptr i64, ptr %e_at, i64 4
  %e_is_last = icmp uge i64 %e_next, %places
  br i1 %e_is_last, label %exchanged, label %exchange

exchanged:
  br label %step

call:
  %kernel = inttoptr i64 %kind to ptr
  %amount_short = trunc i64 %amount to i32
  store i32 %amount_short, ptr %workgroups
  br label %group

group:
  %w = phi i32 [ 0, %call ], [ %w_next, %group ]
  store i32 %w, ptr %workgroup
  %status = call i32 %kernel(ptr %environment, ptr %state, ptr %workgroup)
  %w_next = add i32 %w, 1
  %w_is_last = icmp eq i32 %w_next, %amount_short
  br i1 %w_is_last, label %step, label %group

pause:
  br label %stop

host:
  %there = ptrtoint ptr %at_next to i64
  %origin = ptrtoint ptr %plan to i64
  %far = sub i64 %there, %origin
  %far_words = udiv i64 %far, 8
  br label %stop

done:
  br i1 %stops, label %stop, label %unflush

stop:
  %word = phi i64 [ %amount, %pause ], [ %far_words, %host ], [ 0, %done ]
  %turn = phi i64 [ 0, %pause ], [ %amount, %host ], [ 0, %done ]
  store i64 %word, ptr %control_words
  %turn_place = getelementptr i64, ptr %control_words, i64 1
  store i64 %turn, ptr %turn_place
  br label %unflush

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
    """Code that makes denormal numbers count as zeros, and restores the former mode.

    Attributes:
        begin: Saves the control register, and changes it.
        end: Restores it.
        declarations: The declarations of the intrinsics that these call.
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
