"""Addresses of many arrays are loaded where they are first needed, of few at the beginning."""

from __future__ import annotations

import pytest
from iree.compiler import ir

from axir.runtime.compiler.invocation.kernel_code import load_addresses_late


def function(count: int) -> str:
    places = [
        f"%p{n} = llvm.getelementptr %table[{n}] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr\n"
        f"%a{n} = llvm.load %p{n} : !llvm.ptr -> !llvm.ptr"
        for n in range(count)
    ]
    body = [
        f"%x{n} = llvm.load %a{n} : !llvm.ptr -> f32\nllvm.store %x{n}, %a0 : f32, !llvm.ptr"
        for n in range(count)
    ]
    # The last address is needed only in a loop, in another block.
    last = f"llvm.br ^end\n^end:\nllvm.store %x1, %a{count} : f32, !llvm.ptr\nllvm.return"
    places.append(f"%a{count} = llvm.load %table : !llvm.ptr -> !llvm.ptr")
    return "\n".join(["llvm.func @f(%table: !llvm.ptr) {", *places, *body, last, "}"])


@pytest.mark.parametrize("count", [40, 5])
def test_addresses_of_many_arrays_are_loaded_late(count: int) -> None:
    with ir.Context():
        module = ir.Module.parse(function(count))
        before = str(module)
        load_addresses_late(module.operation)
        assert module.operation.verify()
        after = str(module)
    assert (after == before) == (count == 5)
    # The operations are the same as before; the first sum now comes before the last address.
    assert sorted(map(_operation, after.splitlines())) == sorted(
        map(_operation, before.splitlines())
    )
    is_late = after.index("-> f32") < after.rindex("llvm.getelementptr")
    assert is_late == (count == 40)


def _operation(line: str) -> str:
    words = line.split()
    return words[2] if "=" in words else words[0]
