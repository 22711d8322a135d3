"""Bundles: functions and their parameters saved in one file, and read again."""

from __future__ import annotations

import functools
import json
import mmap
import zipfile
from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load as load_safetensors

import axir
import axir.numpy as jnp
from axir import random
from axir._bundles import captures
from axir.dialect.core.errors import DTypeError, ParameterError, ParseError, ShapeError
from axir.export import (
    Bundle,
    Exported,
    deserialize,
    export,
    load,
    register_namedtuple_serialization,
)

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
    exporter = export(functions, updates={"step": {"params": "result[0]"}})
    return exporter(predict=(X,), step=(X, Y))


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


def test_a_step_renews_the_parameters_of_all_functions(path: Path, tmp_path: Path) -> None:
    model = load(path)
    expected = PARAMS
    for _ in range(2):
        (new, _), model = model.advance("step", X, Y)
        expected, _ = step(expected, X, Y, 0.5)
        np.testing.assert_array_equal(new["w"], model.parameters["params['w']"])
    np.testing.assert_allclose(model.predict(X), predict(expected, X), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(axir.jit(model.predict)(X), model.predict(X), rtol=1e-6)
    model.save(tmp_path / "trained.axir")
    np.testing.assert_array_equal(load(tmp_path / "trained.axir").predict(X), model.predict(X))


def test_wrong_parameters_are_refused(path: Path) -> None:
    model = load(path)
    with pytest.raises(ParameterError, match="The bundle has no parameter 'v'"):
        model.with_parameters({"v": X})
    with pytest.raises(ShapeError, match=r"must have shape \(8,\), not \(4, 16\)"):
        model.with_parameters({"params['b']": X})
    with pytest.raises(DTypeError, match="must have dtype float32, not int32"):
        model["predict"].with_parameters({"params['b']": np.zeros(8, np.int32)})


@pytest.mark.parametrize(
    ("updates", "reason"),
    [
        ({"predict": {"p": "result"}}, "names a parameter 'p', which there is not"),
        ({"predict": {"params": "result"}}, r"no result \"result\['b'\]\" of type float32\[8\]"),
        ({"other": {}}, "updates are those of other; the functions are predict"),
    ],
)
def test_wrong_updates_are_refused(updates: Any, reason: str) -> None:
    functions = {"predict": functools.partial(predict, PARAMS)}
    with pytest.raises(ParameterError, match=reason):
        export(functions, updates=updates)(predict=(X,))


def test_large_parameters_are_mapped(path: Path) -> None:
    owner: Any = load(path).parameters["params['w']"].host()
    while isinstance(owner, np.ndarray):
        owner = owner.base
    assert isinstance(owner.obj, mmap.mmap)


def test_the_names_of_jax(path: Path) -> None:
    exported = load(path)["step"]
    assert exported.nr_devices == 1
    assert "cpu" in exported.platforms
    assert exported.module_kept_var_idx == (0, 1)
    assert exported.in_shardings_hlo == (None, None)
    assert exported.has_vjp()
    assert exported.mlir_module_serialized.startswith(b"ML\xefR")
    assert [str(x) for x in exported.in_avals] == ["float32[4,16]", "float32[4,8]"]
    pull = export(functools.partial(predict, PARAMS))(X).vjp()
    expected = axir.vjp(functools.partial(predict, PARAMS), jnp.asarray(X))[1](jnp.asarray(Y))[0]
    np.testing.assert_allclose(deserialize(pull.serialize())(X, Y), expected, rtol=1e-4)
    with pytest.raises(ParameterError, match="there is no platform 'tpu'"):
        export(predict, platforms=["tpu"])


def test_captured_arrays_are_named_after_variables() -> None:
    def apply(x: Any) -> Any:
        return predict(PARAMS, x) + large

    large = jnp.asarray(RNG.normal(size=(4, 8)).astype(np.float32))
    table = jnp.asarray(RNG.normal(size=(300,)).astype(np.float32))
    both = export({"apply": apply, "look": lambda i: (table * 2)[i] + large[0, 0]})(
        apply=(X,), look=(3,)
    )
    assert list(both["apply"].parameters) == ["PARAMS['w']", "large"]
    assert list(both["look"].parameters) == ["constant"]  # twice the table has no name
    np.testing.assert_allclose(both.look(5), table[5] * 2 + large[0, 0], rtol=1e-6)


def test_random_keys_and_complex_numbers_are_parameters() -> None:
    values = {"key": random.split(random.key(1), 2), "z": jnp.array([1 + 2j, 3j])}

    def apply(values: Any, x: Any) -> Any:
        return random.normal(values["key"][1], (2,)) * values["z"] + x

    exported = export(functools.partial(apply, values))(1.0)
    loaded = deserialize(exported.serialize())
    assert str(loaded.parameters["values['key']"].dtype) == "key<fry>"
    np.testing.assert_allclose(loaded(2.0), apply(values, 2.0), rtol=1e-5)


def test_classes_that_are_not_registered_where_a_function_is_loaded(monkeypatch: Any) -> None:
    Named = namedtuple("Named", ["x"])
    register_namedtuple_serialization(Named, serialized_name="tests.Named")
    with pytest.raises(ParameterError, match="cannot be saved as 'tests.Named'"):
        register_namedtuple_serialization(Named, serialized_name="tests.Named")
    with pytest.raises(ParameterError, match="is no class of named tuples"):
        register_namedtuple_serialization(dict, serialized_name="d")
    blob = export(lambda n: Named(n.x + 1))(Named(1.0)).serialize()
    assert deserialize(blob)(Named(2.0)) == Named(3.0)
    monkeypatch.setattr("axir._trees.text.class_named", lambda name: None)
    with pytest.raises(ParseError, match="class 'tests.Named', which is not registered here"):
        deserialize(blob)


def test_names_that_python_does_not_have_are_refused() -> None:
    with pytest.raises(ParameterError, match="cannot be called 'two words'"):
        export({"two words": predict})(**{"two words": (PARAMS, X)})
    with pytest.raises(ParameterError, match=r"under its name: export\(\{'f': f"):
        export({"predict": predict})()


def test_parameters_of_one_function_are_not_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def content(x: Any) -> None:
        raise AssertionError("all its numbers are read")

    large = jnp.arange(300.0)
    export(lambda x: x * large)(1.0).save(tmp_path / "m.mlir")
    monkeypatch.setattr(captures, "_content", content)
    assert len(load(tmp_path / "m.mlir").parameters) == 1
