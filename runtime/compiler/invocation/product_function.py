"""A function for products of matrices of any extents, as LLVM IR, which kernels call.

A tile of the result, four rows of two vectors, is kept in registers while the products of its sums
are added; panels of the right operand are packed beside each other on the stack. Each sum is added
up as in the kernels that IREE gets (`passes/tune/products/matrix_kernel.py`): one product after the
other for a `depth`, and the sums of all depths one after the other. So both compute the same bits.

Beside it stands a kernel of a batch of products, for all programs that have one and nothing behind:
the extents and where the operands lie are an array that it reads.

Because it is LLVM IR, it needs no MLIR pass: it is compiled once, and all programs that multiply
matrices share it. Elsewhere: the calls, and the array (`passes/tune/products/called_kernel.py`).
"""

from __future__ import annotations

import re
from typing import NamedTuple

_CALLED = re.compile(r"@axir_products?_(\w+)\(")
_ROWS, _VECTORS = 4, 2
# The longest sum that is added in registers, of `tiling.py`.
_LONGEST_SUM = 512


def called_products(kernels: str) -> list[str]:
    """Returns the dtypes for which kernels call the function of products."""
    return sorted(set(_CALLED.findall(kernels)))


class _Element(NamedTuple):
    """A type of numbers: its name in LLVM IR, and its bytes."""

    kind: str
    size: int


_ELEMENTS = {"f32": _Element("float", 4), "f64": _Element("double", 8)}

_TEXT = """
declare {vector} @llvm.masked.load.{suffix}.p0(ptr, {mask}, {vector})
declare void @llvm.masked.store.{suffix}.p0({vector}, ptr, {mask})

define void @axir_product_{element}(i64 %left_address, i64 %left_row, i64 %left_step, \
i64 %right_address, i64 %right_column, i64 %right_step, i64 %sums_address, i64 %sums_row, \
i64 %rows, i64 %columns, i64 %products, i64 %depth, i64 %is_partial) {{
begin:
  %left = inttoptr i64 %left_address to ptr
  %right = inttoptr i64 %right_address to ptr
  %sums = inttoptr i64 %sums_address to ptr
  %panel = alloca [{panel} x {kind}], align 64
  %tile = alloca [{tile} x {kind}], align 64
  %is_whole = icmp eq i64 %is_partial, 0
  %last_row = sub i64 %rows, 1
  %last_column = sub i64 %columns, 1
  %is_in_rows = icmp eq i64 %right_column, 1
  %stride = mul i64 %left_step, {size}
  %some_columns = insertelement {places} poison, i64 %columns, i32 0
  %all_columns = shufflevector {places} %some_columns, {places} poison, {zeros}
  br label %deep

deep:
  %from = phi i64 [ 0, %begin ], [ %to, %deep_end ]
  %far = add i64 %from, %depth
  %is_far = icmp ult i64 %far, %products
  %to = select i1 %is_far, i64 %far, i64 %products
  %steps = sub i64 %to, %from
  %is_later = icmp ne i64 %from, 0
  %left_from = mul i64 %from, %left_step
  %left_part = getelementptr {kind}, ptr %left, i64 %left_from
  %right_from = mul i64 %from, %right_step
  %right_part = getelementptr {kind}, ptr %right, i64 %right_from
  br label %column

column:
  %j = phi i64 [ 0, %deep ], [ %j_next, %column_end ]
  %j_one = insertelement {places} poison, i64 %j, i32 0
  %j_all = shufflevector {places} %j_one, {places} poison, {zeros}
  %place0 = add {places} %j_all, {counting}
{masks}
  br i1 %is_in_rows, label %pack_row, label %pack_column

pack_row:
  %p = phi i64 [ 0, %column ], [ %p_next, %pack_row ]
  %p_row = mul i64 %p, %right_step
  %p_place = add i64 %p_row, %j
  %p_from = getelementptr {kind}, ptr %right_part, i64 %p_place
  %p_panel = mul i64 %p, {width}
  %p_to = getelementptr {kind}, ptr %panel, i64 %p_panel
{packing}
  %p_next = add i64 %p, 1
  %p_end = icmp eq i64 %p_next, %steps
  br i1 %p_end, label %row, label %pack_row

pack_column:
  %q = phi i64 [ 0, %column ], [ %q_next, %pack_column_end ]
  %q_column = add i64 %j, %q
  %q_is_there = icmp ult i64 %q_column, %last_column
  %q_taken = select i1 %q_is_there, i64 %q_column, i64 %last_column
  %q_place = mul i64 %q_taken, %right_column
  %q_from = getelementptr {kind}, ptr %right_part, i64 %q_place
  %q_to = getelementptr {kind}, ptr %panel, i64 %q
  br label %pack_element

pack_element:
  %e = phi i64 [ 0, %pack_column ], [ %e_next, %pack_element ]
  %e_place = mul i64 %e, %right_step
  %e_from = getelementptr {kind}, ptr %q_from, i64 %e_place
  %e_taken = load {kind}, ptr %e_from
  %e_panel = mul i64 %e, {width}
  %e_to = getelementptr {kind}, ptr %q_to, i64 %e_panel
  store {kind} %e_taken, ptr %e_to
  %e_next = add i64 %e, 1
  %e_end = icmp eq i64 %e_next, %steps
  br i1 %e_end, label %pack_column_end, label %pack_element

pack_column_end:
  %q_next = add i64 %q, 1
  %q_end = icmp eq i64 %q_next, {width}
  br i1 %q_end, label %row, label %pack_column

row:
  %i = phi i64 [ 0, %pack_row ], [ 0, %pack_column_end ], [ %i_next, %row_end ]
{lefts}
  br label %step

step:
  %s = phi i64 [ 0, %row ], [ %s_next, %step ]
  %at = phi i64 [ 0, %row ], [ %at_next, %step ]
{starts}
  %s_panel = mul i64 %s, {width}
  %s_from = getelementptr {kind}, ptr %panel, i64 %s_panel
{products}
  %s_next = add i64 %s, 1
  %at_next = add i64 %at, %stride
  %s_end = icmp eq i64 %s_next, %steps
  br i1 %s_end, label %keep, label %step

keep:
{keeping}
  %rows_left = sub i64 %rows, %i
  %are_few = icmp ult i64 %rows_left, {rows}
  %count = select i1 %are_few, i64 %rows_left, i64 {rows}
  br label %write

write:
  %w = phi i64 [ 0, %keep ], [ %w_next, %write_end ]
  %w_row = add i64 %w, %i
  %w_sums = mul i64 %w_row, %sums_row
  %w_place = add i64 %w_sums, %j
  %w_to = getelementptr {kind}, ptr %sums, i64 %w_place
  %w_tile = mul i64 %w, {width}
  %w_from = getelementptr {kind}, ptr %tile, i64 %w_tile
{found}
  br i1 %is_whole, label %put, label %add

put:
{putting}
  br label %write_end

add:
  %a_one = insertelement {mask} poison, i1 %is_later, i32 0
  %a_all = shufflevector {mask} %a_one, {mask} poison, {zeros}
{adding}
  br label %write_end

write_end:
  %w_next = add i64 %w, 1
  %w_end = icmp eq i64 %w_next, %count
  br i1 %w_end, label %row_end, label %write

row_end:
  %i_next = add i64 %i, {rows}
  %i_end = icmp uge i64 %i_next, %rows
  br i1 %i_end, label %column_end, label %row

column_end:
  %j_next = add i64 %j, {width}
  %j_end = icmp uge i64 %j_next, %columns
  br i1 %j_end, label %deep_end, label %column

deep_end:
  %deep_is_last = icmp uge i64 %to, %products
  br i1 %deep_is_last, label %end, label %deep

end:
  ret void
}}
"""

