"""Reading programs that call kernels: the steps, and the refused operations."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from axir.runtime.cpp.program import host_program as host
from axir.runtime.cpp.program.memory import Piece, place
from axir.runtime.cpp.reading import read_program
from axir.runtime.cpp.reading.constants import UnknownConstantError, constant_bytes
from axir.runtime.errors import CppEmissionError

PROGRAM = """
module {
  util.func public @f(%arg0: !hal.buffer_view, %arg1: !hal.buffer_view) -> !hal.buffer_view {
    %c0 = arith.constant 0 : index
    %c0_i32 = arith.constant 0 : i32
    %c16 = arith.constant 16 : index
    %0 = stream.tensor.import %arg0 : !hal.buffer_view -> T in R{%c16}
    %1 = stream.tensor.import consume %arg1 : !hal.buffer_view -> T in R{%c16}
    cf.br ^bb1(%c0_i32 : i32)
  ^bb1(%2: i32):
    %3 = stream.cmd.execute with(%0 as %arg2: R{%c16}, %1 as %arg3: R{%c16}) {
      stream.cmd.copy %arg2[%c0], %arg3[%c0], %c16 : R{%c16} -> R{%c16}
      stream.cmd.fill %c0_i32, %arg3[%c0 for %c16] : i32 -> R{%c16}
    } => !stream.timepoint
    %4 = stream.timepoint.await %3 => %1 : R{%c16}
    %5 = arith.addi %2, %2 : i32
    %6 = arith.cmpi slt, %5, %2 : i32
    cf.cond_br %6, ^bb1(%5 : i32), ^bb2
  ^bb2:
    %7 = stream.tensor.export %4 : T in R{%c16} -> !hal.buffer_view
    util.return %7 : !hal.buffer_view
  }
}
"""


def test_steps_values_and_blocks_are_read() -> None:
    text = PROGRAM.replace("R{", "!stream.resource<external>{").replace("T in", "tensor<4xf32> in")
    function = read_program(text).functions["f"]
    assert [len(block.steps) for block in function.blocks] == [2, 4, 1]
    (taken, _), (meant, _) = function.blocks[0].steps
    assert isinstance(taken, host.Import)
    assert taken.array is function.arguments[0]
    copy, fill, add, compare = (step for step, _ in function.blocks[1].steps)
    assert isinstance(copy, host.Copy)
    assert isinstance(meant, host.Import)
    assert (copy.source.memory, copy.target.memory) == (taken.result, meant.result)
    assert copy.target.length == host.Constant("index", 16)
    assert isinstance(fill, host.Fill)
    assert fill.value == host.Constant("i32", 0)
    assert isinstance(add, host.Compute)
    assert isinstance(compare, host.Compute)
    assert compare.name == "arith.cmpi slt"
    end = function.blocks[1].end
    assert isinstance(end, host.Branch)
    assert (end.then.block, end.then.operands) == (1, (add.result,))
    (export, _) = function.blocks[2].steps[0]
    assert isinstance(export, host.Export)
    assert export.memory is meant.result  # the result of a wait is its operand


@pytest.mark.parametrize(
    "operation",
    [
        "%x = hal.buffer_view.buffer<%arg0 : !hal.buffer_view> : !hal.buffer",
        "%x = hal.buffer_view.dim<%arg0 : !hal.buffer_view>[0] : index",
        "util.call @elsewhere(%arg0) : (!hal.buffer_view) -> ()",
    ],
)
def test_what_is_not_known_is_refused_with_the_line_of_the_user(operation: str) -> None:
    text = f"""
module {{
  util.func private @elsewhere(%arg0: !hal.buffer_view)
  util.func public @f(%arg0: !hal.buffer_view) -> !hal.buffer_view {{
    {operation} loc("model.py":7:3)
    util.return %arg0 : !hal.buffer_view
  }}
}}
"""
    with pytest.raises(CppEmissionError) as caught:
        read_program(text)
    name = operation.partition("= ")[2].partition("<")[0] or "util.call"
    assert str(caught.value).splitlines() == [
        f"{name} cannot be written as C++.",
        "  at model.py:7",
        "  Change the function where it makes this operation, or run the program with IREE's "
        "runtime: `axir compile` without `--emit cpp` writes a .vmfb.",
    ]


def test_a_number_of_workgroups_that_depends_on_data_is_refused() -> None:
    text = """
