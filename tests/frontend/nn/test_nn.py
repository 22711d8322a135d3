"""Activation functions, normalizations, attention and initializers against JAX."""

from __future__ import annotations

from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest
from support.against_jax import Weak, assert_close, compare, same_error

import axir
import axir.numpy as jnp
from axir.dialect.core.array import from_numpy

EDGES = np.array(
    [-np.inf, -100, -6.5, -3, -1, -0.5, -0.0, 0.0, 1e-3, 0.5, 1, 2.9, 3, 6, 7, 90, np.inf, np.nan],
    np.float32,
)
FINITE = EDGES[1:-2]
ELEMENTWISE = (
    "relu", "relu6", "leaky_relu", "elu", "celu", "selu", "sigmoid", "log_sigmoid", "softplus",
    "squareplus", "sparse_plus", "sparse_sigmoid", "soft_sign", "silu", "swish", "mish",
    "hard_tanh", "hard_sigmoid", "hard_silu", "hard_swish", "gelu", "identity", "tanh",
)  # fmt: skip


def both(name: str) -> tuple[Any, Any]:
    return getattr(axir.nn, name), getattr(jax.nn, name)


def check(name: str, *args: Any, factor: float = 16.0, **kwargs: Any) -> None:
    compare(*both(name), *args, factor=factor, **kwargs)


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_values(name: str) -> None:
    x = EDGES if name not in ("mish", "gelu", "sparse_plus") else EDGES[1:]
    check(name, x)
    for dtype in (np.float16, ml_dtypes.bfloat16):
        check(name, FINITE.astype(dtype), factor=4.0)
    check(name, 0.7)
    check(name, Weak(np.full((2,), 0.7)))


# JAX does not take integers for the others.
OF_INTEGERS = [n for n in ELEMENTWISE if n not in ("sigmoid", "silu", "swish")]


@pytest.mark.parametrize("name", OF_INTEGERS)
def test_integers(name: str) -> None:
    check(name, np.array([-3, 0, 2, 9], np.int32))


def test_parameters() -> None:
    check("leaky_relu", FINITE, 0.3)
    check("elu", FINITE, 2.0)
    check("celu", FINITE, 0.5)
    check("squareplus", FINITE, 1.0)
    check("gelu", FINITE, approximate=False)
    check("log1mexp", np.array([1e-6, 0.1, 0.69, 0.7, 3, 50], np.float32))
    check("glu", normal(3, 4))
    check("glu", normal(4, 3), axis=0)


@pytest.mark.parametrize("name", [*ELEMENTWISE, "log1mexp"])
def test_gradients(name: str) -> None:
    x = FINITE if name != "log1mexp" else np.array([0.1, 0.6, 0.8, 40], np.float32)
    ours = axir.vmap(axir.grad(getattr(axir.nn, name)))(from_numpy(x))
    theirs = jax.vmap(jax.grad(getattr(jax.nn, name)))(x)
    assert_close(np.asarray(ours), np.asarray(theirs), 32.0)


def test_relu_has_no_slope_at_zero() -> None:
    assert float(axir.grad(axir.nn.relu)(0.0)) == 0
    assert float(axir.grad(axir.grad(lambda x: axir.nn.relu(x) ** 2))(0.0)) == 0
    assert float(axir.jvp(axir.nn.relu, (0.0,), (1.0,))[1]) == 0


MASK = np.array([[True, False, True, True], [False] * 4, [True] * 4])


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax(name: str) -> None:
    x = normal(3, 4)
    check(name, x)
    check(name, x * 100, axis=0)
    check(name, x, axis=(0, 1))
    check(name, x, where=MASK)
    check(name, x.astype(np.float16))
    check(name, np.array([1, 2, 3], np.int32))
    check(name, np.array([[1, np.nan], [2, np.inf], [3, -np.inf]], np.float32))


@pytest.mark.parametrize("where", [None, MASK])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_gradients(name: str, where: Any) -> None:
    x = normal(3, 4) * 3
    weights = normal(3, 4, seed=1)
    chosen = np.ones((3, 4), bool) if where is None else where

    def loss(np_: Any, nn: Any) -> Any:
        function = getattr(nn, name)
        return lambda x: np_.sum(np_.where(chosen, function(x, where=where) * weights, 0))

    ours = np.asarray(axir.grad(loss(jnp, axir.nn))(from_numpy(x)))
    theirs = np.array(jax.grad(loss(jax.numpy, jax.nn))(x))
    assert np.isfinite(ours).all()
    if where is not None:
        assert not ours[1].any()
        theirs[1] = 0
    assert_close(ours, theirs, 32.0)


def test_logsumexp_and_logmeanexp() -> None:
    check("logsumexp", normal(3, 4), axis=1)
    check("logmeanexp", normal(3, 4) * 50, axis=0)
    check("logmeanexp", normal(3, 4), axis=1, where=MASK)
    check("logmeanexp", normal(3, 4), keepdims=True)