# Reads the array of `shared_product` in its order; `native_entry.py` says how kernels are called.
_KERNEL = """
define i32 @axir_products_{element}(ptr %environment, ptr %state, ptr %workgroup) {{
begin:
  %bound_place = getelementptr i8, ptr %state, i64 32
  %bound = load ptr, ptr %bound_place
  %left_begin = load i64, ptr %bound
  %right_place = getelementptr ptr, ptr %bound, i64 1
  %right_begin = load i64, ptr %right_place
  %words_place = getelementptr ptr, ptr %bound, i64 2
  %words = load ptr, ptr %words_place
  %sums_place = getelementptr ptr, ptr %bound, i64 3
  %sums_begin = load i64, ptr %sums_place
{words}
  br label %next

next:
  %n = phi i64 [ 0, %begin ], [ %n_next, %next ]
  %left = phi i64 [ %left_begin, %begin ], [ %left_next, %next ]
  %right = phi i64 [ %right_begin, %begin ], [ %right_next, %next ]
  %sums = phi i64 [ %sums_begin, %begin ], [ %sums_next, %next ]
  call void @axir_product_{element}(i64 %left, i64 %word4, i64 %word5, i64 %right, i64 %word6, \
i64 %word7, i64 %sums, i64 %word8, i64 %word9, i64 %word10, i64 %word11, i64 %word12, i64 %word13)
  %left_next = add i64 %left, %word1
  %right_next = add i64 %right, %word2
  %sums_next = add i64 %sums, %word3
  %n_next = add i64 %n, 1
  %n_end = icmp eq i64 %n_next, %word0
  br i1 %n_end, label %end, label %next

end:
  ret i32 0
}}
"""
_WORD = """  %word_place{number} = getelementptr i64, ptr %words, i64 {number}
  %word{number} = load i64, ptr %word_place{number}"""

# Templates for each vector of a row (`v`), each row (`r`), and each vector of each row.
_MASK = "  %mask{v} = icmp ult {places} %place{v}, %all_columns"
_NEXT_PLACE = "  %place{v} = add {places} %place{before}, {jump}\n"
_PACK = """  %p_from{v} = getelementptr {kind}, ptr %p_from, i64 {start}
  %p_taken{v} = call {vector} @llvm.masked.load.{suffix}.p0(ptr align {size} %p_from{v}, \
{mask} %mask{v}, {vector} zeroinitializer)
  %p_to{v} = getelementptr {kind}, ptr %p_to, i64 {start}
  store {vector} %p_taken{v}, ptr %p_to{v}, align {align}"""
