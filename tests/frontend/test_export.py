"""Saving functions and loading them again."""

from __future__ import annotations

import gc
from collections import OrderedDict, namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import core
from axir._programs.compiled_modules import Program, compile_saved, open_module
from axir._trees import text as tree_text
from axir.dialect.core.errors import (
    DTypeError,
    NonArrayArgumentError,
    ParameterError,
    ParseError,
    SerializationError,
    ShapeError,
    TreeError,
    UnexpectedTracerError,
    UnknownOpError,
    VerificationError,
)
from axir.export import Exported, export, load
from axir.runtime import Target

THIS_FILE = Path(__file__).name
TABLE = np.arange(12, dtype=np.float32).reshape(3, 4)
PARAMS = {"w": np.ones((3, 4), np.float32), "b": np.full(4, 0.5, np.float32)}
X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)

Point = namedtuple("Point", ["x", "y"])


def model(params: Any, x: Any, *rest: Any, scale: Any = 1.0) -> Any:
    hidden = jnp.tanh(x @ params["w"] + params["b"]) + x @ jnp.asarray(TABLE)
    return {"loss": (jnp.sum(hidden) * scale, None), "hidden": hidden + rest[0]}


@pytest.fixture(scope="module")
def exported() -> Exported:
    return export(axir.jit(model))(PARAMS, X, np.float32(1), scale=2.0)


@pytest.fixture(scope="module", params=[".mlir", ".mlirbc"])
def loaded(request: Any, exported: Exported, tmp_path_factory: Any) -> Exported:
    path = tmp_path_factory.mktemp("export") / f"model{request.param}"
    exported.save(path)
    return load(path)


def test_arguments_have_the_names_of_parameters_and_paths(exported: Exported) -> None:
    assert exported.argument_names == ["params['b']", "params['w']", "x", "rest[0]", "scale"]
    assert exported.result_names == ["result['hidden']", "result['loss'][0]"]
    assert [str(t) for t in exported.in_avals[:3]] == ["float32[4]", "float32[3,4]", "float32[2,3]"]
    assert [str(t) for t in exported.out_avals] == ["float32[2,4]", "float32[]"]


def test_text_names_arguments_trees_and_the_users_lines(exported: Exported) -> None:
    text = exported.mlir_module()
    assert "jaxpr.name = \"params['w']\"" in text
    assert "jaxpr.in_tree = \"(({'b': 0, 'w': 1}, 2, 3), {'scale': 4})\"" in text
    assert '"jaxpr.tanh"' in text
    assert f'{THIS_FILE}":{model.__code__.co_firstlineno + 1}:' in text


def test_captured_arrays_are_constants_of_the_module(exported: Exported) -> None:
    assert exported.mlir_module().count("jaxpr.constant") >= 1
    assert exported.function.captures == ()


def test_stablehlo_is_free_of_our_dialect(exported: Exported) -> None:
    text = exported.stablehlo()
    assert "stablehlo.tanh" in text
    assert "jaxpr" not in text


def test_call_computes_what_the_function_does(exported: Exported) -> None:
    result = exported.call(PARAMS, X, np.float32(1), scale=2.0)
    expected = model(PARAMS, jnp.asarray(X), np.float32(1), scale=2.0)
    np.testing.assert_allclose(result["hidden"], expected["hidden"], rtol=1e-5)
    np.testing.assert_allclose(result["loss"][0], expected["loss"][0], rtol=1e-5)
    assert result["loss"][1] is None


def test_loaded_module_is_the_one_saved(exported: Exported, loaded: Exported) -> None:
    assert loaded.mlir_module() == exported.mlir_module()
    assert loaded.in_avals == exported.in_avals
    assert loaded.out_avals == exported.out_avals
    assert loaded.in_tree == exported.in_tree
    assert loaded.out_tree == exported.out_tree


def test_loaded_module_computes_the_same(exported: Exported, loaded: Exported) -> None:
    arguments = (PARAMS, X, np.float32(1))
    result = loaded(*arguments, scale=2)
    expected = exported.call(*arguments, scale=2.0)
    np.testing.assert_array_equal(result["hidden"], expected["hidden"])


def test_loaded_module_is_transformed_like_a_function(loaded: Exported) -> None:
    def loss(call: Any, x: Any) -> Any:
        return call(PARAMS, x, np.float32(1), scale=2.0)["loss"][0]

    found = axir.grad(lambda x: loss(loaded, x))(jnp.asarray(X))
    expected = axir.grad(lambda x: loss(model, x))(jnp.asarray(X))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    batch = axir.vmap(lambda x: loss(loaded, x))(jnp.stack([X, 2 * X]))
    np.testing.assert_allclose(batch[1], loss(model, jnp.asarray(2 * X)), rtol=1e-5)