def test_standardize() -> None:
    x = normal(3, 4) + 2
    check("standardize", x)
    check("standardize", x, axis=0, epsilon=1e-2)
    check("standardize", x, axis=(0, 1), algorithm="stable")
    check("standardize", x, where=np.array([True, False, True, True]))
    check("standardize", x, mean=x.mean(1, keepdims=True), variance=np.ones((3, 1), np.float32))
    check("standardize", x.astype(np.float16))


def test_one_hot() -> None:
    x = np.array([[0, 2], [-1, 3]], np.int32)
    check("one_hot", x, 3)
    check("one_hot", x, 3, axis=0)
    check("one_hot", x, 4, dtype=np.int8, axis=1)
    check("one_hot", 1, 3)
    check("one_hot", [0, 1], 2)


ATTENTION: list[dict[str, Any]] = [
    {}, {"scale": 0.3}, {"is_causal": True}, {"local_window_size": 1},
    {"local_window_size": (1, 2)}, {"key_value_seq_lengths": np.array([2, 5], np.int32)},
    {"query_seq_lengths": np.array([2, 3], np.int32)}, {"bias": normal(1, 4, 3, 5)},
    {"mask": np.random.default_rng(0).integers(0, 2, (2, 1, 3, 5)).astype(bool)},
    {"return_residual": True},
]  # fmt: skip


@pytest.mark.parametrize("options", ATTENTION, ids=lambda options: next(iter(options), "plain"))
def test_attention(options: dict[str, Any]) -> None:
    query, key, value = normal(2, 3, 4, 6), normal(2, 5, 2, 6), normal(2, 5, 2, 6, seed=1)
    check("dot_product_attention", query, key, value, factor=64.0, **options)


def test_attention_without_batch() -> None:
    check("dot_product_attention", normal(3, 2, 4), normal(5, 2, 4), normal(5, 2, 4), factor=64.0)


def test_errors() -> None:
    with pytest.raises(axir.errors.ParameterError, match="odd extent 3"):
        axir.nn.glu(jnp.ones(3))
    with pytest.raises(axir.errors.NonArrayArgumentError, match="argument 0 is"):
        axir.nn.relu([1.0])
    with pytest.raises(axir.errors.ShapeError, match="do not fit"):
        axir.nn.dot_product_attention(jnp.ones((3, 2, 4)), jnp.ones((5, 2, 3)), jnp.ones((5, 2, 3)))
    with pytest.raises(axir.errors.ParameterError, match="algorithm 'slow' is unknown"):
        axir.nn.standardize(jnp.ones(3), algorithm="slow")
    error = same_error(*both("softmax"), np.ones(3, np.float32), axis=1)
    assert "axis 1 is out of bounds" in str(error)


INITIALIZERS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("normal", (0.5,), {}), ("uniform", (2.0,), {}), ("truncated_normal", (0.5,), {}),
    ("constant", (3.0,), {}), ("glorot_uniform", (), {}), ("glorot_normal", (), {}),
    ("he_uniform", (), {}), ("he_normal", (), {"in_axis": 0, "out_axis": 1}),
    ("lecun_uniform", (), {}), ("lecun_normal", (), {"batch_axis": 0}),
    ("variance_scaling", (2.0, "fan_geo_avg", "normal"), {}),
    ("variance_scaling", (2.0, "fan_out", "uniform"), {"in_axis": (0, 1)}),
    ("orthogonal", (2.0,), {}), ("orthogonal", (), {"column_axis": 0}),
    ("he_uniform", (), {"dtype": np.complex64}), ("he_normal", (), {"dtype": np.complex64}),
    ("variance_scaling", (1.0, "fan_in", "normal"), {"in_axis": [], "out_axis": [0]}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "args", "kwargs"), INITIALIZERS)
def test_initializers(name: str, args: Any, kwargs: Any) -> None:
    ours = getattr(axir.nn.initializers, name)(*args, **kwargs)
    theirs = getattr(jax.nn.initializers, name)(*args, **kwargs)
    previous = jax.config.jax_threefry_partitionable
    jax.config.update("jax_threefry_partitionable", False)
    try:
        expected = theirs(jax.random.PRNGKey(3), (2, 5, 4))
    finally:
        jax.config.update("jax_threefry_partitionable", previous)
    result = ours(axir.random.PRNGKey(3), (2, 5, 4))
    assert result.dtype == expected.dtype
    assert_close(np.asarray(result), np.asarray(expected), 32.0)


def test_plain_initializers() -> None:
    for name, value in (("zeros", 0), ("ones", 1)):
        result = getattr(axir.nn.initializers, name)(axir.random.PRNGKey(0), (2, 3), np.float16)
        np.testing.assert_array_equal(np.asarray(result), np.full((2, 3), value, np.float16))
        assert result.dtype == np.float16


