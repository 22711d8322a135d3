"""Blocks and jumps as loops and choices, and jumps that fit neither."""

from __future__ import annotations

from axir.runtime.cpp.emitting.function_body import FunctionBody
from axir.runtime.cpp.program.host_program import (
    Block,
    Branch,
    Compute,
    Constant,
    HostFunction,
    Jump,
    Return,
    Target,
    Value,
)


def written(*ends: str) -> str:
    """Returns the body of a function with blocks that end by a return, a jump, or a choice."""
    number = Value("i32")
    blocks = []
    for name, end in enumerate(ends):
        test = Value("i1")
        step = Compute(test, "arith.cmpi eq", (number, Constant("i32", name)))
        match [Target(int(word), ()) for word in end.split()]:
            case [then, otherwise]:
                last = Branch(test, then, otherwise)
            case [target]:
                last = Jump(target)
            case _:
                last = Return(())
        blocks.append(Block((number,) if name == 0 else (), [(step, None)], last))
    lines = FunctionBody(HostFunction("f", (), tuple(blocks)), (), (), (), "f").write()
    hidden = ("std::int32_t", "const bool", "bool ")
    return "\n".join(line for line in lines if not line.strip().startswith(hidden))


def test_a_choice() -> None:
    assert written("1 2", "3", "3", "").splitlines() == [
        "if (number_1) {",
        "} else {",
        "}",
        "return axir::Code::ok;",
    ]
    assert written("1 2", "", "").splitlines() == [
        "if (number_1) {",
        "  return axir::Code::ok;",
        "}",
        "return axir::Code::ok;",
    ]


def test_a_loop_in_a_loop_that_is_left_for_the_outer_one() -> None:
    lines = written("1", "2 5", "3 1", "4 2", "2", "").splitlines()
    assert lines == [
        "while (true) {",
        "  if (!number_2) break;",
        "  while (true) {",
        "    if (!number_3) break;",
        "    if (number_4) {",
        "    }",
        "  }",
        "}",
        "return axir::Code::ok;",
    ]


def test_what_is_neither_is_jumps() -> None:
    # Two ways into a cycle.
    assert written("1 2", "2 3", "1", "").splitlines() == [
        "{",
        "  if (!number_1) goto block_2;",
        "}",
        "block_1: {",
        "  if (!number_2) goto block_3;",
        "}",
        "block_2: {",
        "  goto block_1;",
        "}",
        "block_3: {",
        "  return axir::Code::ok;",
        "}",
    ]
