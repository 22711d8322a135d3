"""Numbers in LLVM IR: their bits are the same on the way from MLIR to llvmlite's older LLVM."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from iree.compiler import ir
from support.object_files import object_of

from axir.runtime.compiler.invocation.llvm_text import for_older_llvm
from axir.runtime.compiler.invocation.native import _translated
from axir.runtime.native.object_files import load_object

BITS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}
FRACTIONS = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}
WORDS = {16: ctypes.c_uint16, 32: ctypes.c_uint32, 64: ctypes.c_uint64}


def special(kind: str) -> list[int]:
    """Zeros, the smallest and largest numbers of each sort, infinities and nans, of both signs."""
    fraction = FRACTIONS[kind]
    infinity = (1 << BITS[kind] - 1) - (1 << fraction)
    one = (infinity >> 1) & ~((1 << fraction) - 1)
    quiet = 1 << fraction - 1
    positive = [0, 1, (1 << fraction) - 1, 1 << fraction, one, one + 1, infinity - 1, infinity]
    positive += [infinity + 1, infinity | quiet, infinity | quiet | 1, (1 << BITS[kind] - 1) - 1]
    return [*positive, *(x | 1 << BITS[kind] - 1 for x in positive)]


def text_of_numbers(kind: str, numbers: Sequence[int]) -> str:
    """Returns a function that writes numbers one by one, then two by two, as a newer LLVM does."""
    bits = BITS[kind]
    lines: list[str] = []

    def put(place: int, text: str, of: str) -> None:
        lines.append(f"%c{place} = llvm.mlir.constant({text} : {of}) : {of}")
        lines.append(
            f"%p{place} = llvm.getelementptr %p[{place}] : (!llvm.ptr) -> !llvm.ptr, {kind}"
        )
        lines.append(f"llvm.store %c{place}, %p{place} : {of}, !llvm.ptr")

    written = [f"0x{x:0{bits // 4}X}" for x in numbers]
    for number, text in enumerate(written):
        put(number, text, kind)
    for number in range(0, len(written) - 1, 2):
        pair = ", ".join(written[number : number + 2])
        put(len(written) + number, f"dense<[{pair}]>", f"vector<2x{kind}>")
    with ir.Context():
        body = "\n".join(lines)
        module = ir.Module.parse(f"llvm.func @f(%p: !llvm.ptr) {{\n{body}\nllvm.return }}")
        return _translated(module.operation).decode()


def read_back(kind: str, numbers: Sequence[int]) -> list[int]:
    """Returns the bits that LLVM reads back from the function's output."""
    text = re.sub(r"align \d+", "align 1", text_of_numbers(kind, numbers))
    code = load_object(object_of(text), {})
    memory = (WORDS[BITS[kind]] * (2 * len(numbers)))()
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code.address_of("f"))(ctypes.addressof(memory))
    return list(memory)


@pytest.mark.parametrize("kind", BITS)
def test_special_numbers_keep_their_bits(kind: str) -> None:
    numbers = special(kind)
    assert read_back(kind, numbers) == numbers * 2


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_short_numbers_keep_their_bits(kind: str) -> None:
    numbers = list(range(0, 1 << 16, 97))  # of all exponents
    assert read_back(kind, numbers) == numbers * 2


@pytest.mark.parametrize("kind", ["f32", "f64"])
@settings(max_examples=5)
@given(data=st.data())
def test_long_numbers_keep_their_bits(kind: str, data: st.DataObject) -> None:
    generator = data.draw(st.randoms(use_true_random=False))
    numbers = [generator.getrandbits(BITS[kind]) for _ in range(200)]
    # Numbers with few digits are written in another form.
    numbers += [bits_of(kind, round(generator.uniform(-9, 9), 3)) for _ in range(100)]
    assert read_back(kind, numbers) == numbers * 2


def bits_of(kind: str, number: float) -> int:
    memory = {"f32": ctypes.c_float, "f64": ctypes.c_double}[kind](number)
    return WORDS[BITS[kind]].from_buffer(memory).value


LINES = {
    "  %15 = phi float [ %24, %17 ], [ +inf, %10 ]": "0x7FF0000000000000",
    "  %2 = fcmp une double %1, -inf": "0xFFF0000000000000",
    "  %2 = fadd half %1, 1.000980e+00": "0xH3C01",
    "  %2 = fmul <2 x bfloat> %1, splat (bfloat 3.986360e-04)": "0xR39D1",
    "  %2 = fptrunc double f0x3FF0000000000001 to float": "0x3FF0000000000001",
    "  ret float +snan(0x1)": "0x7FF0000020000000",
    "  %2 = call float @llvm.fma.f32(float %0, float %1, float -nan(0x3))": "0xFFF8000060000000",
    "  %2 = select i1 %0, double 1.0, double %1": "0x3FF0000000000000",
}


@pytest.mark.parametrize("line", LINES)
def test_a_number_is_of_the_type_before_it(line: str) -> None:
    wanted = re.sub(r"(?<= |\()[+-]?(f0x\w+|\d+\.\d+(e[+-]\d+)?|inf|s?nan\(0x\d\))(?=[ ,)]|$)",
                    LINES[line], line)  # fmt: skip
    assert wanted != line
    assert for_older_llvm(line.encode()).decode() == wanted


@pytest.mark.parametrize(
    "line",
    [
        'source_filename = "float 1.5"',
        "  %nan = fadd float %inf, %x1.5",
        "  call void @half.1.0(float %0)",
        "define float @nan(float %inf) {",
        "  %3 = add i32 %2, 15",
        '!0 = !{!"clang version 1.5"}',
        'attributes #0 = { "target-features"="+sse4.1,+avx" "target-cpu"="znver5" }',
    ],
)
def test_names_and_whole_numbers_stay(line: str) -> None:
    assert for_older_llvm(line.encode()).decode() == line
