"""A result has one value in a program, in whichever kernels it is computed."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from iree.compiler import ir

import axir
import axir.numpy as jnp
from axir import lax
from axir.runtime.compiler.invocation import invoker
from axir.runtime.compiler.invocation.roundings import round_products

ROWS, COLUMNS = 300, 400  # too many for a kernel of the whole program
RNG = np.random.default_rng(0)
X, Y, Z = (RNG.uniform(-1, 1, (ROWS, COLUMNS)).astype(np.float32) for _ in range(3))
MASK = X * Y + Z == (X * Y + Z).max(0)

SUM = """
hal.executable private @{kernel} {{
  hal.executable.variant public @code target(<"llvm-cpu", "system-elf-x86_64"{features}>) {{
    builtin.module {{
      llvm.func @{kernel}(%x: f32, %y: f32, %z: f32) -> f32 {{
        %c = llvm.mlir.constant(3.0 : f32) : f32
        {body}
        llvm.return %r : f32
      }}
    }}
  }}
}}
"""
PLAIN = """
        %p = llvm.fmul %x, %y fastmath<nsz, contract> : f32
        %r = llvm.fadd %p, %z fastmath<contract> : f32
"""
# ((x + 3) * x + 3) * x + 3
POLYNOMIAL = """
        %0 = llvm.fadd %x, %c fastmath<contract> : f32
        %1 = llvm.fmul %0, %x fastmath<contract> : f32
        %2 = llvm.fadd %1, %c fastmath<contract> : f32
        %3 = llvm.fmul %2, %x fastmath<contract> : f32
        %r = llvm.fadd %3, %c fastmath<contract> : f32
"""


# Two terms in each pass: the loop's carry, + x * y + y * z.
SUM_OF_LOOP = """
        llvm.br ^bb1(%c : f32)
      ^bb1(%sum: f32):
        %0 = llvm.fmul %x, %y fastmath<contract> : f32
        %1 = llvm.fadd %sum, %0 fastmath<contract> : f32
        %2 = llvm.fmul %y, %z fastmath<contract> : f32
        %r = llvm.fadd %2, %1 fastmath<contract> : f32
        %goes_on = llvm.fcmp "olt" %r, %z : f32
        llvm.cond_br %goes_on, ^bb1(%r : f32), ^bb2
      ^bb2:
"""


def leaves(kernel: str, body: str) -> list[bool]:
    """Tells which products of a kernel may still be fused with a sum."""
    with ir.Context():
        module = ir.Module.parse(SUM.format(kernel=kernel, body=body, features=""))
        round_products(module.operation)
        assert module.operation.verify()
        lines = str(module).splitlines()
    return ["contract" in line for line in lines if "llvm.fmul" in line]


def test_products_of_kernels_that_compute_again_are_rounded() -> None:
    assert leaves("main_dispatch_0", PLAIN) == [False]
    assert leaves("rows_0", PLAIN) == [False]


def test_kernels_that_compute_once_and_polynomials_are_left() -> None:
    assert leaves("matrix_product_0", PLAIN) == [True]
    assert leaves("program_12", PLAIN) == [True]
    assert leaves("main_dispatch_0", SUM_OF_LOOP) == [True, True]
    # That of the first step may be one of the user's: (x + 3) * y + 3.
    assert leaves("main_dispatch_0", POLYNOMIAL) == [False, True]


TWO_PRODUCTS = """
        %p = llvm.fmul %x, %y fastmath<contract> : f32
        %q = llvm.fmul %y, %z fastmath<contract> : f32
        %r = llvm.fsub %p, %q fastmath<contract> : f32
"""
SECOND_IS_A_PRODUCT = """
        %p = llvm.fmul %x, %y fastmath<contract> : f32
        %r = llvm.fsub %z, %p fastmath<contract> : f32
"""
READ_TWICE = """
        %p = llvm.fmul %x, %y fastmath<contract> : f32
        %0 = llvm.fadd %p, %z fastmath<contract> : f32
        %r = llvm.fadd %p, %0 fastmath<contract> : f32
