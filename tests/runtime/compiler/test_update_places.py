"""A kernel writes an update's operand in place early only if the old elements are not read."""

from __future__ import annotations

import numpy as np
import pytest
from iree.compiler import ir
from support.stablehlo_runner import Example, deviations, run_examples

from axir.dialect.builders import stablehlo as hlo
from axir.dialect.builders.kernels import Memory, dispatch, loop
from axir.dialect.builders.scalars import Scalar, index
from axir.runtime import Target, compile_module
from axir.runtime.compiler.invocation.update_places import UPDATE, UpdatePlaces

RNG = np.random.default_rng(0)
MATRIX = RNG.integers(-4, 5, size=(6, 6)).astype(np.float32)
X = RNG.integers(-4, 5, size=(6, 4)).astype(np.float32)
Z = RNG.integers(-4, 5, size=5).astype(np.float32)
T = (MATRIX @ X).reshape(24)
V = np.ones(6, np.float32)
UPDATED = T.copy()
UPDATED[3:4] = Z.sum()


def product(a, b):
    return hlo.dot_general(a, b, ((1,), (0,)))


def updated(array, update):
    start = hlo.full(3, (), np.int32)
    return hlo.dynamic_update_slice(array, update, [start])


def total(z):
    (result,) = hlo.reduce([z], [hlo.full(0, (), np.float32)], [0], hlo.add)
    return hlo.reshape(result, (1,))


def read_by_another_shape(m, x, z, v):
    number = total(z)
    t = hlo.reshape(product(m, x), (24,))
    read = product(hlo.reshape(t, (4, 6)), v)
    return [updated(t, number), read]


def read_before(m, x, z, v):
    number = total(z)
    t = product(m, x)
    read = product(hlo.reshape(t, (4, 6)), v)
    return [updated(hlo.reshape(t, (24,)), number), read]


def read_by_nobody(m, x, z, v):
    number = total(z)
    return [updated(hlo.reshape(product(m, x), (24,)), number)]


def of_one_kernel(m, x, z, v):
    """Updates the second result of a kernel with its first, which it writes before the second."""

    def kernel(workgroup: Scalar, source: Memory, first: Memory, second: Memory) -> None:
        def double(i: Scalar) -> None:
            first[(i,)] = source[(i,)] * 2

        def triple(i: Scalar) -> None:
            second[(i,)] = source[(i,)] * 3

        loop(index(0), index(2), (), double)
        loop(index(0), index(5), (), triple)

    kinds = [hlo.tensor_type((count,), hlo.element_type_of(z)) for count in (2, 5)]
    first, second = dispatch(kernel, [z], kinds, workgroups=1, name="two_results")
    return [hlo.dynamic_update_slice(second, first, [hlo.full(0, (), np.int32)])]


ARGUMENTS = (MATRIX, X, Z, V)
READ = T.reshape(4, 6) @ V
EXAMPLES = [
    Example("another_shape", ARGUMENTS, read_by_another_shape, [UPDATED, READ]),
    Example("before", ARGUMENTS, read_before, [UPDATED, READ]),
    Example("nobody", ARGUMENTS, read_by_nobody, [UPDATED]),
    Example("one_kernel", ARGUMENTS, of_one_kernel, [Z * np.float32([2, 2, 3, 3, 3])]),
]


@pytest.fixture(scope="module")
def results() -> dict[str, list[np.ndarray]]:
    return run_examples(EXAMPLES, compiler=lambda module: compile_module(module, Target()))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.name)
def test_values(results: dict[str, list[np.ndarray]], example: Example) -> None:
    assert deviations(results[example.name], example) == []


def test_the_compiler_alone_is_wrong() -> None:
    raw = run_examples(EXAMPLES)
    wrong = [example.name for example in EXAMPLES if deviations(raw[example.name], example)]
    assert wrong == ["another_shape", "before", "one_kernel"]


_PART = "tensor<2xf32>"
_WHOLE = "tensor<4xf32>"
_BEFORE = f"%a = flow.dispatch @e::@a(%x) : ({_WHOLE}) -> {_WHOLE}"
_KERNEL = f"%u = flow.dispatch @e::@k(%x) : ({_WHOLE}) -> {_PART}"
_UPDATED = f"%r = flow.tensor.update %u, %a[%c0] : {_PART} -> %a as {_WHOLE}"
_READ = f"%s = flow.dispatch @e::@s(%a) : ({_WHOLE}) -> {_WHOLE}"
_LAST = f"%t = flow.tensor.update %v, %r[%c2] : {_PART} -> %r as {_WHOLE}"