_LEFT = """  %i{r} = add i64 %i, {r}
  %i_is_there{r} = icmp ult i64 %i{r}, %last_row
  %i_taken{r} = select i1 %i_is_there{r}, i64 %i{r}, i64 %last_row
  %i_place{r} = mul i64 %i_taken{r}, %left_row
  %left{r} = getelementptr {kind}, ptr %left_part, i64 %i_place{r}"""
_START = "  %t{r}_{v} = phi {vector} [ zeroinitializer, %row ], [ %u{r}_{v}, %step ]"
_RIGHT = """  %y_from{v} = getelementptr {kind}, ptr %s_from, i64 {start}
  %y{v} = load {vector}, ptr %y_from{v}, align {align}"""
_FACTOR = """  %x_from{r} = getelementptr i8, ptr %left{r}, i64 %at
  %x_taken{r} = load {kind}, ptr %x_from{r}
  %x_one{r} = insertelement {vector} poison, {kind} %x_taken{r}, i32 0
  %x{r} = shufflevector {vector} %x_one{r}, {vector} poison, {zeros}"""
_PRODUCT = """  %m{r}_{v} = fmul contract {vector} %x{r}, %y{v}
  %u{r}_{v} = fadd contract {vector} %m{r}_{v}, %t{r}_{v}"""
_KEEP = """  %k{r}_{v} = getelementptr {kind}, ptr %tile, i64 {slot}
  store {vector} %u{r}_{v}, ptr %k{r}_{v}, align {align}"""
_FOUND = """  %f_from{v} = getelementptr {kind}, ptr %w_from, i64 {start}
  %f{v} = load {vector}, ptr %f_from{v}, align {align}
  %f_to{v} = getelementptr {kind}, ptr %w_to, i64 {start}"""
_PUT = """  call void @llvm.masked.store.{suffix}.p0({vector} %f{v}, ptr align {size} %f_to{v}, \
{mask} %mask{v})"""
_ADD = """  %a_mask{v} = and {mask} %a_all, %mask{v}
  %a{v} = call {vector} @llvm.masked.load.{suffix}.p0(ptr align {size} %f_to{v}, \
{mask} %a_mask{v}, {vector} zeroinitializer)
  %a_sum{v} = fadd {vector} %a{v}, %f{v}
  call void @llvm.masked.store.{suffix}.p0({vector} %a_sum{v}, ptr align {size} %f_to{v}, \
{mask} %mask{v})"""


def product_function(element: str, vector_bytes: int) -> bytes:
    """Returns LLVM IR of the function for products of a type of numbers, and of the kernel.

    Args:
        element: The type, as MLIR names it.
        vector_bytes: Of the machine's registers.
    """
    lanes = vector_bytes // _ELEMENTS[element].size
    width = lanes * _VECTORS
    names = _names(element, lanes)
    rows, vectors = range(_ROWS), range(_VECTORS)

    def of_vectors(text: str) -> str:
        return "\n".join(text.format(**names, v=v, start=v * lanes, before=v - 1) for v in vectors)

    def of_rows(text: str) -> str:
        return "\n".join(text.format(**names, r=r) for r in rows)

    def of_tile(text: str) -> str:
        return "\n".join(
            text.format(**names, r=r, v=v, slot=r * width + v * lanes)
            for r in rows
            for v in vectors
        )

    places = [_NEXT_PLACE.format(**names, v=v, before=v - 1) for v in vectors if v]
    words = "\n".join(_WORD.format(number=number) for number in range(14))
    kernel = _KERNEL.format(element=element, words=words)
    function = _TEXT.format(
        **names,
        masks="".join(places) + of_vectors(_MASK),
        packing=of_vectors(_PACK),
        lefts=of_rows(_LEFT),
        starts=of_tile(_START),
        products="\n".join((of_vectors(_RIGHT), of_rows(_FACTOR), of_tile(_PRODUCT))),
        keeping=of_tile(_KEEP),
        found=of_vectors(_FOUND),
        putting=of_vectors(_PUT),
        adding=of_vectors(_ADD),
    )
    return (function + kernel).encode()


def _names(element: str, lanes: int) -> dict[str, str | int]:
    """Returns the replacements of the names in the templates."""
    kind, size = _ELEMENTS[element]
    width = lanes * _VECTORS
    return {
        "element": element,
        "kind": kind,
        "size": size,
        "align": lanes * size,
        "suffix": f"v{lanes}{element}",
        "vector": f"<{lanes} x {kind}>",
        "mask": f"<{lanes} x i1>",
        "places": f"<{lanes} x i64>",
        "zeros": f"<{lanes} x i32> zeroinitializer",
        "counting": f"<{', '.join(f'i64 {lane}' for lane in range(lanes))}>",
        "jump": f"<{', '.join([f'i64 {lanes}'] * lanes)}>",
        "rows": _ROWS,
        "width": width,
        "panel": _LONGEST_SUM * width,
        "tile": _ROWS * width,
    }