def test_loaded_functions_outlive_what_they_were_read_from(tmp_path: Path) -> None:
    export(lambda x: jnp.sin(x))(X).save(tmp_path / "sin.mlir")
    call = load(tmp_path / "sin.mlir")
    others = [load(tmp_path / "sin.mlir") for _ in range(20)]
    gc.collect()
    assert '"jaxpr.sin"' in str(call.function.op)
    del others
    np.testing.assert_allclose(call(X), np.sin(X), rtol=1e-6)


@pytest.mark.parametrize("wrong", [(1, 2), (PARAMS, X), ({"w": X}, X, 1)])
def test_wrong_trees_are_refused(exported: Exported, wrong: tuple[Any, ...]) -> None:
    with pytest.raises(TreeError, match="was exported for arguments .*'w': 1"):
        exported.call(*wrong, scale=1.0)


def test_wrong_shapes_and_dtypes_are_refused(exported: Exported) -> None:
    with pytest.raises(ShapeError, match=r"'x' must have shape \(2, 3\), not \(3, 2\)"):
        exported.call(PARAMS, X.T, np.float32(1), scale=1.0)
    with pytest.raises(DTypeError, match="'x' must have dtype float32, not int32"):
        exported.call(PARAMS, X.astype(np.int32), np.float32(1), scale=1.0)


def test_types_alone_suffice_for_exporting() -> None:
    found = export(lambda x: x + 1)(axir.ShapeDtypeStruct((2,), "int32"))
    np.testing.assert_array_equal(found.call(np.array([1, 2], np.int32)), [2, 3])


def test_static_arguments_are_fixed() -> None:
    power = axir.jit(lambda x, n: x**n, static_argnums=1)
    found = export(power)(X, 3)
    assert found.argument_names == ["x"]
    np.testing.assert_allclose(found.call(X), X**3, rtol=1e-6)


def test_double_precision_survives_without_the_option(tmp_path: Path) -> None:
    with axir.enable_x64(True):
        export(lambda x: x * 3)(np.float64(0.1)).save(tmp_path / "f64.mlir")
    result = load(tmp_path / "f64.mlir")(np.float64(0.1))
    assert result.dtype == np.float64
    assert float(np.asarray(result)) == 0.1 * 3


def test_nested_functions_are_saved(tmp_path: Path) -> None:
    inner = axir.jit(lambda x: jnp.sin(x) * 2)
    export(lambda x: inner(inner(x)))(X).save(tmp_path / "nested.mlir")
    text = (tmp_path / "nested.mlir").read_text()
    assert text.count("func.func private") == 1
    result = load(tmp_path / "nested.mlir")(X)
    np.testing.assert_allclose(result, 2 * np.sin(2 * np.sin(X)), rtol=1e-5, atol=1e-6)


def test_a_primitive_of_the_users_own_is_not_saved() -> None:
    doubled = core.Primitive("doubled")
    doubled.def_abstract_eval(lambda x: x)
    found = export(lambda x: doubled.bind(x))(X)
    message = r"'doubled' is defined in Python(.|\n)*" + THIS_FILE
    with pytest.raises(SerializationError, match=message):
        found.mlir_module()


@pytest.mark.parametrize("callback", [axir.debug.print, axir.debug.callback])
def test_callbacks_are_not_saved(callback: Any) -> None:
    def f(x: Any) -> Any:
        callback("{}" if callback is axir.debug.print else id, x)
        return x

    message = rf"'callback' is a Python object(.|\n)*{THIS_FILE}(.|\n)*leave callbacks"
    with pytest.raises(SerializationError, match=message):
        export(axir.jit(f))(X).module()


def test_results_without_leaves_keep_their_tree(tmp_path: Path) -> None:
    for result in (None, (), {"nothing": None}):
        export(lambda _, result=result: result)(X).save(tmp_path / "empty.mlir")
        assert load(tmp_path / "empty.mlir")(X) == result


def test_values_of_a_running_trace_are_refused() -> None:
    with pytest.raises(UnexpectedTracerError, match="values of a function that is being traced"):
        axir.jit(lambda y: export(lambda x: x * y)(X).call(X))(X)


def test_only_functions_are_exported() -> None:
    with pytest.raises(NonArrayArgumentError, match="export takes a function"):
        export(3)


