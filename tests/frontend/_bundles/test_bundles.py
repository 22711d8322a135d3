"""Bundles: functions and their parameters saved in one file, and read again."""

from __future__ import annotations

import functools
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load as load_safetensors

import axir
import axir.numpy as jnp
from axir.dialect.core.errors import ParameterError
from axir.export import Bundle, Exported, deserialize, export, load

RNG = np.random.default_rng(0)
PARAMS = {
    "w": jnp.asarray(RNG.normal(size=(16, 8)).astype(np.float32)),
    "b": jnp.asarray(RNG.normal(size=8).astype(np.float32)),
}
X = RNG.normal(size=(4, 16)).astype(np.float32)
Y = RNG.normal(size=(4, 8)).astype(np.float32)


def predict(params: Any, x: Any) -> Any:
    return jnp.tanh(x @ params["w"] + params["b"])


def step(params: Any, x: Any, y: Any, rate: float = 0.1) -> Any:
    def loss(params: Any) -> Any:
        return jnp.mean((predict(params, x) - y) ** 2)

    value, gradient = axir.value_and_grad(loss)(params)
    return axir.tree.map(lambda p, g: p - rate * g, params, gradient), {"loss": value}


def bundle() -> Bundle:
    functions = {
        "predict": functools.partial(predict, PARAMS),
        "step": functools.partial(step, PARAMS, rate=0.5),
    }
    return export(functions)(predict=(X,), step=(X, Y))


@pytest.fixture(scope="module")
def path(tmp_path_factory: Any) -> Path:
    file: Path = tmp_path_factory.mktemp("bundles") / "model.axir"
    bundle().save(file)
    return file


def test_functions_share_parameters_and_compute_the_same(path: Path) -> None:
    loaded = load(path)
    assert list(loaded) == ["predict", "step"]
    assert loaded["predict"].parameters["params['w']"] is loaded["step"].parameters["params['w']"]
    np.testing.assert_allclose(loaded.predict(X), predict(PARAMS, X), rtol=1e-5)
    new, info = loaded.step(X, Y)
    expected, expected_info = step(PARAMS, X, Y, 0.5)
    np.testing.assert_allclose(new["w"], expected["w"], rtol=1e-5)
    np.testing.assert_allclose(info["loss"], expected_info["loss"], rtol=1e-5)


def test_entries_are_aligned_and_weights_are_no_text(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        text = archive.read("module.mlir").decode()
        manifest = json.loads(archive.read("manifest.json"))
        stored = load_safetensors(archive.read("parameters.safetensors"))
    assert 'dense<"0x' not in text
    assert text.count("func.func public") + text.count("func.func @") == 2
    assert sorted(stored) == ["params['b']", "params['w']"]
    np.testing.assert_array_equal(stored["params['w']"], PARAMS["w"])
    assert manifest["functions"]["step"]["parameters"] == ["params['b']", "params['w']"]
    weights = load(path).parameters["params['w']"].host()
    assert weights.ctypes.data % 64 == 0
    assert not weights.flags.writeable


def test_equal_bundles_are_equal_files(path: Path) -> None:
    assert bundle().serialize() == path.read_bytes()


def test_a_loaded_function_is_transformed(path: Path) -> None:
    loaded = load(path)

    def loss(x: Any) -> Any:
        return loaded.step(x, Y)[1]["loss"]

    found = axir.grad(loss)(jnp.asarray(X))
    expected = axir.grad(lambda x: step(PARAMS, x, Y)[1]["loss"])(jnp.asarray(X))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    batch = axir.vmap(loaded.predict)(jnp.stack([X, 2 * X]))
    np.testing.assert_allclose(batch[1], predict(PARAMS, 2 * X), rtol=1e-5)


def test_a_single_function_is_loaded_as_it_was_exported() -> None:
    exported = export(axir.jit(predict))(PARAMS, X)
    loaded = deserialize(exported.serialize())
    assert isinstance(loaded, Exported)
    assert loaded.fun_name == "predict"
    assert loaded.in_tree == exported.in_tree
    assert loaded.argument_names == ["params['b']", "params['w']", "x"]
    np.testing.assert_allclose(loaded(PARAMS, X), predict(PARAMS, X), rtol=1e-5)


def test_names_that_python_does_not_have_are_refused() -> None:
    with pytest.raises(ParameterError, match="cannot be called 'two words'"):
        export({"two words": predict})(**{"two words": (PARAMS, X)})
    with pytest.raises(ParameterError, match=r"under its name: export\(\{'f': f"):
        export({"predict": predict})()
