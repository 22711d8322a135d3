"""Traced, lowered and compiled functions: their attributes, and arguments of calls."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir._transforms import stages
from axir.dialect.core.errors import (
    DTypeError,
    NonArrayArgumentError,
    ParameterError,
    ShapeError,
    StaticArgumentError,
    TreeError,
)

X = np.arange(3.0, dtype=np.float32)


@axir.jit
def pair(x, y):
    return {"out": x["a"] * y, "sum": x["a"].sum()}


def test_each_stage_tells_types_and_structures() -> None:
    traced = axir.jit(lambda x, n: {"a": x * n}, static_argnums=1, donate_argnums=0).trace(X, 3)
    assert traced.fun_name == "lambda"
    assert len(traced.jaxpr.eqns) == 1
    assert str(traced.in_avals) == "((ShapedArray(float32[3]),), {})"
    assert traced.out_avals["a"].shape == (3,)
    assert traced.donate_argnums == (0,)
    for stage in (traced, traced.lower(), traced.lower().compile()):
        info = stage.args_info[0][0]
        assert (info.shape, info.dtype, info.donated) == ((3,), np.float32, True)
        assert stage.out_info == {"a": axir.ShapeDtypeStruct((3,), "float32")}
        assert (stage.in_tree.num_leaves, stage.out_tree.num_leaves) == (1, 1)
    donated = jnp.array(X)
    assert traced.lower().compile()(donated)["a"].tolist() == [0, 3, 6]
    with pytest.raises(RuntimeError, match="deleted"):
        donated + 1


def test_names_of_jax_are_there() -> None:
    assert isinstance(pair, stages.Wrapped)
    assert not isinstance(lambda x: x, stages.Wrapped)
    for name in ("ArgInfo", "Compiled", "CompilerOptions", "Lowered", "Traced", "Wrapped"):
        assert hasattr(jax.stages, name)
        assert hasattr(stages, name)


def test_text_of_a_stage() -> None:
    lowered = pair.lower({"a": X}, 2.0)
    assert "stablehlo.multiply" in lowered.as_text()
    assert '"jaxpr.mul"' in lowered.as_text("jaxpr")
    assert "test_stages.py" in lowered.as_text(debug_info=True)
    assert "test_stages.py" not in lowered.as_text()
    assert str(lowered.compiler_ir()) == lowered.as_text() == lowered.compile().as_text()
    with pytest.raises(ParameterError, match="dialect 'hlo' is neither 'stablehlo' nor 'jaxpr'"):
        lowered.as_text("hlo")


def test_costs_and_memory() -> None:
    def step(w, x):
        def body(i, w):
            return w - 0.5 * jnp.tanh(w @ x)

        return axir.lax.fori_loop(0, 10, body, w)

    lowered = axir.jit(step, donate_argnums=0).lower(np.ones((16, 16)), np.ones((16, 16)))
    compiled = lowered.compile()
    costs = compiled.cost_analysis()
    assert costs == lowered.cost_analysis()
    assert costs["transcendentals"] == 10 * 256
    assert costs["flops"] == 10 * (2 * 16**3 + 2 * 256 + 1)  # and the counter
    assert costs["bytes accessed"] == 3 * 256 * 4
    memory = compiled.memory_analysis()
    assert (memory.argument_size_in_bytes, memory.output_size_in_bytes) == (2048, 1024)
    assert memory.alias_size_in_bytes == 1024
    assert memory.generated_code_size_in_bytes > 1000
    assert memory.peak_memory_in_bytes == 2048 + memory.temp_size_in_bytes


def test_where_arguments_and_results_are() -> None:
    compiled = pair.lower({"a": X}, 2.0).compile()
    (tree, scalar), keywords = compiled.input_shardings
    assert tree["a"] == scalar == axir.sharding.SingleDeviceSharding(axir.devices()[0])
    assert keywords == {}
    assert set(compiled.output_shardings) == {"out", "sum"}
    assert compiled.output_formats["out"].layout.major_to_minor == (0,)
    assert compiled.input_formats[0][1].sharding == scalar


def test_lowering_for_a_platform() -> None:
    traced = axir.jit(jnp.sin).trace(X)
    lowered = traced.lower(lowering_platforms=("cpu",))
    np.testing.assert_allclose(lowered.compile()(X), np.sin(X), rtol=1e-6)
    with pytest.raises(ParameterError, match="one platform at a time"):
        traced.lower(lowering_platforms=("cpu", "cuda"))


def test_compiled_functions_check_their_arguments() -> None:
    compiled = pair.lower({"a": X}, 2.0).compile()
    out = compiled({"a": X}, 5.0)
    assert out["out"].tolist() == [0, 5, 10]
    assert float(compiled.call({"a": X}, 5.0)["sum"]) == 3.0
    with pytest.raises(
        ShapeError, match=r"argument \[0\]\[0\]\['a'\] of 'pair' is of type float32"
    ):
        compiled({"a": X[:2]}, 2.0)
    with pytest.raises(DTypeError, match="Argument types differ from the types for which"):
        compiled({"a": X.astype(np.int32)}, 2.0)
    with pytest.raises(TreeError, match="Call of the compiled 'pair'"):
        compiled({"b": X}, 2.0)
    with pytest.raises(NonArrayArgumentError, match="Cannot apply transformations to a function"):
        axir.grad(lambda x: compiled({"a": x}, 2.0)["sum"])(X)


def test_options_that_do_not_exist() -> None:
    with pytest.raises(ParameterError, match="no compiler options xla_flag"):
        axir.jit(lambda x: x, compiler_options={"xla_flag": 1})
    with pytest.raises(ParameterError, match="no compiler options xla_flag"):
        pair.lower({"a": X}, 2.0).compile({"xla_flag": 1})
    assert float(axir.jit(lambda x: x, compiler_options={})(1.0)) == 1.0
    for option in ("static_argnames", "donate_argnames"):
        with pytest.raises(StaticArgumentError, match=f"{option} names q, but '<lambda>' takes x"):
            axir.jit(lambda x: x, **{option: "q"})
    assert float(axir.jit(lambda x, **kw: x, static_argnames="q")(1.0, q=2)) == 1.0


def test_eval_shape_of_a_jitted_function_knows_static_arguments() -> None:
    f = axir.jit(lambda x, n: {"a": x * len(n)}, static_argnums=1)
    assert f.eval_shape(X, "abc") == {"a": axir.ShapeDtypeStruct((3,), "float32")}
    assert f.lower(X, "abc").compile()(X)["a"].tolist() == [0, 3, 6]


def test_eval_shape_hands_on_what_has_no_values() -> None:
    struct = axir.ShapeDtypeStruct((2,), "int32")
    shapes = axir.eval_shape(lambda x: {"x": x, "struct": struct}, X)
    assert shapes == {"x": axir.ShapeDtypeStruct((3,), "float32"), "struct": struct}
