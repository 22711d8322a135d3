"""Imported models that learn: losses, gradients, steps, and learners in C++, without Python source.

The oracle is the same model written with axir.numpy.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support import cpp_models

import axir
import axir.numpy as jnp
from axir.export import load

from .test_mistakes import fails, succeeds

RNG = np.random.default_rng(3)
WEIGHTS = {
    "net.0.weight": RNG.normal(size=(4, 3)).astype(np.float32),
    "net.2.weight": RNG.normal(size=(2, 4)).astype(np.float32),
}
X = RNG.normal(size=(5, 1, 3)).astype(np.float32)
TARGET = np.eye(2, dtype=np.float32)[RNG.integers(2, size=(5, 1))]
# What torch-mlir writes: weights are resources, and are used transposed.
NET = """
func.func @main(%x: tensor<ROWSx3xf32>) -> tensor<ROWSx2xf32> {
  %w0 = stablehlo.constant dense_resource<net.0.weight> : tensor<4x3xf32>
  %w2 = stablehlo.constant dense_resource<net.2.weight> : tensor<2x4xf32>
  %0 = stablehlo.dot_general %x, %w0, contracting_dims = [1] x [1]
    : (tensor<ROWSx3xf32>, tensor<4x3xf32>) -> tensor<ROWSx4xf32>
  %1 = stablehlo.tanh %0 : tensor<ROWSx4xf32>
  %2 = stablehlo.dot_general %1, %w2, contracting_dims = [1] x [1]
    : (tensor<ROWSx4xf32>, tensor<2x4xf32>) -> tensor<ROWSx2xf32>
  return %2 : tensor<ROWSx2xf32>
}
"""
LEARNER = """
#include "learner.hpp"
#include <cstdio>
#include <vector>
int main() {
  const std::vector<float> x{X}, target{TARGET};
  learner::Model model;
  for (int n = 0; n < 20; ++n) {
    const float loss = model.forward_step(x, target, 0.5f).loss;
    std::printf("%.9g\\n", static_cast<double>(loss));
  }
  model.save("state.safetensors");
  for (const float w : model.net_0_weight()) std::printf("%.9g\\n", static_cast<double>(w));
  learner::Model fresh;
  fresh.load("state.safetensors");
  for (const float y : fresh.forward(x).value) std::printf("%.9g\\n", static_cast<double>(y));
}
"""


def module(rows: str) -> str:
    resources = ", ".join(
        f'{name}: "0x{(4).to_bytes(4, "little").hex()}{value.tobytes().hex()}"'
        for name, value in WEIGHTS.items()
    )
    return (
        NET.replace("ROWS", rows) + f"{{-# dialect_resources: {{ builtin: {{ {resources} }} }} #-}}"
    )


def forward(weights, x):
    return jnp.tanh(x @ weights["net.0.weight"].T) @ weights["net.2.weight"].T


def cross_entropy(weights, x, target):
    return -jnp.mean(jnp.sum(target * axir.nn.log_softmax(forward(weights, x)), -1))


def squared_error(weights, x, target):
    return jnp.mean((forward(weights, x) - target) ** 2)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, rows in {"one": "1", "five": "5", "open": "?"}.items():
        Path(f"{name}.mlir").write_text(module(rows))
        succeeds("import", f"{name}.mlir", "--name", "forward")
    return tmp_path


def test_gradients_of_losses_in_weights_and_for_each_example() -> None:
    for kind, loss in (("squared-error", squared_error), ("cross-entropy", cross_entropy)):
        succeeds("grad", "one.axir", "--loss", kind, "-o", "gradient.axir")
        bundle = load("gradient.axir")
        assert list(bundle) == ["forward", "forward_grad"]
        assert bundle.forward_grad.argument_names == ["arg0", "target"]
        assert list(bundle.parameters) == list(WEIGHTS)
        wanted = axir.grad(loss)(WEIGHTS, X[0], TARGET[0])
        for found, name in zip(bundle.forward_grad(X[0], TARGET[0]), WEIGHTS, strict=True):
            np.testing.assert_allclose(found, wanted[name], 1e-5, 1e-6)
        arguments = ("--function", "forward_grad", "--size", 5, "--name", "each")
        succeeds("vmap", "gradient.axir", *arguments, "-o", "each.axir")
        wanted = axir.vmap(axir.grad(loss), (None, 0, 0))(WEIGHTS, X, TARGET)
        for found, name in zip(load("each.axir").each(X, TARGET), WEIGHTS, strict=True):
            np.testing.assert_allclose(found, wanted[name], 1e-5, 1e-6)
    succeeds("grad", "one.mlir", "--loss", "squared-error", "--wrt", "arg0", "-o", "x.mlir")
    found = load("x.mlir")(X[0], TARGET[0])
    wanted = axir.grad(squared_error, 1)(WEIGHTS, X[0], TARGET[0])
    np.testing.assert_allclose(found, wanted, 1e-5, 1e-6)


def test_steps_replace_parameters_for_any_number_of_rows() -> None:
    succeeds("grad", "open.axir", "--loss", "cross-entropy", "--step", "-o", "learner.axir")
    bundle, weights = load("learner.axir"), {n: jnp.asarray(w) for n, w in WEIGHTS.items()}
    for rows in (5, 2):
        x, target = X[:rows, 0], TARGET[:rows, 0]
        value, slope = axir.value_and_grad(cross_entropy)(weights, x, target)
        weights = axir.tree.map(lambda w, g: w - 0.5 * g, weights, slope)
        result, bundle = bundle.advance("forward_step", x, target, np.float32(0.5))
        np.testing.assert_allclose(result[1]["loss"], value, 1e-5)
        for name, wanted in weights.items():
            np.testing.assert_allclose(bundle.parameters[name], wanted, 1e-5, 1e-6)


def test_a_learner_in_cpp(folder: Path) -> None:
    succeeds("grad", "five.axir", "--loss", "squared-error", "--step", "-o", "learner.axir")
    options = ("--emit", "cpp", "--target-cpu", "host", "--name", "learner", "-o", "model")
    succeeds("compile", "learner.axir", *options)
    text = LEARNER
    for name, values in (("X", X), ("TARGET", TARGET)):
        text = text.replace(f"{{{name}}}", f"{{{', '.join(f'{v:.9e}f' for v in values.ravel())}}}")
    program = cpp_models.build(folder / "model", "learn", text)
    found = np.array(cpp_models.run(program).split(), np.float32)
    weights, losses = {n: jnp.asarray(w) for n, w in WEIGHTS.items()}, []
    x, target = X[:, 0], TARGET[:, 0]
    for _ in range(20):
        value, slope = axir.value_and_grad(squared_error)(weights, x, target)
        weights = axir.tree.map(lambda w, g: w - 0.5 * g, weights, slope)
        losses.append(float(value))
    assert losses[-1] < 0.5 * losses[0]
    np.testing.assert_allclose(found[:20], losses, 1e-4)
    np.testing.assert_allclose(found[20:32], np.ravel(weights["net.0.weight"]), 1e-4, 1e-5)
    np.testing.assert_allclose(found[32:], np.ravel(forward(weights, x)), 1e-4, 1e-5)


def test_what_cannot_learn_says_so() -> None:
    message = fails("grad", "one.axir", "--step", "-o", "learner.axir")
    assert "A step makes a real scalar smaller; result 0 is float32[1,2].\n  Name a loss" in message
    message = fails("grad", "one.axir", "--loss", "squared-error", "--step", code=2)
    assert "--step: parameters change in a bundle. Write one: -o FILE.axir" in message
    Path("free.mlir").write_text(
        "func.func @f(%x: tensor<f32>, %target: tensor<f32>) -> tensor<f32> "
        "{ return %x : tensor<f32> }"
    )
    message = fails("grad", "free.mlir", "--step", "-o", "learner.axir")
    assert "'f' has no parameters that a step could replace." in message
    succeeds("grad", "one.axir", "--loss", "squared-error", "--step", "-o", "learner.axir")
    message = fails(
        "grad", "learner.axir", "--function", "forward_step", "--loss", "squared-error", "--step",
        "--result", "result[1]['loss']", "-o", "again.axir",
    )  # fmt: skip
    assert "'forward_step' has an argument 'target' already." in message
    assert "take a loss (`axir grad --loss squared-error`)" in fails("grad", "one.axir")
