"""The whole chain on functions that fit on one screen: what must work before anything else does.

`make smoke` runs this file in seconds. It imports axir, NumPy and pytest alone, so that it can also
be copied elsewhere and tried against an installed axir. Proofs of the parts live in the folders
beside it.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import lax
from axir.errors import TracerBoolConversionError
from axir.export import export, load


def loss(w: axir.Array, x: axir.Array) -> axir.Array:
    return jnp.mean(jnp.tanh(x @ w) ** 2)


W = np.array([0.5, -1.0, 2.0], np.float32)
X = np.linspace(-1.0, 1.0, 12, dtype=np.float32).reshape(4, 3)


def expected_loss(w: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.mean(np.tanh(x @ w) ** 2)


def expected_gradient(w: np.ndarray, x: np.ndarray) -> np.ndarray:
    tanh = np.tanh(x @ w)
    return x.T @ (2 * tanh * (1 - tanh**2)) / len(x)


def close(actual: object, expected: object) -> bool:
    return bool(np.allclose(actual, expected, rtol=1e-5, atol=1e-6))


def test_eager_operations_compute_in_numpy() -> None:
    value = loss(jnp.array(W), jnp.array(X))
    assert value.dtype == jnp.float32
    assert value.shape == ()
    assert close(value, expected_loss(W, X))
    assert (jnp.arange(3) + 1).tolist() == [1, 2, 3]


def test_a_function_is_traced_into_a_program() -> None:
    jaxpr = axir.make_jaxpr(lambda x: jnp.sin(x) * 2.0)(1.0)
    assert [equation.primitive.name for equation in jaxpr.eqns] == ["sin", "mul"]
    assert str(jaxpr) == (
        "{ lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = mul b 2.0:f32[] in (c,) }"
    )


def test_derivatives() -> None:
    assert close(axir.grad(loss)(W, X), expected_gradient(W, X))
    value, tangent = axir.jvp(jnp.sin, (1.0,), (2.0,))
    assert close([value, tangent], [np.sin(1.0), 2 * np.cos(1.0)])
    hessian = axir.jacfwd(axir.grad(lambda v: jnp.sum(v**3)))(jnp.array(W))
    assert close(hessian, np.diag(6 * W))


def test_vectorization() -> None:
    stack = np.stack([W, 2 * W])
    losses = axir.vmap(loss, in_axes=(0, None))(stack, X)
    assert close(losses, [expected_loss(W, X), expected_loss(2 * W, X)])
    gradients = axir.vmap(axir.grad(loss), in_axes=(0, None))(stack, X)
    assert close(gradients, [expected_gradient(W, X), expected_gradient(2 * W, X)])


def test_compiled_functions_agree_with_eager_ones() -> None:
    value, gradient = axir.jit(axir.value_and_grad(loss))(W, X)
    assert close(value, expected_loss(W, X))
    assert close(gradient, expected_gradient(W, X))


def test_control_flow() -> None:
    def collatz(n: axir.Array) -> axir.Array:
        """Returns the number of steps to 1."""

        def step(state: tuple[axir.Array, axir.Array]) -> tuple[axir.Array, axir.Array]:
            n, count = state
            return lax.cond(n % 2 == 0, lambda n: n // 2, lambda n: 3 * n + 1, n), count + 1

        return lax.while_loop(lambda state: state[0] != 1, step, (n, 0))[1]

    assert int(collatz(jnp.array(6))) == 8
    assert int(axir.jit(collatz)(6)) == 8
    last, sums = lax.scan(lambda total, x: (total + x, total + x), 0.0, jnp.arange(4.0))
    assert float(last) == 6.0
    assert sums.tolist() == [0.0, 1.0, 3.0, 6.0]
    factorial = axir.grad(lambda x: lax.fori_loop(0, 3, lambda i, y: y * x, 1.0))
    assert float(factorial(2.0)) == 12.0


def test_random_numbers_follow_from_the_key() -> None:
    draw = axir.jit(lambda key: axir.random.uniform(key, (1000,)))
    first, second = axir.random.split(axir.random.key(0))
    samples = draw(first)
    assert samples.tolist() == axir.random.uniform(first, (1000,)).tolist()
    assert samples.tolist() != draw(second).tolist()
    assert 0.0 <= float(samples.min()) < float(samples.max()) < 1.0
    assert abs(float(samples.mean()) - 0.5) < 0.05


def test_a_saved_function_needs_no_source(tmp_path: Path) -> None:
    path = tmp_path / "loss.mlir"
    export(loss)(W, X).save(path)
    loaded = load(path)
    assert close(loaded(W, X), expected_loss(W, X))
    assert close(axir.grad(loaded)(W, X), expected_gradient(W, X))


def test_the_command_line_transforms_text(tmp_path: Path) -> None:
    square, tangent = tmp_path / "square.mlir", tmp_path / "tangent.mlir"
    square.write_text(
        "func.func public @main(%x: tensor<f32>) -> tensor<f32> {\n"
        '  %y = "jaxpr.mul"(%x, %x) : (tensor<f32>, tensor<f32>) -> tensor<f32>\n'
        "  return %y : tensor<f32>\n"
        "}\n"
    )
    axir_opt = [sys.executable, "-m", "axir", "opt"]
    subprocess.run([*axir_opt, square, "-p", "jvp,simplify", "-o", tangent], check=True)
    assert [float(value) for value in load(tangent)(3.0, 1.0)] == [9.0, 6.0]
    command = [*axir_opt, tangent, "--to", "stablehlo"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert printed.count("stablehlo.multiply") >= 2


def test_an_error_tells_what_where_and_the_way_out() -> None:
    @axir.jit
    def rectified(x: axir.Array) -> axir.Array:
        return x if x > 0 else 0.0 * x

    with pytest.raises(TracerBoolConversionError) as caught:
        rectified(1.0)
    what, where, way_out = str(caught.value).splitlines()
    assert "needed as a bool" in what
    assert __file__ in where
    assert "return x if x > 0" in where
    assert "jnp.where or lax.cond" in way_out
