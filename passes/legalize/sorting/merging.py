"""Merging sorted runs of rows as one loop over the elements of the result.

Elsewhere: making runs (`stable_sorts.py`).
"""

from __future__ import annotations

from iree.compiler import ir

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.core.context import context


def merge_runs(length: ir.Value, rows: ir.Value) -> ir.Value:
    """Merges each pair of neighbouring runs.

    For each place of the result, the number of records before it that come from the first run is
    between `low` and `high`. A binary search narrows this range: it compares the first run's record
    number `middle` with the second run's record that would be the last before the place. If the
    first run's record is smaller, that number is larger than `middle`.

    Args:
        length: `i32[]`, the length of the runs, a power of two.
        rows: `i64[number, extent]`; the extent is a multiple of twice the length, and no two
            records of a row are equal.
    """
    module = ir.Module.parse(_text(*hlo.shape_of(rows)), context())
    function = module.body.operations[0]
    block = function.regions[0].blocks[0]
    for argument, value in zip(block.arguments, (length, rows), strict=True):
        argument.replace_all_uses_with(value)
    here = ir.InsertionPoint.current
    *made, _ = (operation.operation for operation in block.operations)
    for operation in made:
        operation.detach_from_parent()
        here.insert(operation)
        operation.location = ir.Location.current
    return made[-1].results[0]


def _text(number: int, extent: int) -> str:
    """Returns a function with the loop."""
    kind = f"tensor<{number}x{extent}xi64>"
    lines = [
        "%one = arith.constant 1 : i32",
        "%last = arith.subi %n, %one : i32",
        "%column = linalg.index 1 : index",
        "%place = arith.index_cast %column : index to i32",
        "%twice = arith.shli %n, %one : i32",
        "%ones = arith.subi %twice, %one : i32",
        "%o = arith.andi %place, %ones : i32",
        "%base = arith.subi %place, %o : i32",
        "%line = linalg.index 0 : index",
        "%zero = arith.constant 0 : i32",
        "%below = arith.subi %o, %n : i32",
        "%low0 = arith.maxsi %below, %zero : i32",
        "%high0 = arith.minsi %o, %n : i32",
    ]
    # A run of 2^k records has 2^k + 1 numbers of records before a place.
    steps = (extent // 2).bit_length()
    for step in range(steps):
        lines += _halving(step)
    low = f"%low{steps}"
    lines += [
        f"%from_second = arith.subi %o, {low} : i32",
        *_read("a", low),
        *_read("b", "%from_second", is_second=True),
        "%is_smaller = arith.cmpi slt, %a, %b : i64",
        f"%has_first = arith.cmpi slt, {low}, %n : i32",
        "%has_second = arith.cmpi slt, %from_second, %n : i32",
        "%true = arith.constant true",
        "%none_left = arith.xori %has_second, %true : i1",
        "%is_next = arith.ori %is_smaller, %none_left : i1",
        "%takes_first = arith.andi %has_first, %is_next : i1",
        "%record = arith.select %takes_first, %a, %b : i64",
    ]
    body = "\n".join(lines)
    return f"""
func.func @f(%length: tensor<i32>, %rows: {kind}) {{
  %out = tensor.empty() : {kind}
  %made = linalg.generic {{
    indexing_maps = [affine_map<(i, j) -> ()>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]
  }} ins(%length : tensor<i32>) outs(%out : {kind}) {{
  ^bb0(%n: i32, %unused: i64):
{body}
    linalg.yield %record : i64
  }} -> {kind}
  return
}}""".replace("KIND", kind)


def _halving(step: int) -> list[str]:
    return [
        f"%open{step} = arith.cmpi slt, %low{step}, %high{step} : i32",
        f"%sum{step} = arith.addi %low{step}, %high{step} : i32",
        f"%middle{step} = arith.shrui %sum{step}, %one : i32",
        f"%rest{step} = arith.subi %o, %middle{step} : i32",
        f"%back{step} = arith.subi %rest{step}, %one : i32",
        *_read(f"left{step}", f"%middle{step}"),
        *_read(f"right{step}", f"%back{step}", is_second=True),
        f"%less{step} = arith.cmpi slt, %left{step}, %right{step} : i64",
        f"%more{step} = arith.andi %less{step}, %open{step} : i1",
        f"%after{step} = arith.addi %middle{step}, %one : i32",
        f"%low{step + 1} = arith.select %more{step}, %after{step}, %low{step} : i32",
        f"%fewer{step} = arith.select %open{step}, %middle{step}, %high{step} : i32",
        f"%high{step + 1} = arith.select %more{step}, %high{step}, %fewer{step} : i32",
    ]


def _read(name: str, number: str, is_second: bool = False) -> list[str]:
    """Reads a record of a run; the nearest record if the number is out of range."""
    offset = f"%{name}_within"
    lines = [
        f"%{name}_low = arith.maxsi {number}, %zero : i32",
        f"%{name}_near = arith.minsi %{name}_low, %last : i32",
        f"{offset} = arith.addi %base, %{name}_near : i32",
    ]
    if is_second:
        offset = f"%{name}_beyond"
        lines.append(f"{offset} = arith.addi %{name}_within, %n : i32")
    return [
        *lines,
        f"%{name}_index = arith.index_cast {offset} : i32 to index",
        f"%{name} = tensor.extract %rows[%line, %{name}_index] : KIND",
    ]