"""


def fused(kernel: str, body: str) -> list[str]:
    """The arithmetic of a kernel for a processor that multiplies and adds in one operation."""
    features = ', {cpu_features = "+avx2,+fma,+bmi"}'
    with ir.Context():
        module = ir.Module.parse(SUM.format(kernel=kernel, body=body, features=features))
        round_products(module.operation)
        assert module.operation.verify()
        lines = [line.strip() for line in str(module).splitlines()]
    return [line.partition(" = ")[2] for line in lines if "llvm.f" in line or "intr" in line][1:]


def test_a_product_and_a_sum_become_one_operation() -> None:
    assert fused("program_0", PLAIN) == [
        "llvm.intr.fma(%arg0, %arg1, %arg2) : (f32, f32, f32) -> f32"
    ]
    assert "contract" not in "".join(fused("main_dispatch_0", PLAIN)[:1])
    assert [line.split("(")[0] for line in fused("main_dispatch_0", SUM_OF_LOOP)][:2] == [
        "llvm.intr.fma"
    ] * 2


def test_of_two_products_the_first_one_is_rounded_with_the_sum() -> None:
    product, negated, whole = fused("program_0", TWO_PRODUCTS)
    assert product.startswith("llvm.fmul %arg1, %arg2")
    assert "contract" not in product
    assert negated.startswith("llvm.fneg")
    assert whole.startswith("llvm.intr.fma(%arg0, %arg1, ")


def test_what_is_subtracted_is_negated() -> None:
    negated, whole = fused("program_0", SECOND_IS_A_PRODUCT)
    assert negated.startswith("llvm.fneg %arg0")
    assert whole.endswith("%arg1, %arg2) : (f32, f32, f32) -> f32")


def test_a_product_that_is_read_twice_is_rounded() -> None:
    product, first, second = fused("program_0", READ_TWICE)
    assert product.startswith("llvm.fmul")
    assert "contract" not in product
    assert first.startswith("llvm.fadd")
    assert second.startswith("llvm.fadd")


def test_other_leaves_stay() -> None:
    with ir.Context():
        module = ir.Module.parse(SUM.format(kernel="main_dispatch_0", body=PLAIN, features=""))
        round_products(module.operation)
        assert "fastmath<nsz>" in str(module)


def places_of_maxima(number: float) -> np.ndarray:
    """The places of maxima, where their derivative is not zero, by a program with this number."""

    @axir.jit
    def slopes(x, y, z):
        def total(z):
            product = x * y
            return (jnp.max(product + z, 0) + jnp.sin(product).sum(0)).sum()

        return axir.grad(total)(z) * number, jnp.cos(x * y)

    return np.asarray(slopes(X, Y, Z)[0]) != 0


def test_derivatives_of_maxima_find_their_places() -> None:
    np.testing.assert_array_equal(places_of_maxima(2.0), MASK)


def test_it_is_still_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    axir.config.update("axir_isolate_compiler", "never")
    axir.config.update("axir_compiler", "iree")  # which needs it
    monkeypatch.setattr(invoker, "round_products", lambda module: None)
    assert not places_of_maxima(3.0).any(0).all()


def test_derivatives_of_maxima_of_segments_find_their_places() -> None:
    segments = np.arange(ROWS) % 7

    def total(x, y, z):
        product = x * y
        return axir.ops.segment_max(product + z, segments).sum() + jnp.sin(product).sum()

    slope = axir.grad(total)
    x, y, z = map(jnp.asarray, (X, Y, Z))
    np.testing.assert_allclose(axir.jit(slope)(x, y, z), slope(x, y, z), rtol=1e-5, atol=1e-6)


UNARY: list[Callable[[Any], Any]] = [
    jnp.sin, jnp.exp, jnp.tanh, lax.rsqrt, lax.erf, lax.lgamma, lax.cbrt, jnp.square,
    axir.nn.sigmoid, axir.nn.gelu, lambda x: 1.5 * x, lambda x: 1.5 * x + 0.3, lambda x: x**3,
]  # fmt: skip
BINARY: list[Callable[[Any, Any], Any]] = [
    jnp.add, jnp.subtract, jnp.multiply, jnp.multiply, jnp.add, jnp.divide, jnp.power, jnp.hypot,
]  # fmt: skip


def distance_from_the_largest(seed: int) -> Callable[..., list[Any]]:
    """A random function of x, y, z: a result's distance from its maximum, and other readers."""
    choose = random.Random(seed)
    steps = [
        (choose.choice([UNARY, BINARY, BINARY]), choose.randrange(99), choose.random() < 0.4)
        for _ in range(choose.randint(2, 5))
    ]
    operands = [(choose.randint(1, 3), choose.randint(1, 3)) for _ in steps]

    def function(x, y, z):
        values = [x, y, z]
        others = []
        for (functions, number, is_read), places in zip(steps, operands, strict=True):
            taken = [values[-place] for place in places]
            step = functions[number % len(functions)]
            values.append(step(*taken) if functions is BINARY else step(taken[0]))
            if is_read:
                others.append(jnp.cos(values[-1]))
        return [values[-1].max(0) - values[-1], *others]

    return function


@pytest.mark.parametrize("seed", [4, 29, 55])
def test_nothing_is_larger_than_the_largest(seed: int) -> None:
    # These are wrong where a product and a sum may be rounded once.
    positive = [abs(x) + np.float32(0.1) for x in (X, Y, Z)]
    distance = np.asarray(axir.jit(distance_from_the_largest(seed))(*positive)[0])
    assert not (distance < 0).any()
    assert (np.isnan(distance) | (distance == 0)).any(0).all()