_SLICE = f"""
  %w = flow.tensor.reshape %a : {_WHOLE} -> tensor<2x2xf32>
  %v = flow.tensor.slice %w[%c0, %c0 for %c1, %c2] : tensor<2x2xf32> -> tensor<1x2xf32>
  %u = flow.tensor.reshape %v : tensor<1x2xf32> -> {_PART}
"""
_AGAIN = f"%t = flow.tensor.update %u, %r[%c2] : {_PART} -> %r as {_WHOLE}"


def _early(*lines: str) -> list[bool]:
    """Tells of each update in a function's block whether it may be early."""
    body = "\n".join(lines)
    text = f"""
      util.func public @main(%x: {_WHOLE}, %x_part: {_PART}, %flag: i1) {{
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c2 = arith.constant 2 : index
        {body}
        util.return
      }}
    """
    with ir.Context():
        module = ir.Module.parse(text)
        blocks = [module.body.operations[0].regions[0].blocks[0]]
        for operation in blocks[0].operations:
            blocks += [block for region in operation.regions for block in region]
        return [
            UpdatePlaces(block).may_be_early(op.operation)
            for block in blocks
            for op in block.operations
            if op.operation.name == UPDATE
        ]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        # The array is there before the kernel, and has no other readers.
        ((_BEFORE, _KERNEL, _UPDATED), [True]),
        # It can be made before the kernel.
        ((_KERNEL, f"%a = flow.tensor.empty : {_WHOLE}", _UPDATED), [True]),
        # It is made after the kernel, from other operands.
        ((_KERNEL, _BEFORE, _UPDATED), [False]),
        # The update's operand is copied, not written by a kernel.
        (
            (_BEFORE, f"%u = flow.tensor.slice %x[%c0 for %c2] : {_WHOLE} -> {_PART}", _UPDATED),
            [True],
        ),
        # The copied part belongs to the array, or to the array before another update.
        ((_BEFORE, _SLICE, _UPDATED), [False]),
        ((_BEFORE, _UPDATED.replace("%u", "%x_part"), _SLICE, _AGAIN), [True, False]),
        # It is read before the kernel; between kernel and update; after the update, from a copy.
        ((_BEFORE, _READ, _KERNEL, _UPDATED), [True]),
        ((_BEFORE, _KERNEL, _READ, _UPDATED), [False]),
        ((_BEFORE, _KERNEL, _UPDATED, _READ), [True]),
        # The kernel reads it.
        ((_BEFORE, _KERNEL.replace("%x", "%a"), _UPDATED), [False]),
        # It is a result of the kernel.
        (
            (
                f"%u, %a = flow.dispatch @e::@k(%x) : ({_WHOLE}) -> ({_PART}, {_WHOLE})",
                _UPDATED,
            ),
            [False],
        ),
        # Two arrays are concatenated; the second kernel reads the part that the first has put in
        # place.
        (
            (
                f"%a = flow.tensor.empty : {_WHOLE}",
                _KERNEL,
                _KERNEL.replace("%u", "%v"),
                _UPDATED,
                _LAST,
            ),
            [True, True],
        ),
        (
            (
                f"%a = flow.tensor.empty : {_WHOLE}",
                _KERNEL,
                _UPDATED,
                _KERNEL.replace("%u", "%v").replace("%x", "%r"),
                _LAST,
            ),
            [True, False],
        ),
        # Another kernel reads the first kernel's result, too: it stays a copy.
        (
            (
                _BEFORE,
                _KERNEL,
                _READ,
                _UPDATED,
                f"%v = flow.dispatch @e::@v(%u) : ({_PART}) -> {_PART}",
            ),
            [True],
        ),
        # The update happens in a branch, the kernel before it.
        (
            (
                _BEFORE,
                _KERNEL,
                f"%b = scf.if %flag -> ({_WHOLE}) {{",
                _UPDATED,
                f"scf.yield %r : {_WHOLE} }} else {{ scf.yield %a : {_WHOLE} }}",
            ),
            [False],
        ),
    ],
)
def test_updates_that_may_be_early(lines: tuple[str, ...], expected: list[bool]) -> None:
    assert _early(*lines) == expected