def test_saving_replaces_whole_files_only(exported: Exported, tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_text("old")
    with pytest.raises(ParameterError, match=r"\.mlir \(text\) or \.mlirbc \(bytecode\)"):
        exported.save(tmp_path / "model.txt")
    with pytest.raises(FileNotFoundError):
        exported.save(tmp_path / "missing" / "model.mlir")
    exported.save(path)
    assert path.read_text() == exported.mlir_module()
    assert [p.name for p in tmp_path.iterdir()] == ["model.mlir"]


def test_damaged_files_are_refused(exported: Exported, tmp_path: Path) -> None:
    text = exported.mlir_module()
    path = tmp_path / "model.mlir"
    for content, error in [
        ("", ParseError),
        (text[: len(text) // 2], ParseError),
        (text.replace("jaxpr.tanh", "jaxpr.tahn"), UnknownOpError),
        (text.replace("@main", "private @main"), ParseError),
        (text.replace("{'b': 0, 'w': 1}", "{'b': 0, 'w': 9}"), VerificationError),
        (text.replace("{'b': 0, 'w': 1}", "exit()"), VerificationError),
        (text.replace("{'b': 0, 'w': 1}", "exit(0)(1)"), ParseError),
    ]:
        path.write_text(content)
        with pytest.raises(error):
            load(path)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "missing.mlir")
    exported.save(tmp_path / "model.mlirbc")
    (tmp_path / "half.mlirbc").write_bytes((tmp_path / "model.mlirbc").read_bytes()[:200])
    with pytest.raises(ParseError):
        load(tmp_path / "half.mlirbc")


def test_modules_without_trees_take_flat_arguments(tmp_path: Path) -> None:
    path = tmp_path / "plain.mlir"
    path.write_text(
        "func.func @main(%x: tensor<f32>, %y: tensor<f32>) -> (tensor<f32>, tensor<f32>) {\n"
        '  %0 = "jaxpr.add"(%x, %y) : (tensor<f32>, tensor<f32>) -> tensor<f32>\n'
        "  return %0, %x : tensor<f32>, tensor<f32>\n}\n"
    )
    found = load(path)
    assert found.argument_names == ["arg0", "arg1"]
    assert [float(r) for r in found(1.0, 2.0)] == [3.0, 1.0]


def test_stablehlo_and_compiled_programs_load_too(tmp_path: Path) -> None:
    path = tmp_path / "sin.mlir"
    path.write_text(export(lambda x: jnp.sin(x))(X).stablehlo())
    raised = load(path)
    assert isinstance(raised, Exported)
    np.testing.assert_allclose(axir.grad(lambda x: raised(x).sum())(X), np.cos(X), rtol=1e-6)
    program = load(path, compiled=True)
    assert isinstance(program, Program)
    np.testing.assert_allclose(program(X), np.sin(X), rtol=1e-6)
    module, dialect = open_module(path)
    binary = tmp_path / "sin.vmfb"
    binary.write_bytes(compile_saved(module, dialect, Target(), "sin"))
    np.testing.assert_allclose(load(binary)(X), np.sin(X), rtol=1e-6)
    with pytest.raises(ParameterError, match="main takes 1 arguments, but got 2"):
        program(X, X)


def test_trees_are_written_and_read() -> None:
    structure = axir.tree.structure(
        ({"w": 1, "b": [2, None]}, Point(3, (4,)), OrderedDict(z=5, a=6), (), {1: 7, (2, 3): 8})
    )
    text = tree_text.write(structure)
    assert text == (
        "({'b': [0, None], 'w': 1}, Point(x=2, y=(3,)), OrderedDict({'z': 4, 'a': 5}), (), "
        "{1: 6, (2, 3): 7})"
    )
    rebuilt = tree_text.read(text)(list(range(8)))
    assert tree_text.write(axir.tree.structure(rebuilt)) == text
    assert (rebuilt[1].x, rebuilt[1].y) == (2, (3,))


def test_containers_of_other_classes_come_back_as_dictionaries(tmp_path: Path) -> None:
    class Layer:
        def __init__(self, weight: Any):
            self.weight = weight

    axir.tree_util.register_pytree_node(
        Layer, lambda x: ((x.weight,), None), lambda _, c: Layer(c[0])
    )
    export(lambda layer: Layer(layer.weight * 2))(Layer(X)).save(tmp_path / "layer.mlir")
    result = load(tmp_path / "layer.mlir")(Layer(X))
    assert isinstance(result, dict)
    np.testing.assert_array_equal(next(iter(result.values())), 2 * X)


@pytest.mark.parametrize("text", ["__import__('os')", "1 +", "(lambda: 1)()", "[x]", "'s'"])
def test_what_is_no_tree_is_refused(text: str) -> None:
    with pytest.raises(ParseError, match="is not the notation of a tree"):
        tree_text.read(text)