#layout = #hal.pipeline.layout<bindings = [#hal.pipeline.binding<storage_buffer>]>
module {
  hal.executable private @e {
    hal.executable.variant public @v target(<"llvm-cpu", "static">) {
      hal.executable.export public @k ordinal(0) layout(#layout)
          count(%d: !hal.device, %n: index) -> (index, index, index) {
        %c1 = arith.constant 1 : index
        hal.return %n, %c1, %c1 : index, index, index
      } loc("model.py":7:3)
    }
  }
  util.func public @f(%array: !hal.buffer_view) -> !hal.buffer_view {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %x = stream.tensor.import %array : !hal.buffer_view -> tensor<2xf32>
        in !stream.resource<external>{%c8}
    %s = stream.resource.alloc uninitialized : !stream.resource<staging>{%c8}
    %n = stream.resource.load %s[%c0] : !stream.resource<staging>{%c8} -> i32
    %count = arith.index_cast %n : i32 to index
    %t = stream.cmd.execute with(%x as %y: !stream.resource<external>{%c8}) {
      stream.cmd.dispatch @e::@v::@k[%count] {
        rw %y[%c0 for %c8] : !stream.resource<external>{%c8}
      }
    } => !stream.timepoint
    util.return %array : !hal.buffer_view
  }
}
"""
    with pytest.raises(CppEmissionError, match="workgroups of the kernel k depends") as caught:
        read_program(text)
    assert "at model.py:7" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("dense<[[1.0, -2.5], [0.0, 1.0e-3]]> : tensor<2x2xf32>", np.float32([1, -2.5, 0, 1e-3])),
        ("dense<1.5> : tensor<3xf64>", np.float64([1.5] * 3)),
        ("dense<0x7FC00000> : tensor<2xf32>", np.float32([np.nan, np.nan])),
        ("dense<[0x7F80, 1.0]> : tensor<2xbf16>", np.array([np.inf, 1], ml_dtypes.bfloat16)),
        ("dense<[true, false]> : tensor<2xi1>", np.array([True, False])),
        (
            "dense<[(1.0,2.0), (0.0,-1.0)]> : tensor<2xcomplex<f32>>",
            np.complex64([1 + 2j, complex(0, -1)]),
        ),
        ("dense<(1.0,2.0)> : tensor<complex<f64>>", np.complex128([1 + 2j])),
        ('dense<"0x0100000002000000"> : tensor<2xi32>', np.int32([1, 2])),
        ('dense<"0x01000000"> : tensor<3xi32>', np.int32([1, 1, 1])),
        ("dense<-1> : vector<5xi8>", np.int8([-1] * 5)),
        ("dense<255> : tensor<ui8>", np.uint8([255])),
        ("dense<> : tensor<0xf32>", np.float32([])),
    ],
)
def test_constants_are_read(text: str, wanted: np.ndarray) -> None:
    assert constant_bytes(text) == wanted.tobytes()
    row = f"#util.composite<{wanted.nbytes * 2}xi8, [{text}, {text}]>"
    assert constant_bytes(row) == wanted.tobytes() * 2


@pytest.mark.parametrize(
    "text",
    [
        "dense_resource<x> : tensor<2xf32>",
        "dense<1> : tensor<2xf8>",
        "#util.composite<9xi8, [dense<1> : tensor<i8>]>",
    ],
)
def test_other_constants_are_refused(text: str) -> None:
    with pytest.raises(UnknownConstantError):
        constant_bytes(text)


def test_places_do_not_overlap_where_memory_is_needed_at_once() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        pieces = []
        for _ in range(12):
            first, last = sorted(rng.integers(0, 20, 2).tolist())
            pieces.append(Piece(int(rng.integers(0, 1000)), first, last))
        offsets, total = place(pieces)
        assert all(offset % 64 == 0 for offset in offsets)
        for a, start in zip(pieces, offsets, strict=True):
            assert start + a.size <= total
            for b, other in zip(pieces, offsets, strict=True):
                if a is not b and a.first <= b.last and b.first <= a.last:
                    assert start + a.size <= other or other + b.size <= start