def test_vectors_have_inputs_and_outputs_where_axes_are_named() -> None:
    key = axir.random.PRNGKey(0)
    for axes in ({"in_axis": [0], "out_axis": []}, {"in_axis": [], "out_axis": [0]}):
        draw = axir.nn.initializers.variance_scaling(1.0, "fan_in", "normal", **axes)
        scale = 0.5 if axes["in_axis"] else 1.0
        expected = scale * np.asarray(axir.random.normal(key, (4,)))
        np.testing.assert_allclose(draw(key, (4,)), expected, rtol=1e-6)


def test_bad_initializers() -> None:
    key = axir.random.PRNGKey(0)
    with pytest.raises(axir.errors.ParameterError, match="mode 'fan' is invalid"):
        axir.nn.initializers.variance_scaling(1.0, "fan", "normal")(key, (2, 2))
    with pytest.raises(axir.errors.ParameterError, match="distribution 'cauchy' is invalid"):
        axir.nn.initializers.variance_scaling(1.0, "fan_in", "cauchy")(key, (2, 2))
    with pytest.raises(axir.errors.ParameterError, match="Must be at least 2D"):
        axir.nn.initializers.he_normal()(key, (2,))


@pytest.mark.parametrize("shape", [(2, 3, 4), (3, 2, 2, 3), (1, 2, 3, 2, 2)])
def test_delta_orthogonal(shape: tuple[int, ...]) -> None:
    """Convolves with an orthogonal matrix: zeros but for the middle of the kernel."""
    kernel = np.asarray(axir.nn.initializers.delta_orthogonal(3.0)(axir.random.key(0), shape))
    middle = tuple((extent - 1) // 2 for extent in shape[:-2])
    matrix = kernel[middle]
    np.testing.assert_allclose(matrix @ matrix.T, 9 * np.eye(shape[-2]), atol=1e-5)
    assert np.count_nonzero(kernel) == np.count_nonzero(matrix)


def test_bad_orthogonal_initializers() -> None:
    key, initializers = axir.random.key(0), axir.nn.initializers
    assert initializers.orthogonal()(key, (0, 3)).shape == (0, 3)
    with pytest.raises(axir.errors.ParameterError, match="at least a 2D shape"):
        initializers.orthogonal()(key, (3,))
    with pytest.raises(axir.errors.ParameterError, match="3D, 4D or 5D"):
        initializers.delta_orthogonal()(key, (3, 3))
    with pytest.raises(axir.errors.ParameterError, match="fan_in must be less"):
        initializers.delta_orthogonal()(key, (3, 3, 2))


def everything(x: Any) -> list[Any]:
    results = [getattr(axir.nn, name)(x) for name in ELEMENTWISE]
    results += [axir.nn.softmax(x), axir.nn.log_softmax(x, axis=0), axir.nn.standardize(x)]
    results += [axir.nn.logsumexp(x), axir.nn.glu(x), axir.nn.softmax(x, where=x > 0)]
    query = x[:, :, None]
    return [*results, axir.nn.dot_product_attention(query, query, query, is_causal=True)]


def test_compiled_as_evaluated() -> None:
    x = from_numpy(normal(3, 4))
    evaluated = everything(x)
    compiled = axir.jit(everything)(x)
    for ours, expected in zip(compiled, evaluated, strict=True):
        assert ours.type is expected.type
        assert_close(np.asarray(ours), np.asarray(expected), 32.0)


@pytest.mark.parametrize("distribution", ["uniform", "truncated_normal"])
def test_complex_parameters_are_drawn_as_by_jax(distribution: str) -> None:
    arguments = (2.0, "fan_in", distribution)
    ours = axir.nn.initializers.variance_scaling(*arguments, dtype=jnp.complex64)
    theirs = jax.nn.initializers.variance_scaling(*arguments, dtype=jnp.complex64)
    with axir.threefry_partitionable(True):
        draws = ours(axir.random.key(0), (50, 40))
    np.testing.assert_allclose(draws, theirs(jax.random.key(0), (50, 40)), rtol=1e-5, atol=1e-7)
    assert abs(np.var(draws) - 2 / 50) < 0.002


def test_masked_results_of_log_softmax_move_with_nothing() -> None:
    mask = np.array([True, False, True])

    def weighted(x: Any) -> Any:
        return (axir.nn.log_softmax(x, where=mask) * np.array([1.0, 2.0, 3.0])).sum()

    gradient = axir.grad(weighted)(jnp.array([0.5, 4.0, 0.5]))
    np.testing.assert_allclose(gradient, [-1, 0, 1], atol=1e-6)


def test_curvature_of_softplus_at_zero() -> None:
    assert float(axir.grad(axir.grad(axir.nn.softplus))(0.0)) == 0.25
    assert float(axir.grad(axir.grad(axir.nn.log_sigmoid))(0.0)) == -0.25
